"""Short rules that say which groups of rows are outliers, and why.

The public names are loaded when they are first used: `import stair` itself is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stair import export
    from stair.data.source import Source
    from stair.engines.large import Cuda, Dask, DuckDB, Spark
    from stair.errors import FloorNotReached, OutlierGuessed, StairError
    from stair.estimators import CART, ID3, DistilledStair, LocalStair, Stair
    from stair.export.json import Rulebook, load
    from stair.learn.wishes import ColumnWish
    from stair.operation.check import CheckUp, check
    from stair.operation.compare import Comparison, compare
    from stair.operation.exceptions import learn_exceptions
    from stair.operation.update import Update, update
    from stair.rules.rule_set import Among, Explanation, Interval, Mentions, Period, Rule, RuleSet
    from stair.summary import Summary, summarize
    from stair.verdict.labels import AllBut

__version__ = "0.1.0"

_HOMES = {
    "AllBut": "verdict.labels",
    "Among": "rules.rule_set",
    "CART": "estimators",
    "ColumnWish": "learn.wishes",
    "Cuda": "engines.large",
    "Dask": "engines.large",
    "CheckUp": "operation.check",
    "DistilledStair": "estimators",
    "DuckDB": "engines.large",
    "Explanation": "rules.rule_set",
    "FloorNotReached": "errors",
    "ID3": "estimators",
    "Interval": "rules.rule_set",
    "LocalStair": "estimators",
    "Mentions": "rules.rule_set",
    "OutlierGuessed": "errors",
    "Period": "rules.rule_set",
    "Rule": "rules.rule_set",
    "RuleSet": "rules.rule_set",
    "Rulebook": "export.json",
    "Source": "data.source",
    "Spark": "engines.large",
    "Stair": "estimators",
    "StairError": "errors",
    "Summary": "summary",
    "check": "operation.check",
    "export": "",
    "learn_exceptions": "operation.exceptions",
    "load": "export.json",
    "summarize": "summary",
    "Update": "operation.update",
    "update": "operation.update",
    "Comparison": "operation.compare",
    "compare": "operation.compare",
}

__all__ = [
    "CART",
    "ID3",
    "AllBut",
    "Among",
    "CheckUp",
    "ColumnWish",
    "Comparison",
    "Cuda",
    "Dask",
    "DistilledStair",
    "DuckDB",
    "Explanation",
    "FloorNotReached",
    "Interval",
    "LocalStair",
    "Mentions",
    "OutlierGuessed",
    "Period",
    "Rule",
    "RuleSet",
    "Rulebook",
    "Source",
    "Spark",
    "Stair",
    "StairError",
    "Summary",
    "Update",
    "check",
    "compare",
    "export",
    "learn_exceptions",
    "load",
    "summarize",
    "update",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'stair' has no attribute {name!r}")
    home = _HOMES[name]
    value = (
        getattr(import_module(f"stair.{home}"), name) if home else import_module(f"stair.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
