"""How many words does an attention kernel move between a fast memory of exactly M words and the slow memory
behind it? This package is the command `redblue` as functions: one for each of its subcommands, with its
options as keywords, and its JSON as an object.

>>> import redblue
>>> counted = redblue.count("backward/small", n=1000, d=48, M=1024)
>>> counted.total.io
28132608
>>> counted.phases[0].path, counted.phases[0].reads
('phase1/S', 289152)
>>> plan = redblue.plan(problem="backward", n=4096, d=64, M="64K")
>>> plan.plan.words < min(other.words for other in plan.runners_up)
True

`run` takes arrays, and returns those that the kernel makes. float32 in C order is used where it is; others
are converted (see ConversionWarning). Shapes say n, m, d and heads:

>>> import numpy
>>> Q, K, V, dO = numpy.random.default_rng(1).standard_normal((4, 128, 16), numpy.float32)
>>> ran = redblue.run("gradients/auto", Q=Q, K=K, V=V, dO=dO, M="4K", mask="causal")
>>> ran.dQ.shape, ran.dQ.dtype
((128, 16), dtype('float32'))

Errors have the command's messages, with options as keywords:

>>> redblue.count("backward/small", n=1000, d=48, M=2)
Traceback (most recent call last):
    ...
redblue.FastMemoryTooSmall: backward/small does not fit in M = 2 words: for n = 1000, m = 1000, d = 48 it needs M of at least 5

While a call works, other threads of Python keep running, and may call, too; Ctrl-C ends it. Lines that the command
says on standard error come to the logger "redblue": as information where all is well, else as warnings.
help(redblue.count) lists the options.
"""

from __future__ import annotations

import difflib
import inspect
import io
import itertools
import json
import keyword
import logging
import numbers
import operator
import os
import re
import tempfile
import types
import warnings
from collections.abc import Mapping, MappingView, Set

import numpy

from . import _redblue, html

__version__ = _redblue.version


class Error(Exception):
    """A call failed, for the reason that the command would have given."""


class UsageError(Error):
    """A call asks for something that does not exist."""


class InputError(Error):
    """A file or an array holds what is no input, or contradicts another.

    >>> redblue.run("attention/auto", Q=numpy.ones((8, 4)), K=numpy.ones((8, 2)), V=numpy.ones((8, 2)), M=999)
    Traceback (most recent call last):
        ...
    redblue.InputError: Q of an array makes d = 4, but K of an array makes d = 2
    """


class FastMemoryTooSmall(UsageError):
    """M is less than the kernel needs.

    >>> try:
    ...     redblue.count("backward/small", n=64, d=8, M=2)
    ... except redblue.FastMemoryTooSmall as error:
    ...     redblue.count("backward/small", n=64, d=8, M=error.least_M).M
    5
    """

    #: The least M that is enough, or None if no M is enough or the least M is unknown. With several levels, it is for
    #: the level that the message names.
    least_M: int | None = None


class ConversionWarning(UserWarning):
    """An array was copied, for it is not of float32 in C order. Ignored unless
    warnings.simplefilter("always", redblue.ConversionWarning) or the like asks for it."""


warnings.filterwarnings("ignore", category=ConversionWarning, append=True)  # a user's own filters come first
_logger = logging.getLogger("redblue")


class Record(Mapping):
    """An object of a JSON document: its members are attributes and items.

    >>> total = redblue.count("forward/flash", n=64, d=8, M=512).total
    >>> total.reads == total["reads"]
    True
    """

    def __init__(self, members):
        self._members = members

    def to_dict(self):
        """The document as json.loads() has it, of dicts and lists."""
        return self._members

    def __getitem__(self, name):
        return _record(self._members[name])

    def __getattr__(self, name):
        if name.startswith("_"):  # copy and pickle ask for such names before the members exist
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: {self._what_it_has()}") from None

    def _what_it_has(self):
        return "it has " + ", ".join(self)

    def __iter__(self):
        return iter(self._members)

    def __len__(self):
        return len(self._members)

    def __dir__(self):
        return [*super().__dir__(), *self]

    def _ipython_key_completions_(self):
        return list(self)

    def __repr__(self):
        return f"Record({self._members!r})"


def _record(value):
    if isinstance(value, dict):
        return Record(value)
    return [_record(item) for item in value] if isinstance(value, list) else value


