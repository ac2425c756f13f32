"""What a type checker makes of the public names: read by mypy, run by nobody.

`import stair` loads names when they are used, so a checker knows those alone that the package
imports for it. What it does not know is Any, which is equal to every type but in `assert_type`.
"""

from __future__ import annotations

from typing import assert_type

import stair
from stair import (
    CART,
    ID3,
    AllBut,
    Among,
    CheckUp,
    ColumnWish,
    Comparison,
    Cuda,
    Dask,
    DistilledStair,
    DuckDB,
    Explanation,
    FloorNotReached,
    Interval,
    LocalStair,
    Mentions,
    OutlierGuessed,
    Period,
    Rule,
    Rulebook,
    RuleSet,
    Source,
    Spark,
    Stair,
    StairError,
    Summary,
    Update,
    check,
    compare,
    export,
    learn_exceptions,
    load,
    summarize,
    update,
)
from stair.estimators.distilled import DistilledStair as Distilled


def every_public_name_has_a_type(rules: RuleSet, row: dict[str, float]) -> None:
    assert_type(stair.DistilledStair(), Distilled)
    assert_type(DistilledStair(min_score=0.9), Distilled)
    assert_type((Stair(), LocalStair(), ID3(), CART()), tuple[Stair, LocalStair, ID3, CART])
    assert_type((DuckDB(), Dask(), Spark(), Cuda()), tuple[DuckDB, Dask, Spark, Cuda])
    assert_type(ColumnWish("up").cost, int)
    assert_type(AllBut("ok").is_nothing, bool)
    assert_type(summarize(Source({}), "label"), Summary)
    assert_type(load("rules.json"), Rulebook)
    assert_type(learn_exceptions(load("rules.json"), {}, false_alarms=[1]), Rulebook)
    assert_type(learn_exceptions(summarize({}, "label"), false_alarms="wrong"), Summary)
    assert_type(update("rules.json", {}, "label"), Update)
    assert_type(compare({}, {}), Comparison)
    assert_type(check("rules.json", {}), CheckUp)
    assert_type(rules.rules, tuple[Rule, ...])
    assert_type(rules.explain(row), Explanation)
    assert_type(rules[0].clauses, tuple[Interval | Period | Among | Mentions, ...])
    assert_type(export.to_text(summarize({}, "label")), str)
    said = FloorNotReached(""), OutlierGuessed(""), StairError("")
    assert_type(said, tuple[FloorNotReached, OutlierGuessed, StairError])
