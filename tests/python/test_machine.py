"""Tests of redblue.Machine: kernels in NumPy compute attention, and move the words and hold the peak of their nests; and each
rule of the machine is enforced, with a message that names the culprit."""

import doctest
import gc
import pathlib
import random
import re
import signal
import subprocess
import sys

import numpy
import pytest
import torch

import redblue
from redblue.testing import Baseline

ROOT = pathlib.Path(__file__).resolve().parents[2]
NESTS = ROOT / "kernels" / "nests" / "text"
UNIT = 2.0 ** -24  # rounding of float32


def operands(n, m, d, dv, seed=1):
    draw = numpy.random.default_rng(seed).standard_normal
    return tuple(draw(shape, numpy.float32) for shape in ((n, d), (m, d), (m, dv)))


def exact(Q, K, V, live=None):
    """softmax(Q K^T / sqrt(d)) V and the logarithm of the sums, in double precision."""
    s = Q.astype(float) @ K.T.astype(float) / numpy.sqrt(Q.shape[1])
    if live is not None:
        s[~live] = -numpy.inf
    top = s.max(axis=1, keepdims=True)
    f = numpy.exp(s - top)
    return f / f.sum(axis=1, keepdims=True) @ V.astype(float), (numpy.log(f.sum(axis=1, keepdims=True)) + top)[:, 0]


def bounds_of(Q, K, V, steps):
    """How far O and L may be from the exact values.

    A score is a sum of d products and is off by (d + 2) u |q||k| / sqrt(d) at most. The logarithm of sums of m terms adds m u,
    and each of `steps` rescalings a few u. O is an average of V with these weights, which are off by twice that.
    """
    norms = numpy.linalg.norm(Q, axis=1).max() * numpy.linalg.norm(K, axis=1).max() / numpy.sqrt(Q.shape[1])
    of_L = UNIT * ((Q.shape[1] + 2) * norms + len(K) + 8 * (steps + 1) * (1 + norms + numpy.log(len(K))))
    return 4 * of_L * numpy.abs(V).max(), of_L


def add_keys(s, v, o, l):
    """Adds a block of keys to O and L of a block of queries: s holds scores, and then weights."""
    both = numpy.logaddexp(l, numpy.logaddexp.reduce(s, axis=1))
    numpy.exp(s - both[:, None], out=s)
    o *= numpy.exp(l - both)[:, None]
    o += s @ v
    l[...] = both


def scores(machine, q, k, i, j, causal):
    s = machine.new("s", len(q), len(k), kind="scores")
    numpy.matmul(q, k.T, out=s)
    s /= numpy.float32(numpy.sqrt(q.shape[1]))
    if causal:
        s[numpy.arange(i, i + len(q))[:, None] < numpy.arange(j, j + len(k))] = -numpy.inf
    return s


def flash(machine, Q, K, V, Br, Bc, causal=False):
    """nest:flash-attention-2-forward."""
    (n, d), (m, dv) = Q.shape, V.shape
    O, L = numpy.full((n, dv), numpy.nan, numpy.float32), numpy.full(n, numpy.nan, numpy.float32)
    q_slow, k_slow, v_slow = (machine.matrix(*each) for each in (("Q", Q), ("K", K), ("V", V)))
    o_slow, l_slow = machine.matrix("O", O), machine.matrix("L", L)
    for I in redblue.blocks(n, Br):
        q = machine.read(q_slow[I])
        o = machine.new("O", len(q), dv)
        l = machine.new("L", len(q), value=-numpy.inf)
        for J in redblue.blocks(min(m, I.stop) if causal else m, Bc):
            k, v = machine.read(k_slow[J]), machine.read(v_slow[J])
            s = scores(machine, q, k, I.start, J.start, causal)
            add_keys(s, v, o, l)
            del k, v, s
        machine.write(o, o_slow[I])
        machine.write(l, l_slow[I].holding("sums"))
        del q, o, l
    return O, L


def flash_decoding(machine, Q, K, V, Br, Bc, Part, Rows):
    """nest:flash-decoding-forward: parts of keys on their own, then their sums."""
    (n, d), (m, dv) = Q.shape, V.shape
    O, L = numpy.empty((n, dv), numpy.float32), numpy.empty(n, numpy.float32)
    q_slow, k_slow, v_slow = (machine.matrix(*each) for each in (("Q", Q), ("K", K), ("V", V)))
    o_slow, l_slow = machine.matrix("O", O), machine.matrix("L", L, kind="sums")
    parts = redblue.blocks(m, Part)
    o_parts = [machine.matrix("Opart", numpy.empty((n, dv), numpy.float32), kind="sums") for _ in parts]
    l_parts = [machine.matrix("Lpart", numpy.empty(n, numpy.float32), kind="sums") for _ in parts]
    with machine.phase("split"):
        for P, o_part, l_part in zip(parts, o_parts, l_parts):
            for I in redblue.blocks(n, Br):
                q = machine.read(q_slow[I])
                o, l = machine.new("Opart", len(q), dv), machine.new("Lpart", len(q), value=-numpy.inf)
                for J in redblue.blocks(P.stop - P.start, Bc):
                    J = slice(P.start + J.start, P.start + J.stop)
                    k, v = machine.read(k_slow[J]), machine.read(v_slow[J])
                    s = scores(machine, q, k, 0, 0, False)
                    add_keys(s, v, o, l)
                    del k, v, s
                machine.write(o, o_part[I])
                machine.write(l, l_part[I])
                del q, o, l
    with machine.phase("combine"):
        for A in redblue.blocks(n, Rows):
            o, l = machine.new("O", A.stop - A.start, dv), machine.new("L", A.stop - A.start, value=-numpy.inf)
            for o_part, l_part in zip(o_parts, l_parts):
                part, of = machine.read(o_part[A]), machine.read(l_part[A])
                both = numpy.logaddexp(l, of)
                o *= numpy.exp(l - both)[:, None]
                part *= numpy.exp(of - both)[:, None]
                o += part
                l[...] = both
                del part, of
            machine.write(o, o_slow[A])
            machine.write(l, l_slow[A])
            del o, l
    return O, L


