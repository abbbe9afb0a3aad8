"""Tests redblue.torch against PyTorch's own operations in double precision, its gradients by gradcheck, and what
PyTorch does around a function: several types, views, checkpoints, threads."""

import collections
import math
import os
import pathlib
import re
import runpy
import subprocess
import sys
import threading
import warnings

# PyTorch's small operations share each a few microseconds of work between its threads. Beside other tests they wait for a
# core ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy
import pytest
import torch
import torch.utils.checkpoint

import redblue
import redblue.torch


def tensors(lead, n, m, d, heads=None, dtype=torch.float32, seed=1):
    torch.manual_seed(seed)
    kv_lead = lead if heads is None else (*lead[:-1], heads)
    return [torch.randn(*front, rows, d, dtype=dtype, requires_grad=True)
            for front, rows in ((lead, n), (kv_lead, m), (kv_lead, m))]


def plain(q, k, v, mask=None, scale=None):
    """The definition, in double precision. A query without a key gives 0."""
    q, k, v = (each.double() for each in (q, k, v))
    if q.dim() > 2 and k.shape[-3] != q.shape[-3]:
        k, v = (each.repeat_interleave(q.shape[-3] // k.shape[-3], -3) for each in (k, v))
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is None:
        return torch.softmax(s, -1) @ v
    lives = mask.any(-1, keepdim=True)
    return torch.softmax(s.masked_fill(~(mask | ~lives), -numpy.inf), -1).masked_fill(~lives, 0) @ v


def agrees(given, mask=None, as_mask=None, scale=None, **options):
    """Results and gradients are within 1e-5 of the largest element of the exact ones."""
    torch.manual_seed(9)
    made = redblue.torch.attention(*given, mask=mask, scale=scale, **options)
    exact = plain(*given, mask=as_mask if as_mask is not None else mask, scale=scale)
    do = torch.randn(exact.shape, dtype=torch.float64)
    pairs = [(made, exact)]
    pairs += zip(torch.autograd.grad(made, given, do.to(made.dtype)), torch.autograd.grad(exact, given, do))
    for one, other in pairs:
        assert one.shape == other.shape and torch.isfinite(one).all()
        assert (one - other).abs().max() <= 1e-5 * max(1, other.abs().max())


@pytest.mark.parametrize("lead, n, m, heads", [((), 9, 9, None), ((3,), 20, 31, None), ((2, 4), 33, 33, None),
                                               ((2, 6), 17, 23, 2), ((2, 3, 4), 8, 8, 1)])
def test_shapes(lead, n, m, heads):
    given = tensors(lead, n, m, 8, heads)
    agrees(given, enable_gqa=heads is not None)
    agrees(given, enable_gqa=heads is not None, scale=0.3, M="4K", threads=2)


@pytest.mark.parametrize("n, m", [(20, 20), (20, 31), (31, 20)])
def test_is_causal_as_in_pytorch(n, m):
    """Query i meets keys 0 to i, whatever n and m."""
    given = tensors((2,), n, m, 4)
    made = redblue.torch.attention(*given, is_causal=True)
    exact = plain(*given, mask=torch.ones(n, m, dtype=torch.bool).tril())
    assert (made - exact).abs().max() < 1e-5
    grads = torch.autograd.grad(made.sum(), given), torch.autograd.grad(exact.sum(), given)
    assert all((one - other).abs().max() < 1e-5 for one, other in zip(*grads))


def test_masks():
    n = 24
    given = tensors((2, 3), n, n, 8)
    pairs = torch.rand(n, n) < 0.4
    pairs[5] = False  # gives 0, and no gradient is NaN
    by_batch, by_head = torch.rand(2, 1, n, n) < 0.5, torch.rand(3, n, n) < 0.5
    for mask in (pairs, pairs[None, None], by_batch, by_head, by_batch & by_head):
        agrees(given, mask)
    agrees(given, torch.zeros(n, n).masked_fill(~pairs, -numpy.inf), as_mask=pairs)
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    agrees(given, redblue.Mask("causal"), as_mask=causal)
    agrees(given, "window:3,0", as_mask=causal & ~causal.tril(-4))
    documents = torch.bucketize(torch.arange(n), torch.tensor([7, 20, n]), right=True)
    agrees(given, (0, 7, 20, n), as_mask=documents[:, None] == documents[None, :])
    agrees(given, torch.tensor([0, 7, 20, n]), as_mask=documents[:, None] == documents[None, :])


def test_a_mask_may_change_before_the_backward_pass():
    """The gradients are those of the mask that the forward pass saw."""
    given = tensors((2,), 15, 15, 4)
    mask = torch.rand(15, 15) < 0.5
    exact = torch.autograd.grad(plain(*given, mask=mask.clone()).sum(), given)
    made = redblue.torch.attention(*given, mask=mask)
    mask.fill_(True)
    for one, other in zip(torch.autograd.grad(made.sum(), given), exact):
        assert (one - other).abs().max() < 1e-5


def test_block_mask_of_flex_attention():
    """Newer versions of PyTorch make these objects. Their last member is a function of batch, head, query and key."""
    block_mask = collections.namedtuple("block_mask", "seq_lengths kv_num_blocks mask_mod")
    n = 20
    given = tensors((2, 3), n, n, 8)
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    agrees(given, block_mask((n, n), None, lambda b, h, q, k: q >= k), as_mask=causal)
    by_head = torch.stack([torch.stack([causal & ~causal.tril(-2 - b - h) for h in range(3)]) for b in range(2)])
    agrees(given, block_mask((n, n), None, lambda b, h, q, k: (q >= k) & (q - k < 2 + b + h)), as_mask=by_head)


def test_gradcheck():
    """Differences of a function in float32: steps of 1e-3 with errors of 1e-6 are exact to about 1e-3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in ({}, {"is_causal": True}, {"mask": torch.rand(2, 1, 7, 7) < 0.5}):
            given = tensors((2, 3), 7, 7, 5, dtype=torch.float64)
            assert torch.autograd.gradcheck(lambda *each: redblue.torch.attention(*each, **options), given,
                                            eps=1e-3, atol=2e-3, rtol=1e-2, nondet_tol=0.0)


@pytest.mark.parametrize("dtype, share", [(torch.float64, 1e-5), (torch.bfloat16, 0.02), (torch.float16, 0.003)])
def test_other_types_are_converted_and_said_once(dtype, share):
    redblue.torch._said.clear()
    given = tensors((2,), 10, 10, 4, dtype=dtype)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            made = redblue.torch.attention(*given)
    assert len(said) == 1 and str(dtype) in str(said[0].message)
    assert made.dtype == dtype and (made - plain(*given)).abs().max() < share
    assert all(grad.dtype == dtype for grad in torch.autograd.grad(made.sum(), given))


def test_views_checkpoints_and_threads():
    """Tensors that are not contiguous, a recomputed forward pass, and calls from two threads have the same bits."""
    given = tensors((2, 3), 50, 50, 8)
    do = torch.randn(2, 3, 50, 8)
    made = redblue.torch.attention(*given, is_causal=True)
    grads = torch.autograd.grad(made, given, do)
    views = [each.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for each in given]
    assert not views[0].is_contiguous()
    again = redblue.torch.attention(*views, is_causal=True, threads=3)
    assert torch.equal(made, again)
    assert all(map(torch.equal, grads, torch.autograd.grad(again, views, do)))
    checkpointed = torch.utils.checkpoint.checkpoint(lambda *each: redblue.torch.attention(*each, is_causal=True), *given)
    copies = [each.detach().clone().requires_grad_() for each in given]
    torch.utils.checkpoint.checkpoint(lambda *each: redblue.torch.attention(*each, is_causal=True), *copies).backward(do)
    assert torch.equal(made, checkpointed) and all(torch.equal(one, copy.grad) for one, copy in zip(grads, copies))
    equal = []
    callers = [threading.Thread(target=lambda: equal.append(torch.equal(made, redblue.torch.attention(*given, is_causal=True))))
               for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert equal == [True, True]


def test_training_of_the_page():
    """The program of docs/howto/pytorch.md, in fewer steps: the loss falls below that of a guess, log 32, and differs from
    that of PyTorch's own operations by rounding alone. The page shows what the program prints."""
    root = pathlib.Path(__file__).resolve().parents[2]
    train = root / "tools" / "python" / "examples" / "train.py"
    names = runpy.run_path(str(train))
    ours, theirs = (list(names["losses"](attention, 60)) for attention in (redblue.torch.attention, names["plain"]))
    assert ours[-1] < 0.9 * math.log(32) < ours[0]
    assert max(abs(one - other) for one, other in zip(ours, theirs)) < 1e-4
    said = subprocess.run([sys.executable, train, "--steps", "2"], capture_output=True, text=True, check=True).stdout
    without = [re.sub(r"\d+(\.\d+)?(e[-+]\d+)?", "", text) for text in (said, (root / "docs" / "howto" / "pytorch.md").read_text())]
    assert without[0] in without[1]


def test_script_of_peak_memory():
    """PyTorch's plain operations keep scores, and redblue none: at n = 2048 one head's are 16 MiB."""
    script = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python" / "examples" / "peak_memory.py"
    said = subprocess.run([sys.executable, script, "--heads", "1", "2048"], capture_output=True, text=True, check=True).stdout
    ours, theirs = map(int, re.search(r"\| 2048 \| (\d+) MiB \| (\d+) MiB \|", said).groups())
    assert ours < 16 < 32 <= theirs


def test_script_of_speed():
    """Both sides compute the same: outputs and gradients differ by rounding alone, under each mask of the table."""
    script = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python" / "examples" / "speed.py"
    names = runpy.run_path(str(script))
    for mask in names["MASKS"]:
        results = []
        for of in names["sides"](300, mask):
            q, k, v = tensors((2,), 300, 300, 16)
            made = of(q, k, v)
            made.square().sum().backward()
            results.append([made, q.grad, k.grad, v.grad])
        for one, other in zip(*results):
            assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
    said = subprocess.run([sys.executable, script, "--heads", "1", "--rounds", "2", "16"], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^\| 16 \| ([^ ]+) \| ([12]) \|", said, re.M) == [(mask, n) for mask in names["MASKS"] for n in "12"]


def test_peak_memory_has_no_scores():
    """A forward and backward pass of n = 4096 holds less than the n^2 scores of one head."""
    n = 4096
    given = tensors((1,), n, n, 16)
    redblue.torch.attention(*(each[:, :64] for each in given)).sum().backward()

    def peak():
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        redblue.torch.attention(*given).sum().backward()
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

    resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    assert peak() - resident < 4 * n * n


def test_some_gradients_and_none():
    q, k, v = (each.detach() for each in tensors((2,), 12, 12, 4))
    with torch.no_grad():
        made = redblue.torch.attention(q, k, v)
    assert not made.requires_grad
    redblue.torch.attention(q, k, v.requires_grad_()).sum().backward()
    assert v.grad is not None and q.grad is None


def test_count_bytes_of_operations():
    """An operation reads each of its tensors once and writes its results; views, empty tensors and elements that are
    repeated move no bytes."""
    x, y = torch.ones(30, 20), torch.ones(20, 10)
    with redblue.torch.CountBytes() as count:
        product = x @ y
        product.add_(1)
        product.t().reshape(10, 30).unsqueeze(0)
        x.half()
        torch.ones(1).expand(1000).sum()
        torch.empty(500)
    x @ y  # outside
    assert count.by_operation == {"aten.mm": 4 * (600 + 200 + 300), "aten.add_": 2 * 4 * 300, "aten._to_copy": 6 * 600,
                                  "aten.ones": 4, "aten.sum": 8}
    assert count.bytes == sum(count.by_operation.values())


def test_count_bytes_of_attention():
    """redblue.torch.attention and its backward pass count as redblue.cost says, with M as its plan; the same call in
    PyTorch's own operations moves n m scores several times."""
    q, k, v = tensors((2, 4), 64, 96, 16, heads=2)
    sizes = dict(n=64, m=96, d=16, heads=8, kv_heads=4)
    for M in (None, 4096):
        with redblue.torch.CountBytes(M) as count:
            o = redblue.torch.attention(q, k, v, enable_gqa=True)
            o.backward(torch.ones_like(o))
        for problem in ("attention", "gradients"):
            assert count.by_operation[f"redblue.{problem}"] == redblue.cost(problem, **sizes, M=M).moved_bytes
    with redblue.torch.CountBytes() as own:
        plain(q.detach(), k.detach(), v.detach())
    assert own.bytes > 5 * count.by_operation["redblue.attention"]


@pytest.mark.parametrize("shape", [(64, 64), (2, 1, 64, 64), (4, 64, 64), (2, 4, 64, 64), (1, 1, 64, 64)])
def test_count_bytes_under_masks(shape):
    """Masks of their own are calls of their own."""
    q, k, v = tensors((2, 4), 64, 64, 8, heads=2)
    mask = torch.rand(shape) < 0.5
    with redblue.torch.CountBytes() as count, torch.no_grad():
        redblue.torch.attention(q, k, v, mask=mask, enable_gqa=True)
    of_head = 4 * 64 * (2 * 8 + 1)  # Q, O and L
    of_keys = 4 * 64 * 2 * 8
    times = {(64, 64): 4, (1, 1, 64, 64): 4, (2, 1, 64, 64): 4, (4, 64, 64): 8, (2, 4, 64, 64): 8}[shape]
    assert count.by_operation["redblue.attention"] == 8 * of_head + times * of_keys


q, k, v = tensors((4,), 6, 5, 3, heads=2)


@pytest.mark.parametrize("call, error, words", [
    (lambda: redblue.torch.attention(q.detach().numpy(), k, v), TypeError, "q is ndarray, not a tensor"),
    (lambda: redblue.torch.attention(q, k, v), ValueError, "q has 4 heads and k has 2; give enable_gqa=True"),
    (lambda: redblue.torch.attention(q, k.double(), v), ValueError, "k is of torch.float64, and q of torch.float32"),
    (lambda: redblue.torch.attention(q.long(), k, v), ValueError, "q is of torch.int64"),
    (lambda: redblue.torch.attention(q, k[0], v), ValueError, "expected (..., heads, n, d)"),
    (lambda: redblue.torch.attention(q.to("meta"), k, v), ValueError, "q is on meta; redblue computes on the CPU"),
    (lambda: redblue.torch.attention(q[:2], k, v, mask="causal", is_causal=True), ValueError, "mask and is_causal are both"),
    (lambda: redblue.torch.attention(q[:2], k, v, mask=torch.rand(6, 5)), ValueError, "numbers other than 0 and -inf"),
    (lambda: redblue.torch.attention(q[:2], k, v, mask=torch.ones(5, 6).bool()), redblue.InputError, "mask has shape (5, 6)"),
    (lambda: redblue.torch.attention(q[:2], k, v, mask=torch.zeros(6, 5, requires_grad=True)), ValueError,
     "mask requires a gradient"),
    (lambda: redblue.torch.attention(q[:2], k, v[:, :4], is_causal=True), ValueError, "k and v have shapes (2, 5, 3) and"),
    (lambda: redblue.torch.attention(q[:2], k, v, threads=0), redblue.UsageError, "threads is 0"),
    (lambda: redblue.torch.attention(q[:2], k, v, scale=0.0), redblue.UsageError, "scale is 0.0"),
])
def test_bad_calls(call, error, words):
    with pytest.raises(error) as failed:
        call()
    assert words in str(failed.value) and "\n" not in str(failed.value)
