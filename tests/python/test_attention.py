"""Tests redblue.attention() and redblue.gradients(): their values against softmax(scale Q K^T) V and its gradients
in double precision, for shapes, masks and heads; the same bits for any number of threads; refusals."""

import threading
import time

import numpy
import pytest

import redblue


def operands(lead, kv_lead, n, m, d, dv, seed=1):
    random = numpy.random.default_rng(seed)
    return [random.standard_normal((*front, rows, cols), numpy.float32)
            for front, rows, cols in ((lead, n, d), (kv_lead, m, d), (kv_lead, m, dv), (lead, n, dv))]


def reference(Q, K, V, dO, pairs=True, scale=None):
    """O, L, dQ, dK and dV in double precision; `pairs` broadcasts to (..., n, m)."""
    Q, K, V, dO = (array.astype(float) for array in (Q, K, V, dO))
    group = Q.shape[-3] // K.shape[-3] if Q.ndim > 2 else 1
    if group > 1:
        K, V = (array.repeat(group, axis=-3) for array in (K, V))
    scale = 1 / numpy.sqrt(Q.shape[-1]) if scale is None else scale
    s = numpy.where(pairs, scale * Q @ K.swapaxes(-1, -2), -numpy.inf)
    top = s.max(-1, keepdims=True)
    e = numpy.exp(s - numpy.where(numpy.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    with numpy.errstate(divide="ignore"):
        L = (numpy.where(numpy.isinf(top), 0, top) + numpy.log(total))[..., 0]
    f = e / numpy.where(total == 0, 1, total)
    O = f @ V
    p = f * (dO @ V.swapaxes(-1, -2) - (dO * O).sum(-1, keepdims=True)) * scale
    dQ, dK, dV = p @ K, p.swapaxes(-1, -2) @ Q, f.swapaxes(-1, -2) @ dO
    if group > 1:
        dK, dV = (array.reshape(*array.shape[:-3], -1, group, *array.shape[-2:]).sum(-3) for array in (dK, dV))
    return O, L, dQ, dK, dV


def agrees(made, exact):
    """Each float32 result is within 1e-5 of the largest element, some hundred times its rounding error."""
    for one, other in zip(made, exact):
        assert one.dtype == numpy.float32 and one.shape == other.shape
        infinite = numpy.isinf(other)
        assert (one[infinite] == other[infinite]).all()
        largest = abs(other[~infinite]).max(initial=1)
        assert abs(one[~infinite] - other[~infinite]).max(initial=0) <= 1e-5 * largest


def both(Q, K, V, dO, **options):
    O, L = redblue.attention(Q, K, V, **options)
    known = redblue.gradients(Q, K, V, dO, O=O, L=L, **options)
    agrees(redblue.gradients(Q, K, V, dO, **options), known)
    return (O, L, *known)


@pytest.mark.parametrize("lead, kv_lead, n, m, d, dv", [
    ((), (), 1, 1, 1, 1), ((), (), 33, 17, 5, 5), ((3,), (3,), 20, 31, 8, 4), ((6,), (2,), 29, 29, 7, 7),
    ((2, 4), (2, 4), 16, 16, 8, 8), ((2, 4), (2, 1), 13, 19, 3, 3), ((2, 1, 4), (2, 1, 2), 11, 11, 16, 16)])
def test_any_leading_sizes(lead, kv_lead, n, m, d, dv):
    given = operands(lead, kv_lead, n, m, d, dv)
    agrees(both(*given), reference(*given))
    agrees(both(*given, scale=0.7, M=4096), reference(*given, scale=0.7))


def masks(n):
    random = numpy.random.default_rng(2)
    pairs = random.random((n, n)) < 0.3
    pairs[4] = False  # a query without a key
    by_batch, by_head = random.random((2, 1, n, n)) < 0.5, random.random((4, n, n)) < 0.5
    documents = numpy.searchsorted([7, 7, 20, n], numpy.arange(n), side="right")
    causal = numpy.tri(n, dtype=bool)
    return {
        "causal": ("causal", causal), "Mask": (redblue.Mask("causal") & "window:3,0", causal & ~numpy.tri(n, k=-4, dtype=bool)),
        "bool": (pairs, pairs), "a row for all queries": (pairs[:1], pairs[:1]), "by batch": (by_batch, by_batch),
        "by head": (by_head, by_head), "by both": (by_batch & by_head, by_batch & by_head),
        "documents": ([0, 7, 7, 20, n], documents[:, None] == documents[None, :]),
    }


@pytest.mark.parametrize("name", masks(30))
def test_masks(name):
    mask, pairs = masks(30)[name]
    given = operands((2, 4), (2, 2), 30, 30, 8, 8)
    agrees(both(*given, mask=mask), reference(*given, pairs=pairs))


def test_sparse_matrix_as_mask():
    scipy = pytest.importorskip("scipy.sparse")
    pairs = numpy.random.default_rng(4).random((20, 25)) < 0.4
    given = operands((), (), 20, 25, 4, 4)
    agrees(both(*given, mask=scipy.csr_matrix(pairs)), reference(*given, pairs=pairs))


def test_a_mask_counts_as_it_is_stored():
    """Documents are stored as offsets, and a matrix of bool as pairs, which need more fast memory. The least M of each
    is enough for it, and is the same whatever was called before."""
    ends = [0, 7, 20, 60, 96]
    documents = numpy.searchsorted(ends[1:], numpy.arange(96), side="right")
    given = operands((), (), 96, 96, 1, 1)[:3]

    def least(mask):
        with pytest.raises(redblue.FastMemoryTooSmall) as small:
            redblue.attention(*given, mask=mask, M=1)
        redblue.attention(*given, mask=mask, M=small.value.least_M)
        return small.value.least_M

    pairs = documents[:, None] == documents[None, :]
    of_offsets, of_pairs = least(ends), least(pairs)
    assert of_offsets < of_pairs
    assert (least(ends), least(pairs)) == (of_offsets, of_pairs)
    with pytest.raises(redblue.FastMemoryTooSmall):
        redblue.attention(*given, mask=pairs, M=of_offsets)


def test_bits_do_not_depend_on_threads_or_callers():
    given = operands((4,), (2,), 200, 200, 16, 16)
    alone = both(*given, mask="causal", M="8K")
    for threads in (2, 3, 7):
        assert all((one == other).all() for one, other in zip(alone, both(*given, mask="causal", M="8K", threads=threads)))
    equal = []
    callers = [threading.Thread(target=lambda: equal.append(all(
        (one == other).all() for one, other in zip(alone, both(*given, mask="causal", M="8K"))))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert equal == [True] * 4


def test_is_the_run_of_the_command():
    """The same kernel, blocks and M give the same bits."""
    Q, K, V, _ = operands((3,), (3,), 60, 60, 8, 8)
    O, L = redblue.attention(Q, K, V, M=2000, kernel="attention/rows", objective="balanced")
    ran = redblue.run("attention/rows", Q=Q, K=K, V=V, M=2000, objective="balanced")
    assert (O == ran.O).all() and (L == ran.L).all()


def test_a_small_call_is_short():
    """Calls of n = 16 take tens of microseconds. A call that planned again would take more than 400, one that started
    a thread for the command 2,000. A tenth of the calls is short on a busy machine, too."""
    given = operands((), (), 16, 16, 8, 8)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        redblue.attention(*given[:3])
        times.append(time.perf_counter() - start)
    assert sorted(times)[20] < 2.5e-4


Q, K, V, dO = operands((4,), (2,), 6, 5, 3, 3)


@pytest.mark.parametrize("call, error, words", [
    (lambda: redblue.attention(Q[0, 0], K, V), redblue.InputError, "Q has shape (3,); expected at least two dimensions"),
    (lambda: redblue.attention(Q, K[..., :2], V), redblue.InputError, "have shapes (4, 6, 3), (2, 5, 2) and (2, 5, 3)"),
    (lambda: redblue.attention(Q, K, V[:, :4]), redblue.InputError, "have shapes"),
    (lambda: redblue.attention(Q[:3], K, V), redblue.InputError, "K and V have 2 heads, and Q has 3: expected a divisor"),
    (lambda: redblue.attention(Q[:, :0], K, V), redblue.InputError, "expected no size of 0"),
    (lambda: redblue.attention("Q.npy", K, V), redblue.InputError, "Q is 'Q.npy'; expected a dense array of numbers"),
    (lambda: redblue.attention(Q * numpy.nan, K, V), redblue.InputError, "Q: nan at head 0, row 0, column 0"),
    (lambda: redblue.attention(Q, K, V, scale=-1), redblue.UsageError, "scale is -1; expected a positive finite number"),
    (lambda: redblue.attention(Q, K, V, threads=0), redblue.UsageError, "threads is 0; expected a whole number from 1"),
    (lambda: redblue.attention(Q, K, V, M=2), redblue.FastMemoryTooSmall, "does not fit in M = 2 words"),
    (lambda: redblue.attention(Q, K, V, M=True), redblue.UsageError, "M is True; expected words"),
    (lambda: redblue.attention(Q, K, V, M="lots"), redblue.UsageError, 'M: "lots" is no cache'),
    (lambda: redblue.attention(Q, K, V, objective="best"), redblue.UsageError, "objective 'best': expected words"),
    (lambda: redblue.attention(Q, K, V, kernel="gradients/flash"), redblue.UsageError, "kernel gradients/flash"),
    (lambda: redblue.attention(Q, K, V, mask="cusal"), redblue.UsageError, "cusal is no mask"),
    (lambda: redblue.attention(Q, K, V, mask=numpy.ones((5, 6), bool)), redblue.InputError,
     "mask has shape (5, 6); expected one that broadcasts to (4, 6, 5)"),
    (lambda: redblue.attention(Q, K, V, mask=numpy.ones((6, 5))), redblue.InputError, "elements of dtype float64; expected bool"),
    (lambda: redblue.attention(Q, K, V, mask=[0, 6]), redblue.InputError, "n is 6 and m is 5"),
    (lambda: redblue.gradients(Q, K, V, dO, O=dO), redblue.UsageError, "O without L, or L without O"),
    (lambda: redblue.gradients(Q, K, V, dO[:2]), redblue.InputError, "dO has shape (2, 6, 3); expected (4, 6, 3)"),
])
def test_bad_calls(call, error, words):
    with pytest.raises(error) as failed:
        call()
    assert type(failed.value) is error and words in str(failed.value) and "\n" not in str(failed.value)