class Result(Record):
    """What a subcommand prints as JSON, and the arrays that a kernel made, as attributes and items. Its
    representation is the table that the command prints.

    >>> ran = redblue.run("matmul/blocked", n=32, m=32, d=32, M=300)
    >>> ran.arrays["C"] is ran.C
    True
    >>> ran.to_pandas()[["phase", "reads", "writes"]]
       phase  reads  writes
    0      C   8192    1024
    1  total   8192    1024
    """

    def __init__(self, called, arrays):
        super().__init__(json.loads(called.data) if isinstance(called.data, str) else called.data)
        self._table, self._csv = called.table, called.csv
        #: Arrays by name. An array given in `out` is returned itself.
        self.arrays = arrays
        #: Lines that the command wrote to standard error.
        self.said = called.words
        #: The exit code: 0 for success, 1 for a failed verification, 3 for a difference in a gate.
        self.exit_code = called.code
        #: The results of the runs, one for each mask, if masks differ by batch or head.
        self.by_mask = []

    def __getitem__(self, name):
        return super().__getitem__(name) if name in self._members else self.arrays[name]

    def __eq__(self, other):
        """Whether all counts, plans and arrays are the same. Times and facts about the machine may differ."""
        if not isinstance(other, Result):
            return NotImplemented
        return (_timeless(self._members) == _timeless(other._members) and self.arrays.keys() == other.arrays.keys()
                and all(_same_words(array, other.arrays[name]) for name, array in self.arrays.items()))

    __hash__ = None

    def __dir__(self):
        return [*super().__dir__(), *self.arrays]

    def _what_it_has(self):
        has = ", ".join([super()._what_it_has(), *self.arrays])
        stored = "; results stay in the store, for redblue.store.export; out= brings them, too"
        return has + (stored if "store" in self else "")

    def __repr__(self):
        return self._table.rstrip("\n") or json.dumps(self._members, indent=2)

    def _repr_html_(self):
        return html.of_result(self._members, repr(self))

    def to_pandas(self, of=None):
        """A DataFrame of the rows that the command prints as CSV, or of those of the list `of` in its JSON."""
        import pandas

        if of is None and self._csv not in ("", self._table):
            return pandas.read_csv(io.StringIO(self._csv))
        if of is None:
            of = next((name for name in self._members if _is_rows(self._members[name])), None)
        return pandas.json_normalize(self._members if of is None else self._members[of])


_OF_A_RUN = ("seconds", "gflops", "percent", "part_times", "memory_available", "context")  # parts of names


def _timeless(value):
    """A document without times, and without facts about the machine."""
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if not any(part in name for part in _OF_A_RUN)}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _same_words(one, other):
    one, other = _viewed("a result", one), _viewed("a result", other)
    return one.shape == other.shape and one.tobytes() == other.tobytes()


class Comparison:
    """Two results side by side; compare() makes it. Its representation is a table of what differs."""

    def __init__(self, rows):
        #: For each count that differs: its name, both values, and the second over the first (None over 0).
        self.rows = rows

    @property
    def same(self):
        return not self.rows

    def __repr__(self):
        if self.same:
            return "no count differs"
        cells = [("", "a", "b", "b / a")]
        for name, *values, ratio in self.rows:
            cells.append((name, *("-" if value is None else f"{value:,}" for value in values),
                          "-" if ratio is None else f"{ratio:.3f}"))
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join(f"{row[0]:<{widths[0]}}  " + "  ".join(
            f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:])) for row in cells)

    def to_pandas(self):
        import pandas

        return pandas.DataFrame(self.rows, columns=["count", "a", "b", "ratio"])


def compare(a, b):
    """The counts that differ between two results of count or run, by phase and in total.

    >>> a, b = (redblue.count("attention/rows", n=64, d=8, M=M, objective="words") for M in (600, 2000))
    >>> redblue.compare(a, b)
                     a      b  b / a
    Q.peak         176    512  2.909
    core.reads   3,072  1,024  0.333
    core.peak      570  1,904  3.340
    O.peak         220    640  2.909
    total.reads  3,584  1,536  0.429
    total.io     4,160  2,112  0.508
    total.peak     570  1,904  3.340
    >>> redblue.compare(a, a).same
    True
    """
    for name, each in dict(a=a, b=b).items():
        if not isinstance(each, Result) or "phases" not in each.to_dict():
            raise TypeError(f"{name} is {_kind(each)}; compare takes two results of count or run")
    counts = [_counts(each.to_dict()) for each in (a, b)]
    rows = []
    for name in dict.fromkeys([*counts[0], *counts[1]]):
        one, other = (each.get(name) for each in counts)
        if one != other:
            rows.append((name, one, other, other / one if one and other is not None else None))
    return Comparison(rows)