# A variant that is in no list: keys stay, their first half is read once and the sums stay in slow memory between two blocks.
VARIANT = redblue.Nest("""
kernel keys-outside
problem attention
matrix Q[n,d] K[m,d] V[m,dv] -> O[n,dv] L[n]
temp sums[n,dv] logs[n]
block Br of n
block Bc of m

phase core
  for J in m by Bc
    read K[J,d] V[J,dv]
    for I in n by Br
      read Q[I,d]
      new o[I,dv] sum l[I] sum first J
      read sums[I,dv] sum as o unless first J
      read logs[I] sum as l unless first J
      new s[I,J]
      write o[I,dv] sum as sums unless last J
      write l[I] sum as logs unless last J
      write o[I,dv] as O last J
      write l[I] as L last J
""")


def keys_outside(machine, Q, K, V, Br, Bc):
    (n, d), (m, dv) = Q.shape, V.shape
    O, L = numpy.empty((n, dv), numpy.float32), numpy.empty(n, numpy.float32)
    q_slow, k_slow, v_slow = (machine.matrix(*each) for each in (("Q", Q), ("K", K), ("V", V)))
    results = machine.matrix("O", O), machine.matrix("L", L)
    sums = machine.matrix("sums", numpy.empty_like(O), kind="sums"), machine.matrix("logs", numpy.empty_like(L), kind="sums")
    with machine.phase("core"):
        for J in redblue.blocks(m, Bc):
            k, v = machine.read(k_slow[J]), machine.read(v_slow[J])
            for I in redblue.blocks(n, Br):
                q = machine.read(q_slow[I])
                if J.start == 0:
                    o, l = machine.new("o", len(q), dv), machine.new("l", len(q), value=-numpy.inf)
                else:
                    o, l = machine.read(sums[0][I]), machine.read(sums[1][I])
                s = scores(machine, q, k, 0, 0, False)
                add_keys(s, v, o, l)
                targets = results if J.stop == m else sums
                machine.write(o, targets[0][I])
                machine.write(l, targets[1][I])
                del q, o, l, s
            del k, v
    return O, L


SIZES = [(50, 50, 8, 8, 16, 12), (64, 96, 16, 24, 32, 32), (37, 53, 5, 17, 37, 1), (1, 40, 20, 33, 1, 64), (48, 48, 4, 4, 7, 5)]


def checked(machine, made, Q, K, V, steps, live=None):
    """The results are within their bounds, and the machine is as a run leaves it."""
    for result, reference, bound in zip(made, exact(Q, K, V, live), bounds_of(Q, K, V, steps)):
        assert numpy.abs(result - reference).max() <= bound
    assert machine.live == 0 and machine.report().total.peak <= machine.M


