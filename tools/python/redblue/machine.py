"""Kernels of your own: a fast memory of exactly M words, whose tiles are NumPy arrays."""

import numbers
import os
import types

import numpy

from . import (InputError, Mask, Nest, Result, UsageError, _differences, _is_bfloat16, _is_tensor, _kind, _redblue, _text,
               _viewed)


class Machine:
    """A fast memory of M words above a slow memory. Only read() and write() move words, and both are counted.

    >>> import numpy, redblue
    >>> A = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    >>> B = numpy.empty((3, 4), numpy.float32)
    >>> machine = redblue.Machine(16)
    >>> a_slow, b_slow = machine.matrix("A", A), machine.matrix("B", B)
    >>> for I in redblue.blocks(4, 2):
    ...     with machine.phase("transpose"):
    ...         a = machine.read(a_slow[I])
    ...         b = machine.new("b", 3, 2, kind="operands")
    ...         b[...] = a.T
    ...         machine.write(b, b_slow[:, I])
    ...         del a, b
    >>> bool((B == A.T).all()), machine.report().total.io, machine.live
    (True, 24, 0)

    A tile is a NumPy array in fast memory. It takes its words until the last array that shows them is gone: at the end of
    its function, or by `del`. A name that is bound again in a loop keeps its old tile until the new one is there, so end
    the body of a loop with `del`. NumPy's own results are outside of fast memory and not counted: use out=tile.
    A machine belongs to one thread at a time.
    """

    def __init__(self, M):
        self._own = _redblue.Machine(_text("M", M))

    @property
    def M(self):
        """The words of fast memory."""
        return self._own.M

    @property
    def live(self):
        """The words that tiles take now."""
        return self._own.live

    def matrix(self, name, array, *, kind="operands"):
        """A matrix in slow memory: the array itself, of float32 and one or two dimensions, with any strides.

        It is a NumPy array, a PyTorch tensor on the CPU, or another array that NumPy takes by DLPack. It is never copied.
        matrix[0:64], matrix[0:64, 16:32] and matrix[blocks(...)] are blocks for read() and write().
        kind: what the words are: operands, scores, sums or indices.
        """
        words = _in_place(name, array)
        if words.ndim not in (1, 2) or 0 in words.shape:
            raise InputError(f"{name} has shape {words.shape}; expected one or two dimensions, none of size 0: a matrix for "
                             "each head")
        name = _text("name", name)
        _check_types(name=(name, _is_text, "a text"))
        return _redblue.slow_matrix(name, words, kind)

    def read(self, block):
        """Moves a block to fast memory, and returns its tile."""
        return self._own.read(block)

    def new(self, name, rows, cols=None, *, value=0.0, kind="sums"):
        """A tile of equal words, which moves nothing. Without `cols` it has one dimension."""
        try:
            return self._own.make(name, rows, cols, value, kind)
        except TypeError:
            _check_types(name=(name, _is_text, "a text"), rows=(rows, _is_whole, "a whole number"),
                         cols=(1 if cols is None else cols, _is_whole, "a whole number, or None"),
                         value=(value, _is_real, "a number"))
            raise

    def write(self, tile, block):
        """Moves a tile to a block of its shape. The tile lives on."""
        self._own.write(tile, block)

    def phase(self, name):
        """`with machine.phase("core"):` counts the moves of the body in that phase. Phases nest."""
        return _Phase(self._own, name)

    def weigh(self, kind, words):
        """Each word of this kind takes `words` words, in M and when moved. For a machine that has not worked yet."""
        try:
            self._own.weigh(kind, words)
        except TypeError:
            _check_types(words=(words, _is_whole, "a whole number"))
            raise

    def report(self):
        """The words of each phase so far, as a result with `phases`, `total`, to_pandas() and compare()."""
        data, table, csv = self._own.report()
        return Result(types.SimpleNamespace(data=data, table=table, csv=csv, words=[], code=0), {})

    def check(self, nest, *, mask=None, **sizes):
        """Refuses counts that are not those of a nest: in each phase its words, matrix by matrix, and its peak.

        nest: a redblue.Nest, a file of one, or a name such as "nest:flash-attention-2-forward".
        mask: the text of a mask, with which the nest is counted. Each query and each key meets one at least.
        sizes: the extents and the block sizes of the nest: n=256, d=64, Br=64. m is n, and dv is d if left out.
        A nest knows the weight of sums only: the words of other kinds weigh 1.

        >>> nest = redblue.Nest("kernel copy\\nmatrix A[n,d] -> B[n,d]\\nfor I in n by Br\\n"
        ...                     "  read A[I,d]\\n  write A[I,d] as B")
        >>> machine = redblue.Machine(8)
        >>> A, B = (machine.matrix(name, numpy.ones((5, 4), numpy.float32)) for name in "AB")
        >>> for I in redblue.blocks(5, 2):
        ...     machine.write(machine.read(A[I]), B[I])
        >>> machine.check(nest, n=5, d=4, Br=2)
        """
        if isinstance(nest, Nest):
            text, file = nest.text, nest.name
        elif isinstance(nest, str) and nest.startswith("nest:"):
            text, file = _redblue.nest_text(nest)
        elif isinstance(nest, (str, os.PathLike)):
            try:
                with open(nest, encoding="utf-8") as opened:
                    text, file = opened.read(), os.fsdecode(nest)
            except (OSError, UnicodeError) as error:
                why = getattr(error, "strerror", None) or error
                raise InputError(f"cannot read {os.fsdecode(nest)}: {why}; expected a redblue.Nest, the file of one, or a name "
                                 "such as 'nest:flash-attention-2-forward'. redblue.plan(loops=KERNEL, format='nest') with n, d "
                                 "and M returns the text for a redblue.Nest of a kernel of redblue") from None
        else:
            raise UsageError(f"nest is {_kind(nest)}; expected a redblue.Nest, or the name of a file")
        if mask is not None and not isinstance(mask, (str, Mask)):
            raise UsageError(f"mask is {_kind(mask)}; expected a text, such as 'causal'")
        for name, default in (("m", "n"), ("dv", "d")):
            if default in sizes:
                sizes.setdefault(name, sizes[default])
        for name in ("heads", "kv_heads", "group"):
            sizes.setdefault(name, 1)
        self._own.check(text, file, [(name, _text(name, size)) for name, size in sizes.items()],
                        None if mask is None else str(mask))

    def __repr__(self):
        return f"Machine(M={self.M}, live={self.live})"