def _counts(document):
    """The whole numbers of each phase and of the total, by name: core.reads."""
    parts = {phase["path"]: phase for phase in document["phases"]} | {"total": document["total"]}
    return {f"{path}.{name}": value for path, part in parts.items() for name, value in part.items()
            if isinstance(value, int) and not any(of_run in name for of_run in _OF_A_RUN)}


def _is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


class Nest:
    '''Loops of a schedule as text (docs/nests.md). A nest goes wherever a kernel's name goes. Tables show `name`: the
    given one, else the one of the text's line `kernel`. If a kernel of redblue or another text has it, a word or a
    number is added.

    >>> nest = redblue.Nest("""
    ... kernel stream
    ... problem attention
    ... matrix Q[n,d] K[m,d] V[m,d] -> O[n,d]
    ... for I in n by Br
    ...   read Q[I,d]
    ...   new O[I,d]
    ...   for J in m by Bc met by I
    ...     read K[J,d] V[J,d]
    ...     new s[I,J]
    ...   write O[I,d]
    ... """)
    >>> counted = redblue.count(nest, n=1000, d=64, M="16K", blocks={"Br": 64, "Bc": 32})
    >>> counted.kernel, counted.total.io
    ('stream', 2176000)
    '''

    def __init__(self, text, name=None):
        if not isinstance(text, str):
            raise TypeError(f"a nest is a text, not {_kind(text)}")
        if name is not None and not (isinstance(name, str) and re.fullmatch(r"\w[\w ./-]*", name)):
            raise UsageError(f"name is {_kind(name)}; expected letters, digits, spaces and any of _-./ after the first")
        self.text = text
        try:
            self.name = _redblue.load_nest(text, name or "")
        except ValueError as error:
            raise InputError(str(error)) from None

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Nest({self.text!r}, {self.name!r})"

    def _repr_html_(self):
        return html.text(self.text.strip("\n"))


class Mask:
    """Which queries meet which keys: the text of --mask, put together by & and |.

    >>> mask = redblue.Mask("causal") & redblue.Mask("window:2,0") | redblue.Mask("prefix:1")
    >>> str(mask)
    '((causal)&(window:2,0))|(prefix:1)'
    >>> mask.pairs(5).astype(int)
    array([[1, 0, 0, 0, 0],
           [1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0],
           [1, 1, 1, 1, 0],
           [1, 0, 1, 1, 1]])
    """

    def __init__(self, spec="full"):
        if not isinstance(spec, (str, Mask)):
            raise TypeError(f"a mask is a text, as 'causal', not {_kind(spec)}; calls take an array itself: mask=array")
        self.spec = _text("mask", str(spec))
        if not isinstance(spec, Mask):
            _redblue.check_mask(os.fsencode(self.spec))

    def __and__(self, other):
        return Mask(f"({self})&({Mask(other)})")

    def __rand__(self, other):
        return Mask(other) & self

    def __or__(self, other):
        return Mask(f"({self})|({Mask(other)})")

    def __ror__(self, other):
        return Mask(other) | self

    def __str__(self):
        return self.spec

    def __repr__(self):
        return f"Mask({self.spec!r})"

    def _repr_html_(self):
        try:
            return html.of_mask(self)
        except Error:  # a mask of files has sizes of its own
            return html.text(repr(self))

    def __eq__(self, other):
        return isinstance(other, Mask) and self.spec == other.spec

    def __hash__(self):
        return hash(self.spec)

    def pairs(self, n, m=None):
        """A matrix of bool: whether query i meets key j, of n queries and m keys; of n where left out."""
        return _redblue.pairs_of(*map(os.fsencode, (
            _text("mask", self.spec), _text("n", n), _text("m", n if m is None else m))))


def _is_sparse(value):
    return type(value).__module__.startswith("scipy.sparse")


