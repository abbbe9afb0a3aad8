"""The cost of an attention call, by formulas alone."""

from __future__ import annotations

import dataclasses
import functools
import numbers

from . import Mask, Nest, UsageError, _is_array, _is_sparse, _kind, _redblue, _text, _viewed
from .calls import _mask


@dataclasses.dataclass(frozen=True)
class Cost:
    """What an attention call costs, of all heads and sequences; cost() makes it.

    Without M, the members from `M` to `beyond_M` are None. For a batch, `kernel`, `blocks` and `bound` are None if they
    differ between its sequences.
    """

    flops: int  #: of matrix products, each once: two for each multiply-add of a live pair
    exps: int  #: one for each live pair
    word: int  #: bytes of an element
    compulsory_bytes: int  #: inputs and results, each once: no algorithm moves fewer
    operand_bytes: int  #: the same, with O and L, which a backward pass may read
    M: int | None = None  #: words of fast memory
    bytes: int | None = None  #: that the kernel moves with M words
    bound_bytes: int | None = None  #: proven: no algorithm with M words moves fewer
    bound: str | None = None  #: the bound's name, as in docs/theory/bounds.md
    kernel: str | None = None
    blocks: dict[str, int] | None = dataclasses.field(default=None, hash=False)
    beyond_M: int | None = None  #: words beyond M that the tiles need, else 0
    parts: tuple[Cost, ...] = ()  #: of a batch: the cost of each sequence

    @property
    def moved_bytes(self):
        """The bytes of the kernel; without M, of the operands."""
        return self.operand_bytes if self.bytes is None else self.bytes

    @property
    def intensity(self):
        """Flops for each of the moved bytes."""
        return self.flops / self.moved_bytes

    def to_dict(self):
        return dataclasses.asdict(self)

    def for_jax(self):
        """The arguments of jax.experimental.pallas.CostEstimate."""
        return {"flops": self.flops, "transcendentals": self.exps, "bytes_accessed": self.moved_bytes}

    def for_triton(self, name):
        """What a launch_metadata function of Triton returns, for the profiler Proton."""
        return {"name": name, f"flops{8 * self.word}": self.flops, "bytes": self.moved_bytes}


