# The types of the package. This file is the head of __init__.pyi; the build appends a function for
# each subcommand.
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Literal, overload

import numpy
import numpy.typing
import pandas  # type: ignore[import]

__version__: str

# A size in the form of the command line: 8192, "64K", "L2*0.25".
Size = int | str
Text = str | int | float | PathLike[str] | Mask | Nest | Collection[Any] | Mapping[str, Any]
Operand = numpy.typing.ArrayLike | str | PathLike[str]

class Error(Exception): ...
class UsageError(Error): ...
class InputError(Error): ...

class FastMemoryTooSmall(UsageError):
    least_M: int | None

class ConversionWarning(UserWarning): ...

class Record(Mapping[str, Any]):
    def __init__(self, members: dict[str, Any]) -> None: ...
    def to_dict(self) -> dict[str, Any]: ...
    def __getitem__(self, name: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class Result(Record):
    def __init__(self, called: object, arrays: Mapping[str, Any]) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    arrays: dict[str, numpy.typing.NDArray[numpy.float32]]
    said: Sequence[str]
    exit_code: int
    by_mask: list[Result]
    def to_pandas(self, of: str | None = None) -> pandas.DataFrame: ...

class Comparison:
    rows: list[tuple[str, int | None, int | None, float | None]]
    @property
    def same(self) -> bool: ...
    def __init__(self, rows: list[tuple[str, int | None, int | None, float | None]]) -> None: ...
    def to_pandas(self) -> pandas.DataFrame: ...

def compare(a: Result, b: Result) -> Comparison: ...

class Nest:
    text: str
    name: str
    def __init__(self, text: str, name: str | None = None) -> None: ...

class Mask:
    spec: str
    def __init__(self, spec: str | Mask = "full") -> None: ...
    def __and__(self, other: str | Mask) -> Mask: ...
    def __rand__(self, other: str | Mask) -> Mask: ...
    def __or__(self, other: str | Mask) -> Mask: ...
    def __ror__(self, other: str | Mask) -> Mask: ...
    def pairs(self, n: Size, m: Size | None = None) -> numpy.typing.NDArray[numpy.bool_]: ...

_Float32 = numpy.typing.NDArray[numpy.float32]

def attention(
    Q: numpy.typing.ArrayLike,
    K: numpy.typing.ArrayLike,
    V: numpy.typing.ArrayLike,
    *,
    mask: str | Mask | numpy.typing.ArrayLike | None = None,
    scale: float | None = None,
    M: Size | None = None,
    threads: int = 1,
    kernel: str | None = None,
    objective: str = "time",
) -> tuple[_Float32, _Float32]: ...
def gradients(
    Q: numpy.typing.ArrayLike,
    K: numpy.typing.ArrayLike,
    V: numpy.typing.ArrayLike,
    dO: numpy.typing.ArrayLike,
    *,
    O: numpy.typing.ArrayLike | None = None,
    L: numpy.typing.ArrayLike | None = None,
    mask: str | Mask | numpy.typing.ArrayLike | None = None,
    scale: float | None = None,
    M: Size | None = None,
    threads: int = 1,
    kernel: str | None = None,
    objective: str = "time",
) -> tuple[_Float32, _Float32, _Float32]: ...

class Cost:
    flops: int
    exps: int
    word: int
    compulsory_bytes: int
    operand_bytes: int
    M: int | None
    bytes: int | None
    bound_bytes: int | None
    bound: str | None
    kernel: str | None
    blocks: dict[str, int] | None
    beyond_M: int | None
    parts: tuple[Cost, ...]
    @property
    def moved_bytes(self) -> int: ...
    @property
    def intensity(self) -> float: ...
    def to_dict(self) -> dict[str, Any]: ...
    def for_jax(self) -> dict[str, int]: ...
    def for_triton(self, name: str) -> dict[str, str | int]: ...

_Lengths = Size | Sequence[Size] | numpy.typing.NDArray[numpy.integer[Any]]

def cost(
    problem: str = "attention",
    *,
    n: _Lengths,
    d: Size,
    m: _Lengths | None = None,
    dv: Size | None = None,
    heads: Size | None = None,
    kv_heads: Size | None = None,
    sharing: str | None = None,
    mask: str | Mask | numpy.typing.ArrayLike | None = None,
    word: int | None = None,
    sums: int | None = None,
    M: Size | None = None,
    device: str | PathLike[str] | None = None,
    tiles: str | Nest | None = None,
) -> Cost: ...

class _SlowMatrix:
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: slice | tuple[slice, slice]) -> _Block: ...

class _Block:
    @property
    def shape(self) -> tuple[int, ...]: ...
    def holding(self, kind: _WordKind) -> _Block: ...

_WordKind = Literal["operands", "scores", "sums", "indices"]

class Machine:
    @property
    def M(self) -> int: ...
    @property
    def live(self) -> int: ...
    def __init__(self, M: Size) -> None: ...
    def matrix(self, name: str, array: _Float32, *, kind: _WordKind = "operands") -> _SlowMatrix: ...
    def read(self, block: _Block) -> _Float32: ...
    def new(
        self, name: str, rows: int, cols: int | None = None, *, value: float = 0.0, kind: _WordKind = "sums"
    ) -> _Float32: ...
    def write(self, tile: _Float32, block: _Block) -> None: ...
    def phase(self, name: str) -> AbstractContextManager[None]: ...
    def weigh(self, kind: _WordKind, words: int) -> None: ...
    def report(self) -> Result: ...
    def check(self, nest: Nest | str | PathLike[str], *, mask: str | Mask | None = None, **sizes: Size) -> None: ...

def blocks(extent: int, step: int) -> list[slice]: ...

class Kernels(list[Record]):
    def __init__(self, listed: Result) -> None: ...
    def to_pandas(self) -> pandas.DataFrame: ...

def kernels(**options: Any) -> Kernels: ...