def _is_array(value):
    """Whether it has rows that NumPy reads."""
    if isinstance(value, (str, bytes, numpy.generic)):
        return False
    if isinstance(value, (list, tuple)) or any(
            hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _kind(value):
    """What a message calls a value that cannot be taken."""
    if value is None or isinstance(value, (str, numbers.Number, numpy.bool_)):
        return repr(value)[:60]
    dtype = getattr(value, "dtype", None)
    return f"an object of type {type(value).__name__}" + (f" of {dtype}" if dtype is not None else "")


def _is_tensor(value):
    return type(value).__module__.partition(".")[0] == "torch"


def _is_bfloat16(value):
    return "bfloat16" in str(getattr(value, "dtype", ""))


def _numpy_of(name, tensor):
    """PyTorch's own way to NumPy: DLPack has no bool, and refuses tensors with gradients; NumPy has no bfloat16."""
    if tensor.device.type != "cpu":
        raise InputError(f"{name} is on {tensor.device}; redblue computes on the CPU: give {name}.cpu()")
    tensor = tensor.detach()
    return (tensor.float() if _is_bfloat16(tensor) else tensor).numpy()


def _viewed(name, value):
    """The array as NumPy sees it: where it is, but for lists and bfloat16."""
    if _is_sparse(value):
        raise InputError(f"{name} is sparse: save it by scipy.sparse.save_npz and give the file's name")
    if not _is_array(value):
        raise InputError(f"{name} is {_kind(value)}; expected an array, or the name of a file")
    if numpy.ma.is_masked(value):
        raise InputError(f"{name} of an array: some elements are masked; expected numbers, as filled() has them")
    try:
        if _is_tensor(value):
            return _numpy_of(name, value)
        if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
            return numpy.from_dlpack(value)
        return numpy.asarray(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # a ragged list, words of a graphics card
        raise InputError(f"{name} cannot be read as an array: {error}") from None


def _differences(array):
    """What keeps a kernel from using the words where they are."""
    return [text for differs, text in (
        (array.dtype != numpy.float32, f"{array.dtype}, not float32"),
        (not array.flags.c_contiguous, "not in C order"),
        (not array.flags.aligned, "not aligned")) if differs]


def _float32(name, value):
    """The words of an operand, where they are if they may stay there."""
    array = _viewed(name, value)
    differences = ["bfloat16, not float32"] if _is_bfloat16(value) else _differences(array)
    if not differences:
        return array
    if array.dtype.kind not in "fiub" and not _is_bfloat16(array):
        raise InputError(f"{name} of an array: elements of dtype {array.dtype}; expected numbers, float32 at best")
    with numpy.errstate(over="ignore"):  # a value that becomes infinite is refused
        converted = array.astype(numpy.float32, order="C")
    warnings.warn(f"{name} is copied: it is {', '.join(differences)}", ConversionWarning, stacklevel=4)
    return converted


# NumPy before 2.1 marks all arrays from DLPack read-only.
_DLPACK_SAYS_READ_ONLY = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"


def _written(name, target):
    """The words of an array that a result is to be written to."""
    if not isinstance(target, numpy.ndarray) and not hasattr(target, "__dlpack__"):
        raise InputError(f"out {name} is {_kind(target)}; expected an array of float32, or the name of a file")
    array = _viewed(f"out {name}", target)
    says = isinstance(target, numpy.ndarray) or _is_tensor(target) or _DLPACK_SAYS_READ_ONLY
    wrong = ["bfloat16, not float32"] if _is_bfloat16(target) else _differences(array)
    wrong += ["read-only"] * (says and not array.flags.writeable)
    if wrong:
        raise InputError(f"out {name} cannot be written to: it is {', '.join(wrong)}")
    return array


def _keyword_of(flag):
    name = flag[2:].replace("-", "_")
    return name + "_" if keyword.iskeyword(name) or name == "list" else name  # `list` stays Python's own here


def _path_of(path):
    return ".".join(_keyword_of("--" + name) for name in path)


def _remedy(name):
    """What to give in place of what `name` cannot take, after the message."""
    if name == "mask":
        return ("; count, run, plan, bounds and curve take a matrix of bool; here, save it by numpy.save and give "
                "'blocks:FILE.npy'")
    return f"; give {name[4:]}=array to run" if name.startswith("in_ ") else ""


def _text(name, value):
    """One value as the command line has it."""
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if isinstance(value, numpy.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (str, Mask, Nest, numbers.Number)) and not isinstance(value, bool):
        text = f"loaded:{value}" if isinstance(value, Nest) and name == "nest" else str(value)
        if "\0" in text:
            raise UsageError(f"{name} {text!r}: a text has no NUL")
        return text
    if _is_sparse(value):
        _viewed(name, value)
    raise UsageError(f"{name} takes a value, not {_kind(value)}{_remedy(name)}")


_WRITING = ("out", "also", "din")  # options that name files to write; the text of moves and cachesim comes back


def _texts(name, value, writes):
    """The values of an option or an argument, as texts. If it names files to write, "-" is refused."""
    texts = _items(name, value)
    if writes:
        if any(text.rpartition("=")[2] == "-" for text in texts):
            raise UsageError(f"{name} '-': a call has no standard output; expected the name of a file")
    return texts


def _items(name, value):
    if isinstance(value, Mapping):
        return [f"{key}={_text(f'{name} {key}', item)}" for key, item in value.items() if item is not None]
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=lambda item: (0, item) if isinstance(item, numbers.Real) else (1, str(item)))
    if isinstance(value, numpy.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        value = value.tolist()
    if isinstance(value, (list, tuple, range, MappingView, Set)):
        return [text for item in value for text in _items(name, item)]
    return [_text(name, value)]


def _option_words(name, option, value):
    flag = option["flag"]
    if value is None:
        return []
    if option["switch"]:
        if not isinstance(value, (bool, numpy.bool_, numbers.Integral)) or value not in (0, 1):
            raise UsageError(f"{name} is True or False, not {_kind(value)}")
        return [flag] if value else []
    if name == "store" and isinstance(value, os.PathLike):
        value = f"file:{os.fsdecode(value)}"
    texts = _texts(name, value, name in _WRITING)
    if not option["repeats"]:
        texts = [",".join(texts)]
    if "" in texts:
        raise UsageError(f"{name} takes a value, not {value!r}")
    return [f"{flag}={text}" for text in texts]


class _Documents:
    """Files of documents that are given as values, while a call works; messages call them by their arguments."""

    NAMES = ("suite", "baseline", "before", "now")

    def __init__(self):
        self._directory = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Error):
            error.args = tuple(map(self.unnamed, error.args))
        if self._directory is not None:
            self._directory.cleanup()

    def file_of(self, name, value):
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="redblue-")
        path = os.path.join(self._directory.name, name)
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value.to_dict() if isinstance(value, Record) else dict(value), file, default=operator.index)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} cannot be written as JSON: {error}") from None
        return path

    def unnamed(self, text):
        return text if self._directory is None else text.replace(self._directory.name + os.sep, "")


