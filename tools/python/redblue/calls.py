"""Attention and its gradients on arrays, in one call without a report."""

import math
import numbers

import numpy

from . import InputError, Mask, UsageError, _float32, _is_array, _is_sparse, _kind, _redblue, _viewed


def attention(Q, K, V, *, mask=None, scale=None, M=None, threads=1, kernel=None, objective="time"):
    """O = softmax(scale Q K^T) V, and L, the logarithm of the sum of exp(score) of each query.

    Q is (..., n, d), K (..., m, d) and V (..., m, dv); other sizes in front are the same, but the last of them,
    the heads, may be fewer in K and V: each head of keys then serves as many heads of queries. O is (..., n, dv)
    and L (..., n). A query that meets no key has O = 0 and L = -infinity.

    mask: a text such as "causal", a redblue.Mask, a matrix of bool (True: the query meets the key) that broadcasts
        to (..., n, m), a sparse matrix of SciPy, or the offsets of documents: [0, 40, 100]. With "causal" the last
        query meets the last key.
    scale: the factor of the scores; 1 / sqrt(d) if left out.
    M: words of fast memory for each thread, such as 65536, "64K" or "L2*0.25"; if left out, what `redblue tune` found
        for the nearest problem, else half of L2, and for gradients a quarter of L3.
    kernel: a name such as "attention/rows"; the fastest for this problem if left out.
    objective: how to choose the kernel and its blocks: "time", "balanced" or "words".

    >>> import numpy, redblue
    >>> Q, K, V = numpy.random.default_rng(1).standard_normal((3, 2, 8, 100, 16), numpy.float32)
    >>> O, L = redblue.attention(Q, K, V, mask="causal")
    >>> O.shape, L.shape, bool(numpy.allclose(O[:, :, 0], V[:, :, 0]))
    ((2, 8, 100, 16), (2, 8, 100), True)
    """
    call = _Call(Q, K, V, mask, scale, M, threads, kernel, objective)
    O = numpy.empty((*call.Q.shape[:2], call.V.shape[2]), numpy.float32)
    L = numpy.empty(call.Q.shape[:2], numpy.float32)
    for queries, keys, pairs in call.parts():
        _redblue.attention(call.Q[queries], call.K[keys], call.V[keys], O[queries], L[queries], pairs, *call.options)
    return O.reshape(*call.lead, *O.shape[1:]), L.reshape(*call.lead, L.shape[1])


def gradients(Q, K, V, dO, *, O=None, L=None, mask=None, scale=None, M=None, threads=1, kernel=None,
              objective="time"):
    """dQ, dK and dV: the gradients of a loss, where dO is its gradient with respect to O.

    O and L come from attention(); without them, they are computed again. Other arguments are as for attention().

    >>> import numpy, redblue
    >>> Q, K, V, dO = numpy.random.default_rng(1).standard_normal((4, 6, 50, 8), numpy.float32)
    >>> O, L = redblue.attention(Q, K[:2], V[:2], mask="causal")
    >>> dQ, dK, dV = redblue.gradients(Q, K[:2], V[:2], dO, O=O, L=L, mask="causal")
    >>> dQ.shape, dK.shape
    ((6, 50, 8), (2, 50, 8))
    """
    call = _Call(Q, K, V, mask, scale, M, threads, kernel, objective)
    if (O is None) != (L is None):
        raise UsageError("O without L, or L without O: give both, or neither")
    n, dv = call.Q.shape[1], call.V.shape[2]
    dO = call.of_queries("dO", dO, (n, dv))
    known = () if O is None else (call.of_queries("O", O, (n, dv)), call.of_queries("L", L, (n,)))
    dQ, dK, dV = (numpy.zeros(array.shape, numpy.float32) for array in (call.Q, call.K, call.V))
    for queries, keys, pairs in call.parts():
        both = [array[queries] for array in known] or (None, None)
        of_keys = [array[keys] for array in (dK, dV)]
        # Heads of queries with masks of their own may share a head of keys: their sum is the gradient.
        made = [numpy.empty_like(array) for array in of_keys] if call.has_own_masks() else of_keys
        _redblue.gradients(call.Q[queries], call.K[keys], call.V[keys], dO[queries], *both, dQ[queries], *made, pairs,
                           *call.options)
        if call.has_own_masks():
            of_keys[0] += made[0]
            of_keys[1] += made[1]
    return (dQ.reshape(*call.lead, *dQ.shape[1:]), dK.reshape(*call.kv_lead, *dK.shape[1:]),
            dV.reshape(*call.kv_lead, *dV.shape[1:]))


