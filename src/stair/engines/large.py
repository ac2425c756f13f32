"""Engines for rows that do not fit in memory, as values: which one, and its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from stair.errors import StairError, check_count, option

BINS: Final = 1024  # of a column, at most
SAMPLE: Final = 100_000  # rows to learn from where a method needs them in memory
LEAST_MEMORY: Final = 512 << 20  # the interpreter and its libraries take half of it
LEAST_ON_GPU: Final = 64 << 20
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, kw_only=True)
class LargeEngine:
    """What every engine for large data has: the most bins of one column, and the most rows, drawn
    at random, to learn from at once where the method is not "stair". The rules are then counted on
    all rows."""

    name: ClassVar[str]

    bins: int = BINS
    sample: int = SAMPLE

    def __post_init__(self) -> None:
        check_count("bins", self.bins, 2, 65_000)
        check_count("sample", self.sample, 100)

    def __deepcopy__(self, _: dict[int, object]) -> Self:
        return self  # it never changes, and a cluster has no copy


@dataclass(frozen=True, kw_only=True)
class DuckDB(LargeEngine):
    """Files that are read in parts, within so much memory, such as "1GB": half of the machine's by
    default. In the folder `work` codes and finished levels of the method "stair" are kept for
    another run."""

    name: ClassVar[str] = "duckdb"

    memory: str | int | None = None
    work: str | Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.bytes_of_memory

    @property
    def bytes_of_memory(self) -> int:
        """The memory to keep within."""
        return read_memory(self.memory)


@dataclass(frozen=True, kw_only=True)
class Dask(LargeEngine):
    """A Dask DataFrame, or files: on a cluster, by its client or its scheduler's address, or on the
    threads of this process. All workers must reach the folder `work`, where codes and finished
    levels of the method "stair" are kept for another run."""

    name: ClassVar[str] = "dask"

    client: object = None  # distributed.Client, or an address
    work: str | Path | None = None


@dataclass(frozen=True, kw_only=True)
class Spark(LargeEngine):
    """A Spark DataFrame. All workers must reach the folder `work`, where codes and finished levels
    of the method "stair" are kept for another run; the DataFrame must then be one of files."""

    name: ClassVar[str] = "spark"

    work: str | Path | None = None


@dataclass(frozen=True, kw_only=True)
class Cuda(LargeEngine):
    """An NVIDIA GPU, by its number: rows are codes in its memory. Of that so much is used, such as
    "8GB", or what is free; codes that do not fit stay with the processor and come through for each
    pass."""

    name: ClassVar[str] = "cuda"

    memory: str | int | None = None
    device: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("device", self.device, 0)
        _ = self.bytes_of_memory

    @property
    def bytes_of_memory(self) -> int | None:
        """The memory of the GPU to keep within; None: what is free."""
        return None if self.memory is None else read_memory(self.memory, LEAST_ON_GPU)


_MAKERS: Final[Mapping[str, type[LargeEngine]]] = {
    "duckdb": DuckDB, "dask": Dask, "spark": Spark, "cuda": Cuda,
}  # fmt: skip
ENGINES: Final = ("memory", *_MAKERS)


def engine_of(engine: str | LargeEngine, /, **settings: Any) -> LargeEngine | None:
    """An engine by its name with some settings, or as it is given; None for that in memory."""
    if isinstance(engine, LargeEngine):
        return engine
    if engine not in ENGINES:
        raise StairError(f"no engine {engine!r}; engines are {', '.join(ENGINES)}")
    maker = _MAKERS.get(engine)
    own = () if maker is None else [each.name for each in fields(maker)]
    wrong = next((name for name in settings if name not in own), None)
    if wrong is not None:
        raise StairError(f"the engine {engine} has no {option(wrong)}; leave it out")
    return None if maker is None else maker(**settings)


def read_memory(given: str | int | None, least: int = LEAST_MEMORY) -> int:
    """Bytes, from "1GB", "800 MiB" or a number; half of the machine's where nothing is said."""
    if given is None:
        return max(LEAST_MEMORY, _physical() // 2)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", str(given).upper())
    if found is None:
        raise StairError(f"memory {given!r} is not understood; expected a size such as 1GB")
    number, unit, binary = found.groups()
    base = 1024 ** " KMGT".index(unit) if binary and unit else _UNITS[unit]
    size = int(float(number) * base)
    if size < least:
        raise StairError(f"memory {given} is too little; expected at least {least >> 20}MiB")
    return size


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