def _in_order(path, command, args, keywords, documents):
    """The texts of the arguments; the last may be given by keyword, and are taken from `keywords`."""
    names = [argument["name"].lower() for argument in command["arguments"]]
    if any(_is_array(value) and not isinstance(value, (list, tuple)) for value in args):
        raise UsageError("an array is given without a name: expected the name of an operand, such as Q=array")
    values = [*args, *(keywords.pop(name, None) for name in names[len(args):])]
    while values and values[-1] is None:
        values.pop()
    named = list(zip(itertools.chain(names, itertools.repeat(names[-1] if names else "an argument")), values))
    for name, value in named:
        if value is None:
            raise UsageError(f"{name} is missing")
    for argument in command["arguments"][len(values):]:
        if argument["required"]:
            raise UsageError(f"{argument['name'].lower()} is missing: {argument['help']}")
    if keywords.get("accept") is not None and any(isinstance(value, Mapping) for _, value in named):
        raise UsageError("accept writes the baseline: give the name of its file")
    named = [(name, documents.file_of(name, value) if isinstance(value, Mapping) and name in documents.NAMES else value)
             for name, value in named]
    writes = path == ["store", "export"]
    return [text for name, value in named for text in _texts(name, value, writes)]


_NAMES_OF_PYTORCH = {"is_causal": "mask='causal'", "attn_mask": "mask", "query": "Q", "key": "K", "value": "V"}


def _unknown(path, options, operands, name):
    names = [*options, *operands]
    if operands and name in _NAMES_OF_PYTORCH:
        return UsageError(f"no option and no operand is called {name!r}: give {_NAMES_OF_PYTORCH[name]}")
    near = [each for each in names if each.lower() == name.lower()] or difflib.get_close_matches(name, names, n=1)
    what = "no option and no operand" if operands else "no option"
    remedy = f"did you mean {near[0]}?" if near else f"help(redblue.{_path_of(path)}) lists the options"
    return UsageError(f"{what} is called {name!r}: {remedy}")


