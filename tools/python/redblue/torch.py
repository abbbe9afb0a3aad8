"""Attention for PyTorch: the arguments of torch.nn.functional.scaled_dot_product_attention, computed by redblue on
the CPU, with gradients.

>>> import torch, redblue.torch
>>> q, k, v = torch.randn(3, 2, 4, 50, 16, requires_grad=True)
>>> o = redblue.torch.attention(q, k, v, is_causal=True)
>>> o.sum().backward()
"""

from __future__ import annotations

import math
import warnings

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import Mask, attention as _attention, cost as _cost, gradients as _gradients

_said = set()
_counting = []  # each CountBytes at work, the innermost last


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, options):
        tensors = tuple(map(_float32, (q, k, v)))
        o, lse = map(torch.from_numpy, _attention(*(each.numpy() for each in tensors), mask=mask, **options))
        _count("attention", tensors, mask)
        ctx.save_for_backward(*tensors, o, lse)
        ctx.mask, ctx.options = mask, options
        return o.to(q.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do):
        q, k, v, o, lse = (each.detach().numpy() for each in ctx.saved_tensors)
        made = _gradients(q, k, v, _float32(do).numpy(), O=o, L=lse, mask=ctx.mask, **ctx.options)
        _count("gradients", ctx.saved_tensors, ctx.mask)
        return (*(torch.from_numpy(each).to(do.dtype) for each in made), None, None)


def attention(q, k, v, mask=None, is_causal=False, scale=None, enable_gqa=False, threads=None, M="auto"):
    """softmax(scale q k^T) v, for q (..., heads, n, d), k (..., heads, m, d) and v (..., heads, m, dv).

    mask: None; a tensor of bool, True where a query meets a key, that broadcasts to (..., heads, n, m); a tensor of
        numbers that are all 0 or -inf; the offsets of documents, a tensor of integers; a text such as "window:512,0"
        or a redblue.Mask; a BlockMask of FlexAttention, or its as_tuple(). A query that meets no key gets 0.
    is_causal: query i meets keys 0 to i, as in PyTorch. The mask "causal" lets the last query meet the last key.
    scale: 1 / sqrt(d) if left out.
    enable_gqa: k and v may have fewer heads than q.
    threads: as many as torch.get_num_threads() if left out. The bits of a result do not depend on it.
    M: words of fast memory for each thread, such as "64K" or "L2*0.25"; "auto" is what `redblue tune` found for the
        nearest problem, else half of L2, and for gradients a quarter of L3.

    The gradients of q, k and v are computed. Tensors of other types than float32 are converted, and so are results.
    """
    for name, each in (("q", q), ("k", k), ("v", v)):
        if not isinstance(each, torch.Tensor):
            raise TypeError(f"{name} is {type(each).__name__}, not a tensor")
        if each.device.type != "cpu":
            raise ValueError(f"{name} is on {each.device}; redblue computes on the CPU: give {name}.cpu()")
        if not each.is_floating_point() or each.dtype != q.dtype:
            raise ValueError(f"{name} is of {each.dtype}, and q of {q.dtype}; expected the same type of real numbers")
    if q.dim() < 2 or k.dim() != q.dim():
        raise ValueError(f"q and k have shapes {tuple(q.shape)} and {tuple(k.shape)}; expected (..., heads, n, d)")
    if q.dim() > 2 and k.shape[-3] != q.shape[-3] and not enable_gqa:
        raise ValueError(f"q has {q.shape[-3]} heads and k has {k.shape[-3]}; give enable_gqa=True to let heads of q "
                         "share heads of k and v")
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(f"k and v have shapes {tuple(k.shape)} and {tuple(v.shape)}; expected as many rows and heads")
    n, m = q.shape[-2], k.shape[-2]
    if is_causal:
        if mask is not None:
            raise ValueError("mask and is_causal are both given; give one, for example mask='causal & window:9,0'")
        k, v = k[..., :n, :], v[..., :n, :]  # later keys meet no query
        mask = "causal" if n <= m else f"window:inf,{n - m}"
    else:
        mask = _mask(mask, q.shape[:-2], n, m)
    if q.dtype != torch.float32 and q.dtype not in _said:
        _said.add(q.dtype)
        warnings.warn(f"redblue computes in float32: tensors of {q.dtype} are converted, and results back", stacklevel=2)
    threads = torch.get_num_threads() if threads is None else threads
    return _Attention.apply(q, k, v, mask, {"scale": scale, "M": M, "threads": threads})


