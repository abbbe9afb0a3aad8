"""How many words does an attention kernel move between a fast memory of exactly M words and the slow store
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
says on standard error are warnings of the logger "redblue". help(redblue.count) lists the options.
"""

from __future__ import annotations

import inspect
import io
import json
import keyword
import logging
import os
import types
import warnings
from collections.abc import Mapping

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

    #: The least M that is enough; None where none is, or it is not known.
    least_M: int | None = None


class ConversionWarning(UserWarning):
    """An array was copied, for it is not of float32 in C order. Ignored unless
    warnings.simplefilter("always", redblue.ConversionWarning) or the like asks for it."""


warnings.filterwarnings("ignore", category=ConversionWarning, append=True)  # what a user asks for is before it
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
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: it has {', '.join(self)}") from None

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

    def __init__(self, called):
        super().__init__(json.loads(called.data))
        self._table, self._csv = called.table, called.csv
        #: By name; with `out`, those that were given.
        self.arrays = called.results
        #: What the command said beside it, line by line.
        self.words = called.words
        #: Of the command: 0; 1 where a verification failed; 3 where a gate found a difference.
        self.exit_code = called.code

    def __getitem__(self, name):
        return super().__getitem__(name) if name in self._members else self.arrays[name]

    def __dir__(self):
        return [*super().__dir__(), *self.arrays]

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
        self.spec = str(spec)

    def __and__(self, other):
        return Mask(f"({self})&({other})")

    def __or__(self, other):
        return Mask(f"({self})|({other})")

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
        return _redblue.pairs_of(self.spec, n, n if m is None else m)


def _is_array(value):
    return isinstance(value, (list, tuple)) or any(
        hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")
    ) and not isinstance(value, numpy.generic)


def _float32(name, value):
    """The words of an operand, where they are if they may stay there."""
    if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
        value = numpy.from_dlpack(value)
    array = numpy.asarray(value)
    if array.dtype == numpy.float32 and array.flags.c_contiguous and array.flags.aligned:
        return array
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} of an array: elements of dtype {array.dtype}; expected numbers, float32 at best")
    with numpy.errstate(over="ignore"):  # what becomes infinite is refused
        converted = array.astype(numpy.float32, order="C")
    warnings.warn(f"{name} is copied: it is {array.dtype}, not float32 in C order where it is",
                  ConversionWarning, stacklevel=4)
    return converted


def _flag_of(name):
    return "--" + name.rstrip("_").replace("_", "-")


def _keyword_of(flag):
    name = flag[2:].replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def _texts(value):
    """What an option is given, item by item."""
    if isinstance(value, Mapping):
        return [f"{name}={os.fspath(item) if hasattr(item, '__fspath__') else item}" for name, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    return [os.fspath(value) if hasattr(value, "__fspath__") else str(value)]


def _option_words(flag, option, value):
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    texts = _texts(value)
    if option is None or "may be repeated" not in option["help"]:
        texts = [",".join(texts)]
    return [f"{flag}={text}" for text in texts]


def _call(path, command, args, keywords):
    options = {option["flag"]: option for option in command["options"]}
    words, given, out = [*path, *(text for arg in args for text in _texts(arg))], {}, {}
    for name, value in keywords.items():
        flag = _flag_of(name)
        if flag == "--out" and isinstance(value, Mapping):
            out = {operand: target for operand, target in value.items() if isinstance(target, numpy.ndarray)}
            value = {operand: target for operand, target in value.items() if operand not in out}
            _check_out(out)
        if flag not in options and path == ["run"] and _is_array(value):
            given[name] = _float32(name, value)
        elif flag not in options and "--in" in options and isinstance(value, (str, os.PathLike)):
            words += _option_words("--in", options["--in"], {name: value})
        else:
            words += _option_words(flag, options.get(flag), value)
    if "--format" in options and "format" not in keywords:
        words.append("--format=json")
    called = _redblue.call(words, given, out, path == ["run"])
    for line in called.words:
        _logger.warning(line)
    if called.data.startswith("{"):
        return Result(called)
    if called.code != 0:
        raise Error("\n".join(called.words))
    return called.data or None


def _check_out(out):
    for name, array in out.items():
        if array.dtype != numpy.float32 or not array.flags.c_contiguous or not array.flags.writeable:
            raise InputError(f"out {name}: an array to be written is of float32, in C order, and not read-only")


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
        elif argument["required"]:
            yield kind(name, kind.POSITIONAL_ONLY)
        else:
            yield kind(name, kind.POSITIONAL_ONLY, default=None)
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
        return types.SimpleNamespace(
            **{_keyword_of("--" + each["name"]): _function([*path, each["name"]], each)
               for each in command["subcommands"]})

    def function(*args, **keywords):
        return _call(path, command, args, keywords)

    function.__name__ = _keyword_of("--" + path[-1])
    function.__qualname__ = ".".join(_keyword_of("--" + name) for name in path)
    function.__module__ = __name__
    function.__doc__ = _doc(path, command)
    function.__signature__ = inspect.Signature(list(_parameters(command)))
    return function


_commands = {command["name"]: command for command in _redblue.commands()}
for _name, _command in _commands.items():
    # `list` stays Python's here.
    globals()["list_" if _name == "list" else _keyword_of("--" + _name)] = _function([_name], _command)


def kernels(**options):
    """The kernels, each with what it is given and returns; with n and d, the least M of each.

    >>> [kernel.returns for kernel in redblue.kernels() if kernel.name == "backward/small"]
    [['g']]
    """
    return list_(**options).kernels  # noqa: F821


__all__ = ["ConversionWarning", "Error", "FastMemoryTooSmall", "InputError", "Mask", "Record", "Result",
           "UsageError", "kernels", *("list_" if name == "list" else _keyword_of("--" + name) for name in _commands)]