def _in_python(message):
    """A message of the command, in Python's words: M='64KB' for --M 64KB, and Q='q.npy' for --in Q=q.npy."""
    def option(found):
        flag, value = found[1], found[2]
        name = _keyword_of("--" + flag)
        if flag in ("in", "out", "make"):
            return f"{name.rstrip('_')}{found[0][len(flag) + 2:]}"
        after = found.string[found.end():found.end() + 1]
        if value is None:
            return name if after in (":", "") else f"{name}="
        if re.fullmatch(r"'?[0-9.]+'?", value):
            return f"{name}={value.strip(chr(39))}"
        if value[0] == "'" or (value.isalpha() and value.isupper()):
            return f"{name}={value}"
        is_value = after == ":" or re.search("[0-9:]", value) or value in _choices.get("--" + flag, ())
        return f"{name}='{value}'" if is_value else f"{name}= {value}"

    def call(found):
        return f"redblue.{_keyword_of('--' + found[1])}({found[2] + '=True' if found[2] else ''})"

    message = re.sub(r"`redblue ([a-z]+) ([A-Z]+) -o ([^` ]+)`", r"redblue.\1(\2, out='\3')", message)
    message = message.replace("redblue store import or generate makes", "redblue.store.import_() or redblue.store.generate() makes")
    message = message.replace("expected NAME=SIZE", "expected {NAME: SIZE}")
    message = re.sub(r"^(redblue: )?kernel is required$",
                     r"\1kernel is missing: for example 'attention/auto'; redblue.kernels() lists all", message)
    message = re.sub(r"`redblue ([a-z]+)(?: --([a-z]+))?`", call, message.removeprefix("--in: ").replace("--in gives", "a file gives"))
    message = re.sub(r"(?<=\()redblue ([a-z]+)()(?=\))", call, message)
    message = re.sub(r"(?<![\w-])--in ([A-Za-z]\w*)=([^\s,;:]+)", r"\1='\2'", message)
    message = re.sub(r"='([A-Z]+)'", r"=\1", message)  # FILE stands for a name
    return re.sub(r"(?<![\w-])--([A-Za-z][A-Za-z0-9-]*)(?: ('[^']*'|file:DIR|[\w.*+]+(?:[,*x][\w.*]+)*))?", option, message)


_TAKES_MASKS = ("count", "run", "plan", "bounds", "curve")


def _size(value):
    """A number of rows, or None if it is not known here."""
    found = re.fullmatch(r"([0-9]+)([KMG]?)", str(value))
    return None if found is None else int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


def _check_extents(pairs, given, keywords):
    """Refuses a mask of other sizes than the operands, where these are known."""
    rows = {name: array.shape[-2] for name, array in given.items() if array.ndim > 1}
    n = next((rows[name] for name in ("Q", "dO", "A1") if name in rows), _size(keywords.get("n")))
    m = next((rows[name] for name in ("K", "V", "A2") if name in rows), _size(keywords.get("m")))
    m = n if m is None else m
    if pairs.ndim == 1:
        wrong = None not in (n, m) and not pairs[-1] == n == m
        sizes = f"offsets that end with {pairs[-1]}"
    else:
        wrong = None not in (n, m) and pairs.shape != (n, m)
        sizes = f"{pairs.shape[0]} queries and {pairs.shape[1]} keys"
    if wrong:
        raise InputError(f"mask of an array has {sizes}, and n is {n} and m is {m}")


def _mask_pairs(path, mask):
    """A matrix of bool, or offsets of documents, of a mask that is an array; else None."""
    if isinstance(mask, (bool, numpy.bool_)):
        raise UsageError(f"mask is {mask}; expected a text, such as 'causal', or a matrix of bool")
    if mask is None or isinstance(mask, (str, Mask)) or not (_is_sparse(mask) or _is_array(mask)):
        return None
    if path[0] not in _TAKES_MASKS:
        raise UsageError(f"mask takes a value, not {_kind(mask)}{_remedy('mask')}")
    array = mask.toarray() != 0 if _is_sparse(mask) else _viewed("mask", mask)
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) < 2 or array[0] != 0 or (numpy.diff(array.astype(numpy.int64)) < 0).any():
            raise InputError("mask of documents: expected offsets that begin with 0, never decrease and end with n = m")
        return array.astype(numpy.int64)
    if array.dtype != bool:
        raise InputError(f"mask of an array: elements of dtype {array.dtype}; expected bool, True where a query meets a "
                         "key, or the offsets of documents")
    if array.ndim < 2:
        raise InputError(f"mask has shape {array.shape}; expected n rows and m columns")
    if any(size > 1 for size in array.shape[:-2]) and (array != array[(slice(0, 1),) * (array.ndim - 2)]).any():
        if path == ["run"]:
            return array
        raise InputError(f"mask has shape {array.shape}, and differs between heads; {path[0]} takes one for all heads: "
                         "redblue.run, redblue.attention and redblue.gradients take one for each")
    return array[(0,) * (array.ndim - 2)]