class CountBytes(TorchDispatchMode):
    """Adds up the bytes that operations read and write inside a `with` block, and in the backward passes called there.

    An operation reads each of its tensors once, and writes its results; a view moves nothing. redblue.torch.attention
    counts as redblue.cost says: the bytes of its operands and results; with M, those of the plan that moves the fewest.

    >>> x = torch.ones(100, 10)
    >>> with redblue.torch.CountBytes() as count:
    ...     y = x @ x.T
    >>> count.bytes, count.by_operation
    (48000, {'aten.mm': 48000})
    """

    def __init__(self, M=None):
        super().__init__()
        self.M = M
        self.by_operation = {}

    @property
    def bytes(self):
        return sum(self.by_operation.values())

    def __enter__(self):
        _counting.append(self)
        return super().__enter__()

    def __exit__(self, *raised):
        _counting.remove(self)
        return super().__exit__(*raised)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        name, schema = str(function).rpartition(".")[0], function._schema
        aliases = [each.alias_info for each in schema.returns]
        is_view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
        if not is_view and "empty" not in name:
            self.add(name, sum(map(_bytes_of, _tensors([args, kwargs]))) + sum(map(_bytes_of, _tensors(made))))
        return made

    def add(self, name, number):
        self.by_operation[name] = self.by_operation.get(name, 0) + number


def _tensors(value):
    """The tensors in lists and dicts, each once."""
    found = {}

    def look(each):
        if isinstance(each, torch.Tensor):
            found[id(each)] = each
        elif isinstance(each, dict):
            look(list(each.values()))
        elif isinstance(each, (list, tuple)):
            for item in each:
                look(item)

    look(value)
    return found.values()


def _bytes_of(tensor):
    """A tensor that repeats elements, as expand() makes, has fewer than its shape says."""
    stored = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        stored *= size if stride or not size else 1
    return stored * tensor.element_size()


def _count(problem, tensors, mask):
    if not _counting:
        return
    q, k, v = tensors[:3]
    sizes = {"n": q.shape[-2], "m": k.shape[-2], "d": q.shape[-1], "dv": v.shape[-1], "M": _counting[-1].M}
    heads, kv_heads = q.shape[:-2], k.shape[:-2]
    masks = [mask]
    if isinstance(mask, numpy.ndarray) and mask.ndim > 2:
        shape = mask.shape[-2:]
        if all(size == 1 for size in mask.shape[:-2]):
            masks = [mask.reshape(shape)]
        else:  # one call for each mask, as in calls.py
            alike = mask.shape[-3] == 1
            masks = numpy.broadcast_to(mask, (*heads[:-1], 1 if alike else heads[-1], *shape)).reshape(-1, *shape)
            heads, kv_heads = (heads[-1:], kv_heads[-1:]) if alike else ((1,), (1,))
    number = sum(_cost(problem, mask=each, heads=math.prod(heads), kv_heads=math.prod(kv_heads), **sizes).moved_bytes
                 for each in masks)
    _counting[-1].add(f"redblue.{problem}", number)


def _float32(tensor):
    return tensor.detach().to(torch.float32).contiguous()


def _mask(mask, lead, n, m):
    """The mask as redblue.attention() takes it."""
    if mask is None or isinstance(mask, (str, Mask)):
        return mask
    if hasattr(mask, "mask_mod") or isinstance(mask, tuple) and callable(mask[-1]):  # of FlexAttention
        return _evaluated(mask.mask_mod if hasattr(mask, "mask_mod") else mask[-1], lead, n, m)
    mask = torch.as_tensor(mask).cpu()
    if mask.requires_grad:
        raise ValueError("mask requires a gradient, and redblue adds no bias to scores; expected a tensor of bool, True "
                         "where a query meets a key")
    if mask.is_floating_point():
        if not ((mask == 0) | (mask == -numpy.inf)).all():
            raise ValueError("mask has numbers other than 0 and -inf, which redblue does not add to scores; expected a "
                             "tensor of bool, True where a query meets a key")
        mask = mask == 0
    return mask.numpy().copy()  # the backward pass needs it as it is now


def _evaluated(mask_mod, lead, n, m):
    """A matrix of bool for each batch and head, of a function of batch, head, query and key."""
    heads = lead[-1] if lead else 1
    batches = int(numpy.prod(lead[:-1], dtype=int))
    queries, keys = torch.arange(n)[:, None], torch.arange(m)[None, :]

    def pairs(batch, head):
        return torch.as_tensor(mask_mod(torch.tensor(batch), torch.tensor(head), queries, keys)).expand(n, m).numpy()

    places = [(batch, head) for batch in range(batches) for head in range(heads)]
    first = pairs(0, 0)
    if all(numpy.array_equal(first, pairs(*place)) for place in places):  # usual, and needs no more memory
        return first.copy()
    return numpy.array([pairs(*place) for place in places]).reshape(*lead, n, m)
