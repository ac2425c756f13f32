"""Settings of every kind by their names: for tests that have many of them in one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import stair
from stair.data.source import Source
from stair.engines.large import Cuda, Dask, DuckDB, Spark, engine_of
from stair.learn.method import Method
from stair.learn.methods import method_of, settings_of
from stair.progress import quiet, telling

ENGINES = {"duckdb": DuckDB, "dask": Dask, "spark": Spark, "cuda": Cuda}


def summarize(
    data: Any,
    *verdict: Any,
    method: str | Method = "distilled",
    engine: str = "memory",
    progress: Callable[[str], object] = quiet,
    **settings: Any,
) -> stair.Summary:
    """`stair.summarize` with the values made of these settings."""

    def taken(names: Any) -> dict[str, Any]:
        return {name: settings.pop(name) for name in names if name in settings}

    of_method = {}
    if isinstance(method, str):
        of_method = taken(name for name in settings_of(method) if name != "min_score")
        settings.pop("effort", None)  # the other methods make none
    of_engine = taken(f.name for f in fields(ENGINES[engine])) if engine in ENGINES else {}
    of_source = taken(f.name for f in fields(Source) if f.name != "data")
    with telling(progress):
        return stair.summarize(
            Source(data, **of_source),
            *verdict,
            method=method_of(method, **of_method),
            engine=engine_of(engine, **of_engine) or "memory",
            **settings,
        )


def quick(method: str) -> Method:
    """A method by its name, with less effort where it knows how."""
    return method_of(method, **({"effort": "fast"} if "effort" in settings_of(method) else {}))