class _Leads:
    """The sizes in front of rows and columns: a kernel sees one dimension of heads for batches and heads."""

    def __init__(self, arrays):
        def of(name, array):
            return array.shape[:max(array.ndim - (1 if name == "L" else 2), 0)]

        leads = {name: of(name, array) for name, array in arrays.items()}
        deep = {name: lead for name, lead in leads.items() if len(lead) > 1}
        self.leads = leads if deep else {}
        for name, lead in self.leads.items():
            first, other = next(iter(deep.items()))
            if len(lead) != len(other) or lead[:-1] != other[:-1]:
                raise InputError(f"{first} has shape {arrays[first].shape}, and {name} {arrays[name].shape}; expected the "
                                 "same sizes in front of the heads")

    def folded(self, name, array):
        lead = self.leads.get(name)
        return array if lead is None else array.reshape(-1, *array.shape[len(lead):])

    def lead_of(self, result):
        """The sizes in front of a result: dK and dV have those of K, and the others those of queries."""
        if not self.leads:
            return None
        of_keys = result in ("dK", "dV")
        names = ("K", "V") if of_keys else ("Q", "A1", "dO", "A2", "A", *self.leads)
        return next((self.leads[name] for name in names if name in self.leads), None)

    def unfolded(self, name, array):
        lead = self.lead_of(name)
        return array if lead is None else array.reshape(*lead, *array.shape[1:])

    def folded_target(self, name, array):
        lead = self.lead_of(name)
        if lead is None or array.shape[:len(lead)] != lead:
            return array
        return array.reshape(-1, *array.shape[len(lead):])


def _call(path, command, args, keywords, documents):
    options = {_keyword_of(option["flag"]): option for option in command["options"]}
    operands = _operands if "in_" in options else ()
    pairs = _mask_pairs(path, keywords.get("mask")) if "mask" in options else None
    words = [*path, *_in_order(path, command, args, keywords, documents)]
    if pairs is not None and pairs.ndim > 2:
        from .by_mask import run_by_mask  # it calls run, which is made below

        return run_by_mask("".join(words[1:]), keywords)
    given, out, written = {}, {}, {}
    progress = keywords.pop("progress", None) if path == ["run"] else None
    if isinstance(progress, bool):
        progress = html.Bar() if progress else None
    if progress is not None and not callable(progress):
        raise UsageError(f"progress is {_kind(progress)}; expected True for a bar, or a function of a text, such as print")
    if pairs is not None:
        keywords = {**keywords, "mask": "documents" if pairs.ndim == 1 else "pattern"}
    for name, value in keywords.items():
        if name == "out" and path == ["run"]:
            out, value = _targets(value)
            written = {operand: _written(operand, target) for operand, target in out.items()}
        if name in options:
            words += _option_words(name, options[name], value)
        elif name not in operands:
            raise _unknown(path, options, operands, name)
        elif isinstance(value, (str, os.PathLike)):
            words += _option_words("in_", options["in_"], {name: value})
        elif value is not None and path == ["run"]:
            given[name] = _float32(name, value)
        elif value is not None:
            raise UsageError(f"{name}: {' '.join(path)} takes no arrays; give n, m and d, or the name of a file")
    as_text = keywords.get("format") is not None
    if "format" in options and not as_text:
        words.append("--format=json")
    if pairs is not None:
        _check_extents(pairs, given, keywords)
    leads = _Leads(given)
    given = {name: leads.folded(name, array) for name, array in given.items()}
    written = {name: leads.folded_target(name, array) for name, array in written.items()}
    try:
        called = _redblue.call([os.fsencode(word) for word in words], given, written, path == ["run"], pairs, progress)
    finally:
        if isinstance(progress, html.Bar):
            progress.close()
    data, said = documents.unnamed(called.data), [documents.unnamed(line) for line in called.words]
    for line in said:
        _logger.log(logging.WARNING if called.code else logging.INFO, line)
    if data.startswith("{") and not as_text:
        results = {name: leads.unfolded(name, array) for name, array in called.results.items()}
        return Result(types.SimpleNamespace(data=data, table=documents.unnamed(called.table), csv=documents.unnamed(called.csv),
                                            words=said, code=called.code), {**results, **out})
    if called.code != 0 and not (as_text and data):
        raise Error("\n".join(said))
    return data or None


def _targets(value):
    """Results that go to arrays, and those that go to files."""
    texts = [value] if isinstance(value, str) else value
    if value is None or isinstance(texts, (list, tuple)) and all(isinstance(text, str) and "=" in text for text in texts):
        return {}, value  # NAME=FILE, in the form of the command
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InputError(f"out is {_kind(value)}; expected names of results with an array or a file: {{'O': array}}")
    files = {name: target for name, target in value.items()
             if target is None or isinstance(target, (str, os.PathLike))}
    return {name: target for name, target in value.items() if name not in files}, files