@pytest.mark.parametrize("n, m, d, dv, Br, Bc", SIZES)
def test_flash_attention(n, m, d, dv, Br, Bc):
    """Each word and the peak are those of the nest and of the closed form, and the values are attention."""
    Q, K, V = operands(n, m, d, dv)
    br, bc = min(n, Br), min(m, Bc)
    peak = br * (d + dv + 1) + bc * (d + dv) + br * bc
    machine = redblue.Machine(peak)
    checked(machine, flash(machine, Q, K, V, Br, Bc), Q, K, V, -(-m // Bc))
    total = machine.report().total
    assert (total.reads, total.writes) == (n * d + -(-n // Br) * m * (d + dv), n * (dv + 1))
    assert total.peak == peak
    machine.check("nest:flash-attention-2-forward", n=n, m=m, d=d, dv=dv, Br=Br, Bc=Bc)


@pytest.mark.parametrize("n, m, d, dv, Br, Bc", [sizes for sizes in SIZES if sizes[0] == sizes[1]])
def test_flash_attention_under_a_causal_mask(n, m, d, dv, Br, Bc):
    """A block of queries reads the keys up to its last query only."""
    Q, K, V = operands(n, m, d, dv)
    machine = redblue.Machine(4096)
    made = flash(machine, Q, K, V, Br, Bc, causal=True)
    checked(machine, made, Q, K, V, -(-m // Bc), numpy.tri(n, dtype=bool))
    assert machine.report().total.reads == n * d + sum(I.stop for I in redblue.blocks(n, Br)) * (d + dv)
    machine.check("nest:flash-attention-2-forward", n=n, d=d, dv=dv, Br=Br, Bc=Bc, mask="causal")
    with pytest.raises(redblue.Error, match="the nest flash-attention-2-forward.nest"):
        machine.check("nest:flash-attention-2-forward", n=n, d=d, dv=dv, Br=Br, Bc=Bc)


@pytest.mark.parametrize("n, m, d, dv, Br, Bc", SIZES)
def test_flash_decoding(n, m, d, dv, Br, Bc):
    """Split keys: the same attention, with the words of both phases of the nest."""
    Q, K, V = operands(n, m, d, dv)
    machine = redblue.Machine("64K")
    made = flash_decoding(machine, Q, K, V, Br, Bc, Part=3 * Bc, Rows=6)
    checked(machine, made, Q, K, V, -(-m // Bc) + -(-m // (3 * Bc)))
    machine.check("nest:flash-decoding-forward", n=n, m=m, d=d, dv=dv, Br=Br, Bc=Bc, Part=3 * Bc, Rows=6)
    parts = -(-m // (3 * Bc))
    split, combine = machine.report().phases
    assert (split.path, combine.path) == ("split", "combine")
    assert (split.writes, combine.reads, combine.writes) == (parts * n * (dv + 1), parts * n * (dv + 1), n * (dv + 1))


@pytest.mark.parametrize("n, m, d, dv, Br, Bc", SIZES)
def test_a_variant(n, m, d, dv, Br, Bc):
    """A schedule of one's own against a nest of one's own; the bound of the problem holds for it."""
    Q, K, V = operands(n, m, d, dv)
    machine = redblue.Machine("8K")
    checked(machine, keys_outside(machine, Q, K, V, Br, Bc), Q, K, V, -(-m // Bc))
    machine.check(VARIANT, n=n, m=m, d=d, dv=dv, Br=Br, Bc=Bc)
    counted = redblue.count(VARIANT, n=n, m=m, d=d, dv=dv, M="8K", blocks={"Br": min(n, Br), "Bc": min(m, Bc)})
    assert machine.report().total.io == counted.total.io


@pytest.mark.parametrize("n, m, d, B", [(20, 30, 10, 7), (16, 16, 16, 16), (33, 5, 9, 4)])
def test_a_product_against_the_nest_of_our_own_kernel(n, m, d, B):
    A, Bm, _ = operands(n, d, m, 1)
    A, Bm = numpy.ascontiguousarray(A[:, :d] if m >= d else numpy.ones((n, d), numpy.float32)), numpy.ones((d, m), numpy.float32)
    C = numpy.empty((n, m), numpy.float32)
    machine = redblue.Machine(3 * B * B)
    a_slow, b_slow, c_slow = machine.matrix("A", A), machine.matrix("B", Bm), machine.matrix("C", C)
    with machine.phase("C"):
        for I in redblue.blocks(n, B):
            for J in redblue.blocks(m, B):
                c = machine.new("C", I.stop - I.start, J.stop - J.start)
                for K in redblue.blocks(d, B):
                    a, b = machine.read(a_slow[I, K]), machine.read(b_slow[K, J])
                    c += a @ b
                    del a, b
                machine.write(c, c_slow[I, J])
                del c
    assert numpy.abs(C - A.astype(float) @ Bm).max() <= (d + 1) * UNIT * numpy.abs(A).sum(axis=1).max()
    machine.check(NESTS / "matmul" / "blocked.nest", n=n, m=m, d=d, B=B)
    ours = redblue.count("matmul/blocked", n=n, m=m, d=d, M=3 * B * B, blocks={"B": B})
    assert (ours.total.reads, ours.total.writes) == tuple(machine.report().total[name] for name in ("reads", "writes"))


def test_gradients_with_drops():
    """gradients/flash: dQ is written and read again for each block of keys; tiles die in the middle of a body."""
    n, m, d, dv, sizes = 20, 13, 4, 6, {"v.Br": 8, "core.Br": 5, "core.Bc": 4}
    Q, K, V = operands(n, m, d, dv)
    dO = numpy.random.default_rng(5).standard_normal((n, dv), numpy.float32)
    O, L = (each.astype(numpy.float32) for each in exact(Q, K, V))
    made = {"dQ": numpy.empty_like(Q), "dK": numpy.empty_like(K), "dV": numpy.empty_like(V)}
    machine = redblue.Machine(1000)
    slow = {name: machine.matrix(name, array) for name, array in dict(Q=Q, K=K, V=V, dO=dO, O=O, **made).items()}
    slow["L"], slow["v"] = (machine.matrix(name, array, kind="sums") for name, array in (("L", L), ("v", numpy.empty_like(L))))
    c = numpy.float32(1 / numpy.sqrt(d))
    with machine.phase("v"):
        for I in redblue.blocks(n, 8):
            do, o, v = machine.read(slow["dO"][I]), machine.read(slow["O"][I]), machine.new("v", I.stop - I.start)
            numpy.einsum("ij,ij->i", do, o, out=v)
            machine.write(v, slow["v"][I])
            del do, o, v
    with machine.phase("core"):
        for J in redblue.blocks(m, 4):
            k, val = machine.read(slow["K"][J]), machine.read(slow["V"][J])
            dk, dval = machine.new("dK", len(k), d), machine.new("dV", len(k), dv)
            for I in redblue.blocks(n, 5):
                q, f = machine.read(slow["Q"][I]), machine.new("f", I.stop - I.start, len(k), kind="scores")
                l = machine.read(slow["L"][I])
                f[...] = numpy.exp(c * (q @ k.T) - l[:, None])
                del l
                p, do = machine.new("p", len(q), len(k), kind="scores"), machine.read(slow["dO"][I])
                numpy.matmul(do, val.T, out=p)
                dval += f.T @ do
                del do
                v = machine.read(slow["v"][I])
                p[...] = f * (p - v[:, None])
                del v, f
                p_turned = machine.new("pT", len(k), len(q), kind="scores")
                p_turned[...] = p.T
                del p
                dq = (machine.new("dQ", len(q), d) if J.start == 0
                      else machine.read(slow["dQ"][I].holding("sums")))
                dq += c * (p_turned.T @ k)
                dk += c * (p_turned @ q)
                machine.write(dq, slow["dQ"][I].holding("operands" if J.stop == m else "sums"))
                del q, p_turned, dq
            machine.write(dk, slow["dK"][J])
            machine.write(dval, slow["dV"][J])
            del k, val, dk, dval
    machine.check(NESTS / "gradients" / "flash.nest", n=n, m=m, d=d, dv=dv, **sizes)
    O, L = exact(Q, K, V)
    x = Q.astype(float) @ K.T / numpy.sqrt(d) - L[:, None]
    f, w = numpy.exp(x), dO @ V.T.astype(float)
    v = (dO * O).sum(axis=1, keepdims=True)
    p = f * (w - v) / numpy.sqrt(d)
    # An exponent x = s - L is off by the d + 4 roundings of s, one of L and one of x, and exp adds two more. w and v are sums
    # of dv products, and v has O rounded. Each result adds a product of at most n or m terms in a few more roundings.
    s_size = abs(Q) @ abs(K).T / numpy.sqrt(d)
    off_f = UNIT * f * ((d + 4) * s_size + abs(L)[:, None] + abs(x) + 4)
    off_w = UNIT * ((dv + 2) * abs(dO) @ abs(V).T + (dv + 3) * (abs(dO) * abs(O)).sum(axis=1, keepdims=True))
    off_p = (off_f * abs(w - v) + f * (off_w + 4 * UNIT * abs(w - v))) / numpy.sqrt(d)
    for name, exactly, off, factor, terms in (("dQ", p, off_p, K, m), ("dK", p.T, off_p.T, Q, n), ("dV", f.T, off_f.T, dO, n)):
        bound = 1.01 * (off + UNIT * (terms + 8) * abs(exactly)) @ abs(factor)  # 1.01: products of roundings
        assert (abs(made[name] - exactly @ factor) <= bound).all(), name


def test_counts_of_random_programs():
    """Reads, writes and peak of each phase are what a dict of sizes says, for random moves with random weights."""
    for seed in range(40):
        draw = random.Random(seed)
        weight = {"operands": 1, "scores": 1, "sums": draw.randint(1, 3), "indices": 1}
        machine = redblue.Machine(10_000)
        machine.weigh("sums", weight["sums"])
        slow = [machine.matrix(name, numpy.random.default_rng(seed).random((9, 7), numpy.float32), kind=kind)
                for name, kind in (("A", "operands"), ("S", "sums"))]
        kinds = ("operands", "sums")
        living, expected, phases = {}, {}, []

        def at():
            return expected.setdefault("/".join(phases), {"reads": 0, "writes": 0, "peak": 0})

        def live():
            at()["peak"] = max(at()["peak"], sum(words for _, words, _ in living.values()))

        for step in range(120):
            what = draw.choice(["read", "new", "write", "del", "enter", "leave"])
            which, rows, cols = draw.randrange(2), draw.randint(1, 9), draw.randint(1, 7)
            if what == "read":
                kind = draw.choice(list(weight))
                tile = machine.read(slow[which][9 - rows:, :cols].holding(kind))
                living[step] = tile, rows * cols * weight[kind], (rows, cols)
                at()["reads"] += rows * cols * weight[kind]
            elif what == "new":
                living[step] = machine.new("t", rows, cols), rows * cols * weight["sums"], (rows, cols)
            elif what == "write" and living:
                tile, _, (rows, cols) = draw.choice(list(living.values()))
                machine.write(tile, slow[which][:rows, 7 - cols:])
                at()["writes"] += rows * cols * weight[kinds[which]]
            elif what == "del" and living:
                del living[draw.choice(list(living))]
            elif what == "enter":
                phases.append(draw.choice("ab"))
                machine.phase(phases[-1]).__enter__()
            elif what == "leave" and phases:
                machine._own.leave(len(phases))
                phases.pop()
            tile = None
            live()
            assert machine.live == sum(words for _, words, _ in living.values())
        while phases:
            machine._own.leave(len(phases))
            phases.pop()
            live()
        living.clear()
        report = machine.report()
        assert machine.live == 0
        for phase in report.phases:
            assert {name: phase[name] for name in ("reads", "writes", "peak")} == expected["" if phase.path == "" else phase.path]
        for name in ("reads", "writes"):
            assert report.total[name] == sum(phase[name] for phase in expected.values())
        assert report.total.peak == max(phase["peak"] for phase in expected.values())


def small():
    machine = redblue.Machine(20)
    array = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    return machine, array, machine.matrix("A", array)


def refused(error, message, call):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error and message in str(raised.value), raised.value


def test_over_budget():
    """A request over M names itself, the living tiles, the phase and what is missing, and changes nothing."""
    machine, array, A = small()
    with machine.phase("core"):
        a = machine.read(A[0:4])
        before = machine.report()
        refused(redblue.FastMemoryTooSmall, "fast memory overflow in phase core: b asks for 9 words, but 12 of M = 20 are live "
                "(A 12): 1 word is missing", lambda: machine.new("b", 3, 3))
        assert machine.report() == before and machine.live == 12 and (a == array).all()
        b = machine.new("b", 2, 4)  # exactly M words
        assert machine.live == 20
        del b


def test_a_name_that_is_bound_again():
    """The old tile lives while the next one is made, as the message says; `del` at the end of a body helps."""
    machine, _, A = small()

    def without_del():
        for I in redblue.blocks(4, 4):
            for _ in range(2):
                a = machine.read(A[I])  # noqa: F841

    refused(redblue.FastMemoryTooSmall, "the last A lives until its array is deleted: `del` it before the next", without_del)
    gc.collect()  # the exception kept the tiles of the function that it left
    for _ in range(2):
        a = machine.read(A[:])
        del a
    assert machine.live == 0


def test_reading_outside():
    """A slice does not end where the matrix ends, as in NumPy: a block outside is refused."""
    machine, _, A = small()
    L = machine.matrix("L", numpy.ones(5, numpy.float32))
    for block, message in ((lambda: A[0:5], "the block [0, 5) x [0, 3) leaves A, which is 4 x 3"),
                           (lambda: A[0:2, 1:4], "leaves A"), (lambda: A[-2:], "leaves A"), (lambda: L[2:6], "leaves L"),
                           (lambda: A[3:2], "leaves A"), (lambda: A[0:4:2], "takes ranges of rows and columns, as A[0:64]"),
                           (lambda: A[1], "takes ranges"), (lambda: A[0:1, 2], "takes ranges"),
                           (lambda: L[0:1, 0:1], "takes ranges"), (lambda: A["a":"b"], "takes ranges")):
        refused(redblue.UsageError, message, block)
    refused(redblue.UsageError, "at least one row", lambda: machine.read(A[2:2]))
    refused(redblue.UsageError, "read takes a block of a matrix of the machine, such as Q[0:64], and not ndarray",
            lambda: machine.read(numpy.ones((2, 2), numpy.float32)))
    refused(redblue.UsageError, "and not SlowMatrix", lambda: machine.read(A))
    assert machine.report().total.io == 0 and machine.live == 0


def test_writing_what_is_no_tile_of_this_shape():
    machine, array, A = small()
    a = machine.read(A[0:2])
    other = redblue.Machine(20)
    foreign = other.read(A[0:2])
    before = array.copy()
    for tile, message in ((a[0:1], "write takes a whole tile, and not a view of A: give A itself"),
                          (a.T, "not a view of A"), (a + 1, "this array is none: NumPy made it outside of fast memory"),
                          (a.copy(), "this array is none"), (array, "this array is none"), (foreign, "of another machine"),
                          ([[1.0]], "write takes a tile, and not list"), (None, "write takes a tile, and not NoneType")):
        refused(redblue.UsageError, message, lambda tile=tile: machine.write(tile, A[0:2]))
    refused(redblue.UsageError, "the tile A is 2 x 3, and the block A[0:3, 0:3] is 3 x 3", lambda: machine.write(a, A[0:3]))
    refused(redblue.UsageError, "write takes a block", lambda: machine.write(a, A))
    assert (array == before).all() and machine.report().total.writes == 0


def test_the_life_of_a_tile():
    """A tile takes its words until the last array of them is gone, also where its machine is gone before."""
    machine, array, A = small()

    def in_a_scope():
        a = machine.read(A[0:2])
        assert machine.live == 6
        return float(a[1, 2])

    assert in_a_scope() == 5 and machine.live == 0
    a = machine.read(A[0:2])
    row = a[1]
    del a
    assert machine.live == 6 and (row == array[1]).all()
    row = None
    assert machine.live == 0
    last = machine.read(A[2:4])
    del machine, A
    gc.collect()
    assert (last == array[2:4]).all()
    last += 1
    assert array[2, 0] == 6  # words in fast memory are not those in slow memory


def test_tiles_are_arrays_on_the_arena():
    """Tiles own no memory of NumPy's, are float32 in C order, and keep their addresses whatever comes and goes."""
    machine = redblue.Machine(600)
    draw = random.Random(7)
    tiles = []
    for step in range(3000):
        rows, cols = (draw.randint(1, 2), draw.randint(1, 4)) if step // 40 % 2 else (draw.randint(1, 9), draw.randint(1, 40))
        while tiles and machine.live + rows * cols > machine.M:
            del tiles[draw.randrange(len(tiles))]
        tile = machine.new("t", rows, cols, value=step)
        assert tile.dtype == numpy.float32 and tile.flags.c_contiguous and not tile.flags.owndata and tile.flags.writeable
        assert tile.shape == (rows, cols) and (tile == step).all()
        tiles.append((tile, tile.ctypes.data, step))
        del tile
        for kept, address, value in tiles:
            assert kept.ctypes.data == address and (kept == value).all()
        del kept
    spans = sorted((address, address + 4 * tile.size) for tile, address, _ in tiles)
    assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))  # no two tiles overlap


def test_slow_matrices_of_any_strides():
    """Words move to and from the array itself: heads of a tensor, columns first, backwards, vectors."""
    tensor = numpy.arange(2 * 3 * 4 * 5, dtype=numpy.float32).reshape(2, 3, 4, 5)
    machine = redblue.Machine(1000)
    for array in (tensor[1, 2], tensor[0, :, 1], tensor[:, 1, :, 3], tensor[0, 0].T, tensor[0, 0, ::-1, ::2], tensor[0, 1, 2],
                  tensor[:, 0, 0, 1], numpy.asfortranarray(tensor[0, 0]), tensor[0, 0, :1]):
        slow = machine.matrix("A", array)
        assert slow.shape == array.shape
        tile = machine.read(slow[:])
        assert (tile == array).all() and tile.shape == array.shape
        tile *= -1
        expected = -array
        machine.write(tile, slow[:])
        assert (array == expected).all()
        part = machine.read(slow[1:] if array.ndim == 1 or len(array) > 1 else slow[:, 1:])
        assert (part == (array[1:] if array.ndim == 1 or len(array) > 1 else array[:, 1:])).all()
        del tile, part


def test_arrays_that_are_no_slow_matrix():
    machine = redblue.Machine(100)
    fixed = numpy.ones((2, 2), numpy.float32)
    fixed.flags.writeable = False
    for array, message in ((numpy.ones((2, 2)), "Q is float64, not float32; a machine moves words of float32 where they are"),
                           ([[1.0]], "give numpy.asarray(array, numpy.float32)"), (3, "Q is 3; expected an array"),
                           (numpy.ones((2, 2, 2), numpy.float32), "Q has shape (2, 2, 2); expected one or two dimensions"),
                           (numpy.ones((0, 2), numpy.float32), "none of size 0")):
        refused(redblue.InputError, message, lambda array=array: machine.matrix("Q", array))
    for kind, shown in (("sum", "'sum'"), (3, "3"), (None, "None"), (b"sums", "an object of type bytes")):
        message = f"kind is {shown}; expected operands, scores, sums or indices"
        for call in (lambda kind=kind: machine.matrix("Q", fixed, kind=kind), lambda kind=kind: machine.weigh(kind, 2),
                     lambda kind=kind: machine.new("t", 2, kind=kind),
                     lambda kind=kind: machine.matrix("Q", fixed)[:].holding(kind)):
            refused(redblue.UsageError, message, call)
    slow = machine.matrix("Q", fixed)
    tile = machine.read(slow[:])
    refused(redblue.UsageError, "Q cannot be written to: its array is read-only", lambda: machine.write(tile, slow[:]))
    for M, message in ((0, "M"), (-5, "M"), ("64KB", "M"), ("auto", "expected words"), (None, "M")):
        refused(redblue.UsageError, message, lambda M=M: redblue.Machine(M))
    for call in (lambda: machine.new("t", 0), lambda: machine.new("t", -1, 4), lambda: machine.new("t", 2, 0)):
        refused(redblue.UsageError, "at least one row and one column", call)
    for call, message in ((lambda: machine.new(3, 2), "name is 3; expected a text"),
                          (lambda: machine.new("\udc80", 2), r"name is '\udc80'; expected a text"),
                          (lambda: machine.new("t", 2.0), "rows is 2.0; expected a whole number"),
                          (lambda: machine.new("t", "2", 2), "rows is '2'; expected a whole number"),
                          (lambda: machine.new("t", 2**63), "rows is 9223372036854775808; expected a whole number"),
                          (lambda: machine.new("t", 2, [2]), "cols is an object of type list; expected a whole number, or None"),
                          (lambda: machine.new("t", 2, 2, value="0"), "value is '0'; expected a number"),
                          (lambda: machine.new("t", 2, 2, value=None), "value is None; expected a number"),
                          (lambda: machine.weigh("sums", 1.5), "words is 1.5; expected a whole number"),
                          (lambda: machine.weigh("sums", "2"), "words is '2'; expected a whole number"),
                          (lambda: machine.matrix("\udc80", fixed), r"name is '\udc80'; expected a text")):
        refused(redblue.UsageError, message, call)
    assert machine.live == 4 and machine.new("t", numpy.int64(2), numpy.int8(3), value=numpy.float32(1)).shape == (2, 3)


class ByDLPack:
    """An array of another library: it has DLPack alone."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def test_slow_matrices_are_never_copies():
    """Tensors on the CPU and arrays by DLPack are used where they are; an array that NumPy would copy is refused."""
    machine = redblue.Machine(100)
    for tensor in (torch.zeros(4, 3), torch.zeros(3, 4).T, torch.zeros(4, 3, requires_grad=True),
                   torch.nn.Parameter(torch.zeros(4, 3))):
        slow = machine.matrix("O", tensor)
        machine.write(machine.new("o", 4, 3, value=7), slow[:])
        assert bool((tensor == 7).all())
    tensor = torch.zeros(4, 3)
    slow = machine.matrix("O", ByDLPack(tensor))
    tensor += 5  # after matrix(): the words are those of the tensor
    assert (machine.read(slow[:]) == 5).all()
    where = "; a machine moves words of float32 where they are: give "
    for array, message in ((torch.zeros(4, 3, dtype=torch.bfloat16), f"O is bfloat16, not float32{where}O.float()"),
                           (torch.zeros(4, 3, dtype=torch.float64), f"O is float64, not float32{where}O.float()"),
                           (torch.zeros(4, 3, dtype=torch.float16), f"O is float16, not float32{where}O.float()"),
                           (torch.zeros(4, 3, device="meta"), "O is on meta; redblue computes on the CPU: give O.cpu()"),
                           (ByDLPack(torch.zeros(4, 3, dtype=torch.float64)), "O is float64, not float32"),
                           ([[1.0]], f"O is an object of type list, not an array{where}numpy.asarray(array, numpy.float32)"),
                           (memoryview(numpy.zeros(4, numpy.float32)), "O is an object of type memoryview, not an array")):
        refused(redblue.InputError, message, lambda array=array: machine.matrix("O", array))


def test_a_tile_is_no_slow_matrix():
    """Words in fast memory are no slow memory, whichever array shows them, and of whichever machine."""
    machine, _, A = small()
    a = machine.read(A[0:2])
    for other in (machine, redblue.Machine(20)):
        for array in (a, a[1], a.T, a[:, ::2], a.reshape(-1)[1:], numpy.asarray(memoryview(a)),
                      numpy.lib.stride_tricks.as_strided(a, (2, 2), (4, 4)), torch.from_numpy(a), torch.from_numpy(a)[1:]):
            refused(redblue.InputError, "B is in fast memory, as the tile A; expected an array of its own: give a copy()",
                    lambda array=array, other=other: other.matrix("B", array))
    assert machine.read(machine.matrix("B", a.copy())[:]).shape == (2, 3)


def test_an_array_that_changes_its_shape():
    """A matrix keeps the shape that its array had."""
    machine, array, A = small()
    L = machine.matrix("L", vector := numpy.arange(4, dtype=numpy.float32))
    array.shape, vector.shape = (12,), (2, 2)
    assert A.shape == (4, 3) and L.shape == (4,) and repr(A) == "SlowMatrix(A, 4 x 3)"
    assert A[1:3, 0:2].shape == (2, 2) and L[1:3].shape == (2,) and repr(L[1:3]) == "L[1:3]"
    tile, part = machine.read(A[1:3, 0:2]), machine.read(L[1:3])
    assert (tile == [[3, 4], [6, 7]]).all() and (part == [1, 2]).all()
    tile += 1
    machine.write(tile, A[1:3, 0:2])
    assert list(array[3:8]) == [4, 5, 5, 7, 8]
    array.flags.writeable = False
    refused(redblue.UsageError, "A cannot be written to: its array is read-only", lambda: machine.write(tile, A[1:3, 0:2]))


def test_phases_nest():
    """Each move counts in the innermost phase; words from outside count in its peak; a phase ends with an exception, too."""
    machine, array, A = small()
    a = machine.read(A[0:1])
    with machine.phase("outer"):
        b = machine.read(A[1:2])
        with machine.phase("inner"):
            c = machine.read(A[2:4])
            machine.write(c, A[2:4])
            del c
        with pytest.raises(ZeroDivisionError), machine.phase("failing"):
            machine.write(a, A[0:1])
            1 / 0
        with machine.phase("inner"):  # again: it adds up
            machine.write(b, A[1:2])
        del b
    del a
    found = {phase.path: (phase.reads, phase.writes, phase.peak) for phase in machine.report().phases}
    assert found == {"": (3, 0, 3), "outer": (3, 0, 6), "outer/inner": (6, 9, 12), "outer/failing": (0, 3, 6)}
    first, second = machine.phase("first"), machine.phase("second")
    first.__enter__()
    second.__enter__()
    refused(redblue.UsageError, "a phase ends while first/second is open: phases end in reverse order", first.__exit__)
    second.__exit__()  # in the right order, after all
    first.__exit__()
    with machine.phase("third"):
        machine.read(A[0:1])
    assert machine.report().phases[-1].path == "third" and machine.report().phases[-1].reads == 3
    refused(redblue.UsageError, "a phase has a name", machine.phase("").__enter__)
    refused(redblue.UsageError, "a phase is 3; expected its name", lambda: machine.phase(3))


def test_weights():
    """A sum that weighs two words takes two and moves as two; the array has one float for it all the same."""
    machine, array, A = small()
    machine.weigh("sums", 2)
    o = machine.new("o", 2, 3)
    assert machine.live == 12 and o.shape == (2, 3)
    machine.write(o, A[0:2])
    machine.write(o, A[0:2].holding("sums"))
    assert machine.report().total.writes == 6 + 12
    refused(redblue.UsageError, "a machine that has not worked yet", lambda: machine.weigh("scores", 2))


def test_a_signal_ends_one_kernel_alone():
    """Ctrl-C in a kernel frees its tiles and leaves whole moves; other machines, and later calls, have what they had."""
    Q, K, V = operands(64, 64, 8, 8)
    alone = redblue.Machine(4096)
    expected = flash(alone, Q, K, V, 8, 8)
    other = redblue.Machine(100)
    kept = other.new("kept", 10, value=7)
    for delay in (0.0005, 0.002, 0.004):
        machine = redblue.Machine(4096)

        def ended(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, ended)
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            while True:
                flash(machine, Q, K, V, 8, 8)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        gc.collect()
        assert machine.live == 0
        assert machine.report().total.reads % 64 == 0  # blocks of 8 x 8 words, none in part
        assert other.live == 10 and (kept == 7).all() and other.report().total.io == 0
        again = redblue.Machine(4096)
        for made, same in zip(flash(again, Q, K, V, 8, 8), expected):
            assert made.tobytes() == same.tobytes()
        assert again.report() == alone.report()


COPY = redblue.Nest("""kernel copy
matrix A[n,d] -> B[n,d]
block Br of n
phase copy
  for I in n by Br
    read A[I,d]
    write A[I,d] as B
""")


def copied(more=lambda machine, A, B: None, phase="copy", room=0):
    machine = redblue.Machine(100)
    A, B = (machine.matrix(name, numpy.ones((8, 3), numpy.float32)) for name in "AB")
    with machine.phase(phase):
        for I in redblue.blocks(8, 2):
            machine.write(machine.read(A[I]), B[I])
        more(machine, A, B)
        if room:
            machine.new("room", room)
    return machine


def test_check_names_the_statement_that_differs():
    copied().check(COPY, n=8, d=3, Br=2)

    def differs(machine, *texts):
        with pytest.raises(redblue.Error) as raised:
            machine.check(COPY, n=8, d=3, Br=2)
        for text in texts:
            assert text in str(raised.value), raised.value

    differs(copied(lambda machine, A, B: machine.read(A[0:1]) is None), "copy reads 27 words, and 24 by the nest",
            "of A 27 and not 24 (line 6: read A[I,d])")
    differs(copied(lambda machine, A, B: machine.read(B[0:1]) is None), "of B 3 and not 0 (no line moves it here)")
    differs(copied(lambda machine, A, B: machine.write(machine.read(A[0:1]), B[0:1])), "copy reads")
    differs(copied(phase="copied"), "the kernel does not enter the phase copy")
    differs(copied(room=50), "copy holds 50 words at its peak (room 50), and 6 by the nest")


def test_check_refuses():
    machine = copied()
    refused(redblue.UsageError, "has no size Br: give it to check", lambda: machine.check(COPY, n=8, d=3))
    refused(redblue.UsageError, "no schedule is called 'nest:flash'", lambda: machine.check("nest:flash", n=8, d=3))
    refused(redblue.InputError, "none.nest: ", lambda: machine.check("none.nest", n=8, d=3))
    refused(redblue.UsageError, "nest is 3; expected a redblue.Nest", lambda: machine.check(3))
    refused(redblue.UsageError, "mask is 3", lambda: machine.check(COPY, n=8, d=3, Br=2, mask=3))
    refused(redblue.UsageError, "each query and each key has a live pair",
            lambda: machine.check(COPY, n=8, m=4, d=3, Br=2, mask="causal"))
    refused(redblue.UsageError, "n", lambda: machine.check(COPY, n="8KB", d=3, Br=2))
    refused(redblue.UsageError, f"{COPY.name}: the nest has no size nonsense: it has n, d, Br",
            lambda: machine.check(COPY, n=8, d=3, Br=2, nonsense=7))
    refused(redblue.UsageError, "the nest has no size br: it has n, d, Br", lambda: machine.check(COPY, n=8, d=3, br=2))
    refused(redblue.UsageError, "M is a size of the machine", lambda: machine.check(COPY, n=8, d=3, Br=2, M=50))
    machine.check(COPY, n=8, m=9, d=3, dv=4, heads=1, Br=2)  # extents of every nest
    tile = machine.new("left", 2)
    refused(redblue.Error, "2 words are still in fast memory at the end (left 2)", lambda: machine.check(COPY, n=8, d=3, Br=2))
    del tile
    with machine.phase("open"):
        refused(redblue.Error, "phase open is still open", lambda: machine.check(COPY, n=8, d=3, Br=2))


def test_check_knows_the_weight_of_sums_alone():
    for kind in ("operands", "scores", "indices"):
        machine = redblue.Machine(100)
        machine.weigh("sums", 2)
        machine.weigh(kind, 3)
        refused(redblue.UsageError, f"a word of {kind} weighs 3 on this machine, and 1 in a nest: only sums may weigh more than 1",
                lambda machine=machine: machine.check(COPY, n=8, d=3, Br=2))


def test_report():
    """The report is a result: a table, JSON, rows, and a comparison of two."""
    machine = copied()
    report = machine.report()
    assert report.to_dict() == {"schema": 1, "M": 100, "live": 0,
                                "phases": [{"path": "copy", "reads": 24, "writes": 24, "peak": 6}],
                                "total": {"reads": 24, "writes": 24, "io": 48, "peak": 6}}
    assert list(report.to_pandas()["reads"]) == [24, 24]
    assert repr(report).splitlines()[0] == "machine of M=100 words" and "copy" in repr(report)
    assert redblue.compare(report, copied().report()).same
    tile = machine.new("kept", 7)
    assert repr(machine.report()).endswith("7 words are live: kept 7") and repr(machine) == "Machine(M=100, live=7)"
    del tile


TEST = """
import numpy, pytest, redblue

@pytest.mark.parametrize("n", [8, 12])
def test_copy(redblue_baseline, n):
    machine = redblue.Machine(100)
    A = machine.matrix("A", numpy.ones((n, 3), numpy.float32))
    with machine.phase("copy"):
        for I in redblue.blocks(n, {step}):
            machine.write(machine.read(A[I]), A[I])
            {more}
    redblue_baseline(machine, "copy", n=n)
"""


def test_the_fixture(tmp_path):
    """Recorded words pass; other words fail with the table of `redblue diff`; a missing point says what to do."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["redblue.testing"]\n')

    def pytest_of(step, more, *options):
        (tmp_path / "test_copy.py").write_text(TEST.format(step=step, more=more))
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, *options,
                               tmp_path], capture_output=True, text=True, cwd=tmp_path)

    missing = pytest_of(2, "pass")
    assert missing.returncode == 1 and "has no point copy n=8 M=100: run pytest --redblue-record" in missing.stdout
    assert pytest_of(2, "pass", "--redblue-record").returncode == 0
    file = tmp_path / "redblue_baseline.json"
    recorded = file.read_text()
    ended = redblue.diff(str(file), str(file))  # it is a recording of the command
    assert ended.exit_code == 0
    assert pytest_of(2, "pass").returncode == 0
    other = pytest_of(2, "machine.read(A[I])")
    assert other.returncode == 1 and "DIFFERENT" in other.stdout and "copy n=8 M=100" in other.stdout
    assert "+100%" in other.stdout and "pytest --redblue-record" in other.stdout
    assert "2 failed" in other.stdout
    higher = pytest_of(4, "pass")
    assert higher.returncode == 1 and "peak" in higher.stdout and "12" in higher.stdout
    assert file.read_text() == recorded  # a check changes no file
    assert pytest_of(4, "pass", "--redblue-record").returncode == 0 and pytest_of(4, "pass").returncode == 0


def test_sizes_of_the_fixture(tmp_path):
    """A size is a whole number or a text: fractions are refused, and not cut."""
    file = tmp_path / "redblue_baseline.json"
    for size, shown in ((0.5, "0.5"), (2.0, "2.0"), (None, "None"), ([8], "an object of type list")):
        refused(redblue.UsageError, f"redblue_baseline: n is {shown}; expected a whole number or a text",
                lambda size=size: Baseline(file, record=True)(copied(), "copy", n=size))
    assert not file.exists()
    Baseline(file, record=True)(copied(), "copy", n=numpy.int64(8), causal=True, of="rows")
    Baseline(file)(copied(), "copy", n=8, causal=1, of="rows")


def test_page(tmp_path):
    """The page's kernel prints what the page shows, and computes attention; its examples are true, and so is its table."""
    page = (ROOT / "docs" / "howto" / "own-kernels-python.md").read_text()
    code, shown = re.search(r"```python\n(import.*?)```\n\n```text\n(.*?)```", page, re.S).groups()
    kernel = code[code.index("machine ="):code.index("print(")]
    assert len(kernel.splitlines()) <= 12
    ended = subprocess.run([sys.executable, "-c", code + "np.save('O.npy', O); np.save('L.npy', L); np.save('QKV.npy', [Q, K, V])"],
                           capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, shown), ended.stderr
    Q, K, V = numpy.load(tmp_path / "QKV.npy")
    for name, reference, bound in zip("OL", exact(Q, K, V), bounds_of(Q, K, V, 16)):
        assert numpy.abs(numpy.load(tmp_path / f"{name}.npy") - reference).max() <= bound
    counted = redblue.count("nest:flash-attention-2-forward", n=1024, d=64, M="24K", blocks={"Br": 64, "Bc": 64}).total
    assert f"{counted.reads:,}  {counted.writes:,}" in shown and f"{counted.peak:,}" in shown
    test = doctest.DocTestParser().get_doctest("\n".join(re.findall(r"```python\n(>>>.*?)```", page, re.S)), {}, "page", None, 0)
    assert len(test.examples) > 10 and doctest.DocTestRunner().run(test).failed == 0
    assert re.findall(r"```text\n(now\n.*?)```", page, re.S)[0].rstrip() == failure_of_the_page(tmp_path / "redblue_baseline.json")


def failure_of_the_page(file):
    def attend(more):
        machine = redblue.Machine("24K")
        A = machine.matrix("A", numpy.ones((1024, 64), numpy.float32))
        with machine.phase("core"):
            for I in redblue.blocks(1024, 64):
                machine.read(A[I])
            if more:
                machine.read(A[0:64])
        return machine

    Baseline(file, record=True)(attend(False), "attend", n=1024, d=64)
    with pytest.raises(pytest.fail.Exception) as failed:
        Baseline(file)(attend(True), "attend", n=1024, d=64)
    return str(failed.value)


def test_examples():
    """The examples in docstrings print what they show."""
    tests = [test for test in doctest.DocTestFinder().find(redblue.Machine, globs={"redblue": redblue, "numpy": numpy})
             + doctest.DocTestFinder().find(redblue.blocks, globs={"redblue": redblue}) if test.examples]
    assert [test.name for test in tests] == ["Machine", "Machine.check", "blocks"]
    assert all(doctest.DocTestRunner().run(test).failed == 0 for test in tests)
