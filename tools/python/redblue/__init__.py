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

What is wrong is said in the command's words:

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
import os
import types
import warnings
from collections.abc import Mapping, MappingView, Set

import numpy

from . import _redblue

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

    def __init__(self, called, out):
        super().__init__(json.loads(called.data))
        self._table, self._csv = called.table, called.csv
        #: Arrays by name. An array given in `out` is returned itself.
        self.arrays = {**called.results, **out}
        #: Lines that the command wrote to standard error.
        self.said = called.words
        #: The exit code: 0 for success, 1 for a failed verification, 3 for a difference in a gate.
        self.exit_code = called.code

    def __getitem__(self, name):
        return super().__getitem__(name) if name in self._members else self.arrays[name]

    def __dir__(self):
        return [*super().__dir__(), *self.arrays]

    def _what_it_has(self):
        has = ", ".join([super()._what_it_has(), *self.arrays])
        stored = "; results stay in the store, for redblue.store.export; out= brings them, too"
        return has + (stored if "store" in self else "")

    def __repr__(self):
        return self._table.rstrip("\n") or json.dumps(self._members, indent=2)

    def to_pandas(self, of=None):
        """A DataFrame of the rows that the command prints as CSV, or of those of the list `of` in its JSON."""
        import pandas

        if of is None and self._csv not in ("", self._table):
            return pandas.read_csv(io.StringIO(self._csv))
        if of is None:
            of = next((name for name in self._members if _is_rows(self._members[name])), None)
        return pandas.json_normalize(self._members if of is None else self._members[of])


def _is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


class Nest:
    '''Loops of a schedule as text (docs/nests.md). A nest goes wherever a kernel's name goes.

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
    >>> redblue.count(nest, n=1000, d=64, M="16K", blocks={"Br": 64, "Bc": 32}).total.io
    2176000
    '''

    def __init__(self, text):
        if not isinstance(text, str):
            raise TypeError(f"a nest is a text, not {_kind(text)}")
        self.text = text
        try:
            self._kernel = _redblue.load_nest(text)
        except ValueError as error:
            raise InputError(str(error)) from None

    def __str__(self):
        return self._kernel

    def __repr__(self):
        return f"Nest({self.text!r})"


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
            raise TypeError(f"a mask is a text, as 'causal', not {_kind(spec)}{_remedy('mask')}")
        self.spec = str(spec)

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


def _viewed(name, value):
    """The array as NumPy sees it: where it is, but for lists."""
    if _is_sparse(value):
        raise InputError(f"{name} is sparse: save it by scipy.sparse.save_npz and give the file's name")
    if not _is_array(value):
        raise InputError(f"{name} is {_kind(value)}; expected an array, or the name of a file")
    if numpy.ma.is_masked(value):
        raise InputError(f"{name} of an array: some elements are masked; expected numbers, as filled() has them")
    try:
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
    differences = _differences(array)
    if not differences:
        return array
    if array.dtype.kind not in "fiub":
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
    says = isinstance(target, numpy.ndarray) or _DLPACK_SAYS_READ_ONLY
    wrong = _differences(array) + ["read-only"] * (says and not array.flags.writeable)
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
        return "; a matrix of bool is saved by numpy.save and given as 'blocks:FILE.npy'"
    return f"; give {name[4:]}=array to run" if name.startswith("in_ ") else ""


def _text(name, value):
    """One value as the command line has it."""
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if isinstance(value, numpy.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (str, Mask, Nest, numbers.Number)) and not isinstance(value, bool):
        text = str(value)
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


def _in_order(path, command, args, keywords):
    """The texts of the arguments; the last may be given by keyword, and are taken from `keywords`."""
    names = [argument["name"].lower() for argument in command["arguments"]]
    values = [*args, *(keywords.pop(name, None) for name in names[len(args):])]
    while values and values[-1] is None:
        values.pop()
    named = list(zip(itertools.chain(names, itertools.repeat(names[-1] if names else "an argument")), values))
    for name, value in named:
        if value is None:
            raise UsageError(f"{name} is missing")
    writes = path == ["store", "export"]
    return [text for name, value in named for text in _texts(name, value, writes)]


def _unknown(path, options, operands, name):
    names = [*options, *operands]
    near = [each for each in names if each.lower() == name.lower()] or difflib.get_close_matches(name, names, n=1)
    what = "no option and no operand" if operands else "no option"
    remedy = f"did you mean {near[0]}?" if near else f"help(redblue.{_path_of(path)}) lists the options"
    return UsageError(f"{what} is called {name!r}: {remedy}")


def _call(path, command, args, keywords):
    options = {_keyword_of(option["flag"]): option for option in command["options"]}
    operands = _operands if "in_" in options else ()
    words = [*path, *_in_order(path, command, args, keywords)]
    given, out, written = {}, {}, {}
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
    called = _redblue.call([os.fsencode(word) for word in words], given, written, path == ["run"])
    for line in called.words:
        _logger.log(logging.WARNING if called.code else logging.INFO, line)
    if called.data.startswith("{") and not as_text:
        return Result(called, out)
    if called.code != 0 and not (as_text and called.data):
        raise Error("\n".join(called.words))
    return called.data or None


def _targets(value):
    """Results that go to arrays, and those that go to files."""
    if value is None or isinstance(value, (str, list, tuple)) and not any(_is_array(item) for item in value):
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
(602104, True)
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


def _parameters(command):
    kind = inspect.Parameter
    for argument in command["arguments"]:
        name = argument["name"].lower()
        if argument["several"]:
            yield kind(name, kind.VAR_POSITIONAL)
        else:
            yield kind(name, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if argument["required"] else None)
    for option in command["options"]:
        yield kind(_keyword_of(option["flag"]), kind.KEYWORD_ONLY, default=False if option["switch"] else None)
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
        return _call(path, command, args, keywords)

    function.__name__ = _keyword_of("--" + path[-1])
    function.__qualname__ = _path_of(path)
    function.__module__ = __name__
    function.__doc__ = _doc(path, command)
    function.__signature__ = inspect.Signature(list(_parameters(command)))
    return function


_operands = _redblue.operands()  # of any kernel
_commands = {command["name"]: command for command in _redblue.commands()}
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

__all__ = ["ConversionWarning", "Error", "FastMemoryTooSmall", "InputError", "Kernels", "Mask", "Nest", "Record", "Result",
           "UsageError", "attention", "gradients", "kernels", *(_keyword_of("--" + name) for name in _commands)]


def __dir__():
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