_EXAMPLES = {
    "count": """
>>> [redblue.count("matmul/blocked", n=64, m=64, d=64, M=M).total.io for M in (768, "3K")]
[36864, 20480]
""",
    "plan": """
>>> plan = redblue.plan(problem="attention", n=4096, d=64, M="16K")
>>> redblue.count(plan.plan.kernel, n=4096, d=64, M="16K").total.io == plan.plan.words
True
""",
    "bounds": """
>>> bounds = redblue.bounds(problem="product", n=256, m=256, d=256, M=3072)
>>> bounds.lower_bound.words, bounds.best.words >= bounds.lower_bound.words
(608366, True)
""",
    "curve": """
>>> curve = redblue.curve(problem="backward", n=512, d=64).to_pandas()
>>> bool((curve.words >= curve.lower_bound).all())
True
""",
    "run": """
>>> ran = redblue.run("forward/flash", n=64, d=8, M=512, seed=7, verify=True)
>>> ran.error.ok, ran.O.shape, ran.L.shape
(True, (64, 8), (64,))
""",
}


def _parameters(path, command):
    kind = inspect.Parameter
    for argument in command["arguments"]:
        name = argument["name"].lower()
        if argument["several"]:
            yield kind(name, kind.VAR_POSITIONAL)
        else:
            yield kind(name, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if argument["required"] else None)
    for option in command["options"]:
        yield kind(_keyword_of(option["flag"]), kind.KEYWORD_ONLY, default=False if option["switch"] else None)
    if path == ["run"]:
        yield kind("progress", kind.KEYWORD_ONLY, default=None)
    if any(option["flag"] == "--in" for option in command["options"]):
        yield kind("operands", kind.VAR_KEYWORD)


def _doc(path, command):
    lines = [f"{command['help']}: `redblue {' '.join(path)}`.", ""]
    for argument in command["arguments"]:
        lines.append(f"{argument['name'].lower()}: {argument['help']}")
    for option in command["options"]:
        value = "" if option["switch"] else f" ({option['value']})"
        lines.append(f"{_keyword_of(option['flag'])}{value}: {option['help']}")
    if path == ["run"]:
        lines.append("progress: True for a bar in runs of more than 2 s, or a function that is called with a line of text "
                     "now and then, such as print")
        lines.append("operands: arrays, or names of files, by their names: Q=Q, K='k.npy'. Results that `out` "
                     "gives an array for are written there")
    return "\n".join(lines) + "\n" + _EXAMPLES.get(path[0], "")


def _function(path, command):
    if command["subcommands"]:
        functions = {_keyword_of("--" + each["name"]): _function([*path, each["name"]], each)
                     for each in command["subcommands"]}
        group = types.ModuleType(f"{__name__}.{path[-1]}", f"{command['help']}: `redblue {path[-1]}`.")
        group.__all__ = list(functions)
        vars(group).update(functions)
        return group

    def function(*args, **keywords):
        with _Documents() as documents:
            return _call(path, command, args, keywords, documents)

    function.__name__ = _keyword_of("--" + path[-1])
    function.__qualname__ = _path_of(path)
    function.__module__ = __name__
    function.__doc__ = _doc(path, command)
    function.__signature__ = inspect.Signature(list(_parameters(path, command)))
    return function


_operands = _redblue.operands()  # of any kernel
_commands = {command["name"]: command for command in _redblue.commands()}
_choices = {}  # of an option: the words that it takes, where help lists them
for _command in _commands.values():
    for _option in _command["options"]:
        if "|" in _option["value"]:
            _choices.setdefault(_option["flag"], set()).update(_option["value"].split("|"))
for _name, _command in _commands.items():
    globals()[_keyword_of("--" + _name)] = _function([_name], _command)


class Kernels(list):
    """A list of kernels, whose representation is a table."""

    def __init__(self, listed):
        super().__init__(listed.kernels)
        self._listed = listed

    def __repr__(self):
        return repr(self._listed)

    def to_pandas(self):
        """A DataFrame of a row for each kernel."""
        return self._listed.to_pandas("kernels")


def kernels(**options):
    """The kernels, each with what it is given and returns; with n and d, the least M of each.

    >>> [kernel.returns for kernel in redblue.kernels() if kernel.name == "backward/small"]
    [['g']]
    """
    return Kernels(list_(**options, format=None))  # noqa: F821


from .calls import attention, gradients  # noqa: E402
from .costs import Cost, cost  # noqa: E402
from .machine import Machine, blocks  # noqa: E402

__all__ = ["Comparison", "ConversionWarning", "Cost", "Error", "FastMemoryTooSmall", "InputError", "Kernels",
           "Machine", "Mask", "Nest", "Record", "Result", "UsageError", "attention", "blocks", "compare", "cost", "gradients", "kernels", *(_keyword_of("--" + name) for name in _commands)]


def __dir__():
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