def cost(problem="attention", *, n, d, m=None, dv=None, heads=None, kv_heads=None, sharing=None, mask=None, word=None,
         sums=None, M=None, device=None, tiles=None):
    """Flops, exponentials and bytes of an attention call, by formulas: nothing runs, and no array is needed.

    problem: "attention" (O and L of Q, K and V), or "gradients" (dQ, dK and dV, after a forward pass).
    n, m: numbers of queries and keys (m: n if left out); in a batch of several lengths, a list of them.
    d, dv: width of queries and keys; of values, if it differs.
    heads, kv_heads: heads of queries in all batches (1 if left out); heads of keys and values, if fewer.
    sharing: "kv": values are keys. With a smaller dv they are the first dv columns of the keys, as in MLA.
    mask: a text such as "causal", a redblue.Mask, a matrix of bool, a sparse matrix, or offsets of documents.
    word, sums: bytes of an element, 2 or 4 (4 if left out); of a running sum in fast memory (as many if left out).
    M or device: words of fast memory, such as 65536, "64K" or "163KiB"; or a device such as "a100". Without them, the
        result has no `bytes` and no `bound_bytes`.
    tiles: the kernel whose bytes to count: another project's, by name ("flash-attention-2"), a redblue.Nest, or one of
        ours ("attention/rows"). Left out: the plan that moves the fewest bytes.

    >>> call = redblue.cost("attention", n=8192, d=64, M="48K")
    >>> call.flops, call.operand_bytes, call.bound_bytes, call.bytes
    (17179869184, 8421376, 89706036, 96491008)
    >>> redblue.cost("attention", n=8192, d=64, M="48K", tiles="flash-attention-2").bytes
    272662528
    """
    if problem not in ("attention", "gradients"):
        raise UsageError(f"problem is {_kind(problem)}; expected 'attention' or 'gradients'")
    given = {"d": d, "dv": dv, "heads": heads, "kv_heads": kv_heads, "sharing": sharing, "word": word, "sums": sums,
             "M": M, "device": device}
    settings = [("problem", problem), *((key, _text(key, value)) for key, value in given.items() if value is not None)]
    tiles = _tiles(tiles, M is None and device is None)
    lengths = [_lengths("n", n), _lengths("m", n if m is None else m)]
    several = max(map(len, lengths))
    if any(len(each) not in (1, several) for each in lengths):
        raise UsageError(f"n has {len(lengths[0])} lengths, and m has {len(lengths[1])}; expected as many, or one")
    batch = isinstance(n, (list, tuple)) or isinstance(m, (list, tuple)) or several > 1
    mask, kept = _mask_of(mask, n, m, batch)
    kept = kept and M != "auto" and not any(map(_is_file, (device, tiles)))
    look_up = _kept if kept else _redblue.cost
    parts = [_cost(look_up((*settings, ("n", n_k), ("m", m_k)), mask, tiles))
             for n_k, m_k in zip(*(each * (several // len(each)) for each in lengths))]
    return _sum(parts) if batch else parts[0]


# The latest costs. A plan takes milliseconds, and a call that is known some microseconds.
_kept = functools.lru_cache(maxsize=4096)(lambda *call: _redblue.cost(*call))


def _lengths(name, value):
    """The texts of one length, or of several."""
    if isinstance(value, (str, numbers.Integral)):
        return [_text(name, value)]
    if isinstance(value, (list, tuple)):
        lengths = [_text(name, item) for item in value]
    elif _is_array(value) and not _is_sparse(value):
        array = _viewed(name, value)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise UsageError(f"{name} is {_kind(value)}; expected a whole number, or several")
        lengths = [str(item) for item in array.reshape(-1).tolist()]
    else:
        lengths = [_text(name, value)]
    if not lengths:
        raise UsageError(f"{name} has no lengths; expected one or more")
    return lengths


def _tiles(tiles, without_M):
    if tiles is None:
        return ""
    if not isinstance(tiles, (str, Nest)) or not str(tiles):
        raise UsageError(f"tiles is {_kind(tiles)}; expected a name, such as 'flash-attention-2', or a redblue.Nest")
    if without_M:
        raise UsageError("tiles need a fast memory: give M=, such as M='64K', or device=")
    return str(tiles)


def _is_file(text):
    return isinstance(text, str) and (text.startswith(("file:", "./", "/")) or text.endswith((".json", ".nest")))


def _mask_of(mask, n, m, batch):
    """The mask for the module, and whether it is the same in later calls."""
    if mask is None or isinstance(mask, (str, Mask)):
        text = "" if mask is None else str(mask)
        return text, not any(of_file in text for of_file in ("documents", "blocks", "pattern"))
    m = n if m is None else m
    if batch or not isinstance(n, numbers.Integral) or not isinstance(m, numbers.Integral):
        raise UsageError("mask of an array: n and m are whole numbers then; with several lengths, give a text such as "
                         "'causal'")
    return _mask(mask, (), int(n), int(m)), False


def _cost(found):
    """The result for one sequence, of what the module returns, in words."""
    word, moved = found["word"], found["moved"]
    work = {"flops": found["flops"], "exps": found["exps"], "word": word,
            "compulsory_bytes": found["compulsory"] * word, "operand_bytes": found["operands"] * word}
    if moved is None:
        return Cost(**work)
    return Cost(**work, M=moved["M"], bytes=moved["words"] * word, bound_bytes=moved["bound_words"] * word,
                bound=moved["bound"], kernel=moved["kernel"], blocks=dict(moved["blocks"]), beyond_M=moved["beyond_M"])


def _sum(parts):
    """The cost of a batch. Bounds add up: sequences share no words."""
    def total(name):
        return None if getattr(parts[0], name) is None else sum(getattr(part, name) for part in parts)

    def common(name):
        values = [getattr(part, name) for part in parts]
        return values[0] if all(value == values[0] for value in values) else None

    added = ("flops", "exps", "compulsory_bytes", "operand_bytes", "bytes", "bound_bytes")
    return Cost(**{name: total(name) for name in added},
                **{name: common(name) for name in ("word", "M", "bound", "kernel", "blocks")},
                beyond_M=None if parts[0].beyond_M is None else max(part.beyond_M for part in parts), parts=tuple(parts))