def _in_place(name, array):
    """The array as NumPy sees it, where it is: words written to a copy would be lost."""
    words = None if _is_bfloat16(array) else _viewed(name, array)  # NumPy sees a copy of bfloat16
    if words is None:
        different = ["bfloat16, not float32"]
    elif not (isinstance(array, numpy.ndarray) or _is_tensor(array) or hasattr(array, "__dlpack__")):
        different = [f"{_kind(array)}, not an array"]
    else:
        different = [each for each in _differences(words) if each != "not in C order"]
    if different:
        remedy = f"{name}.float()" if _is_tensor(array) else "numpy.asarray(array, numpy.float32)"
        raise InputError(f"{name} is {', '.join(different)}; a machine moves words of float32 where they are: give {remedy}")
    return words


def _is_text(value):
    return isinstance(value, str) and value.encode("utf-8", "ignore").decode() == value  # UTF-8 has no lone surrogates


def _is_whole(value):
    return isinstance(value, numbers.Integral) and abs(int(value)) < 2**63


def _is_real(value):
    return isinstance(value, numbers.Real)


def _check_types(**arguments):
    """Refuses the first argument that is not what is expected. Each has its value, a check of it, and what is expected."""
    for name, (value, is_right, expected) in arguments.items():
        if not is_right(value):
            raise UsageError(f"{name} is {_kind(value)}; expected {expected}") from None


class _Phase:
    __slots__ = ("_machine", "_name", "_open")

    def __init__(self, machine, name):
        if not isinstance(name, str):
            raise UsageError(f"a phase is {_kind(name)}; expected its name")
        self._machine, self._name, self._open = machine, name, []

    def __enter__(self):
        self._open.append(self._machine.enter(self._name))

    def __exit__(self, *raised):
        self._machine.leave(self._open[-1])  # may refuse
        self._open.pop()


def blocks(extent, step):
    """The slices 0:step, step:2 * step and so on that cut `extent`. The last one may be smaller.

    >>> list(redblue.blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if not all(isinstance(size, numbers.Integral) and size >= 1 for size in (extent, step)):
        raise UsageError(f"blocks of {_kind(step)} in {_kind(extent)}: expected two whole numbers from 1")
    return [slice(begin, min(begin + step, extent)) for begin in range(0, extent, step)]