class _Call:
    """The checked arguments. Arrays have one dimension of heads: of all batches, one after another."""

    def __init__(self, Q, K, V, mask, scale, M, threads, kernel, objective):
        Q, K, V = _operand("Q", Q), _operand("K", K), _operand("V", V)
        for name, array in (("Q", Q), ("K", K), ("V", V)):
            if array.ndim < 2:
                raise InputError(f"{name} has shape {array.shape}; expected at least two dimensions: rows and columns")
        self.lead, self.kv_lead = Q.shape[:-2], K.shape[:-2]
        heads, kv_heads = (self.lead or (1,))[-1], (self.kv_lead or (1,))[-1]
        if (Q.shape[-1] != K.shape[-1] or K.shape[:-1] != V.shape[:-1] or len(self.lead) != len(self.kv_lead)
                or self.lead[:-1] != self.kv_lead[:-1]):
            raise InputError(f"Q, K and V have shapes {Q.shape}, {K.shape} and {V.shape}; expected (..., n, d), "
                             "(..., m, d) and (..., m, dv) with the same sizes in front")
        if 0 in Q.shape or 0 in K.shape or 0 in V.shape:
            raise InputError(f"Q, K and V have shapes {Q.shape}, {K.shape} and {V.shape}; expected no size of 0")
        if heads % kv_heads:
            raise InputError(f"K and V have {kv_heads} heads, and Q has {heads}: expected a divisor of {heads}")
        self.heads, self.kv_heads = heads, kv_heads
        self.Q, self.K, self.V = (array.reshape(-1, *array.shape[-2:]) for array in (Q, K, V))
        self.mask = _mask(mask, self.lead, Q.shape[-2], K.shape[-2])
        if scale is not None and not (isinstance(scale, numbers.Real) and 0 < scale < math.inf):
            raise UsageError(f"scale is {_kind(scale)}; expected a positive finite number")
        if not isinstance(threads, numbers.Integral) or isinstance(threads, bool) or threads < 1:
            raise UsageError(f"threads is {_kind(threads)}; expected a whole number from 1")
        if M is not None and (isinstance(M, bool) or not isinstance(M, (str, numbers.Integral))):
            raise UsageError(f"M is {_kind(M)}; expected words, such as 65536, '64K' or 'L2*0.25'")
        if kernel is not None and not isinstance(kernel, str):
            raise UsageError(f"kernel is {_kind(kernel)}; expected a name, such as 'attention/rows'")
        self.options = (None if scale is None else float(scale), None if M in (None, "auto") else str(M), int(threads),
                        kernel or "", str(objective))

    def of_queries(self, name, value, shape):
        """Another array of all queries, with one dimension of heads."""
        array = _operand(name, value)
        if array.shape != (*self.lead, *shape):
            raise InputError(f"{name} has shape {array.shape}; expected {(*self.lead, *shape)}")
        return array.reshape(-1, *shape)

    def has_own_masks(self):
        """Whether batches or heads have masks of their own."""
        return isinstance(self.mask, numpy.ndarray) and self.mask.ndim > 2

    def parts(self):
        """The heads that one call computes, as slices of queries and of keys, and their mask."""
        if not self.has_own_masks():
            yield slice(None), slice(None), self.mask
            return
        alike = self.mask.shape[-3] == 1  # for all heads of a batch
        for batch, index in enumerate(numpy.ndindex(self.lead[:-1])):
            masks = self.mask[tuple(min(at, size - 1) for at, size in zip(index, self.mask.shape))]
            if alike:
                yield (slice(batch * self.heads, (batch + 1) * self.heads),
                       slice(batch * self.kv_heads, (batch + 1) * self.kv_heads), masks[0])
                continue
            for head in range(self.heads):
                query = batch * self.heads + head
                key = batch * self.kv_heads + head // (self.heads // self.kv_heads)
                yield slice(query, query + 1), slice(key, key + 1), masks[head]


def _operand(name, value):
    if _is_sparse(value) or not _is_array(value):
        raise InputError(f"{name} is {_kind(value)}; expected a dense array of numbers")
    return _float32(name, value)


def _mask(mask, lead, n, m):
    """None, a text, the offsets of documents, a matrix of bool, or one of the dimensions of `lead` and n x m."""
    if mask is None or isinstance(mask, (str, Mask)):
        return None if mask is None else str(mask)
    array = mask.toarray() != 0 if _is_sparse(mask) else _viewed("mask", mask)
    if array.ndim == 1 and array.dtype.kind in "iu":
        offsets = array.astype(numpy.int64)
        if n != m or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != n or (numpy.diff(offsets) < 0).any():
            raise InputError(f"mask of documents: expected offsets that begin with 0, never decrease and end with n = m; "
                             f"n is {n} and m is {m}")
        return offsets
    if array.dtype != bool:
        raise InputError(f"mask of an array: elements of dtype {array.dtype}; expected bool, True where a query meets a "
                         "key, or the offsets of documents")
    if array.ndim < 2:
        raise InputError(f"mask has shape {array.shape}; expected one that broadcasts to {(*lead, n, m)}")
    try:
        numpy.broadcast_to(array, (*lead, n, m))
    except ValueError:
        raise InputError(f"mask has shape {array.shape}; expected one that broadcasts to {(*lead, n, m)}") from None
    array = numpy.broadcast_to(array, (*array.shape[:-2], n, m))
    if all(size == 1 for size in array.shape[:-2]):
        return array.reshape(n, m)
    return array.reshape(*(1,) * (len(lead) + 2 - array.ndim), *array.shape)
