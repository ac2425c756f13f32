"""Rows of a rule, and outliers that no rule covers, where the rows are: as a lazy relation of
DuckDB, or as a Dask or Spark DataFrame. Nothing is read before somebody asks for them."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from stair.data.frame import Value
from stair.data.packages import NO_EXTENSIONS, Foreign, quoted
from stair.data.source import Source
from stair.data.stream import files_of
from stair.data.stream_csv import csv_query
from stair.engines.large import Cuda, Dask, DuckDB, LargeEngine
from stair.errors import StairError, option
from stair.export.sql import to_sql_predicates
from stair.export.sql_columns import literal
from stair.rules.rule_set import Label, RuleSet
from stair.scale.dask import open_frame
from stair.verdict.codebook import Codebook


@dataclass(frozen=True, slots=True, eq=False)
class Elsewhere:
    """A table that a large engine has learned from, and the column of its labels."""

    source: Source
    engine: LargeEngine
    label: str

    def matching(self, rules: RuleSet, place: int) -> Foreign:
        """The rows that a rule covers, by its place (from 0), but for what exceptions take."""
        if isinstance(self.engine, Dask):
            parts: Foreign = open_frame(self.source.data)[0]
            return parts.map_partitions(_covered, rules, [place], meta=parts._meta)
        if self._is_of_files:
            condition = _true(to_sql_predicates(rules)[place])
            return self._relation().filter(condition)
        if isinstance(self.engine, Cuda):
            raise _not_kept()
        frame: Foreign = self.source.data
        return frame.filter(_true(to_sql_predicates(rules, "spark")[place]))

    def unexplained(self, rules: RuleSet, codebook: Codebook | None) -> Foreign:
        """The outliers by their label that no rule for outliers covers."""
        if codebook is None:
            raise StairError("it is not known which labels mean outlier; learn the rules again")
        own = [k for k, rule in enumerate(rules) if _is_of_outliers(rules, rule.label)]
        if isinstance(self.engine, Dask):
            parts: Foreign = open_frame(self.source.data)[0]
            return parts.map_partitions(_missed, rules, own, self.label, codebook, meta=parts._meta)
        if self._is_of_files:
            relation = self._relation()
            found = relation.project(quoted(self.label)).distinct().fetchall()
            outliers = self._outliers(rules, codebook, [row[0] for row in found])
            conditions = to_sql_predicates(rules)
            listed = ", ".join(literal(value) for value in outliers) or "NULL"
            is_one = f"{quoted(self.label)} IN ({listed})"
            return relation.filter(_true(_uncovered(is_one, conditions, own)))
        if isinstance(self.engine, Cuda):
            raise _not_kept()
        frame: Foreign = self.source.data
        functions = import_module("pyspark.sql.functions")
        found = frame.select(self.label).distinct().collect()
        outliers = self._outliers(rules, codebook, [row[0] for row in found])
        conditions = to_sql_predicates(rules, "spark")
        rest = frame.filter(_true(_uncovered("TRUE", conditions, own)))
        return rest.filter(functions.col(f"`{self.label}`").isin(outliers))

    @property
    def _is_of_files(self) -> bool:
        is_path = isinstance(self.source.data, str | os.PathLike)
        return isinstance(self.engine, DuckDB) or (isinstance(self.engine, Cuda) and is_path)

    def _outliers(self, rules: RuleSet, codebook: Codebook, found: Sequence[Value]) -> list[Value]:
        """Of the values of the label those that mean outlier."""
        values = np.empty(len(found), dtype=object)
        values[:] = found
        codes = codebook.codes(values, self.label).tolist()
        is_one = [code >= 0 and _is_of_outliers(rules, rules.classes[code]) for code in codes]
        return [v for v, one in zip(found, is_one, strict=True) if one]

    def _relation(self) -> Foreign:
        """All rows as a relation of a DuckDB of its own, which lives as long as they do."""
        duckdb = import_module("duckdb")
        data: Foreign = self.source.data  # a path: others were refused
        parts = files_of(data)
        ending = Path(parts[0].path).suffix.lower()
        if ending in (".duckdb", ".ddb", ".db"):
            con = duckdb.connect(parts[0].path, read_only=True, config=dict(NO_EXTENSIONS))
            if self.source.query is not None:
                return con.sql(self.source.query.strip().rstrip(";"))
            if self.source.table is None:
                raise StairError(f"which table? Name it with {option('table')}")
            return con.table(self.source.table)
        con = duckdb.connect(config=dict(NO_EXTENSIONS))
        listed = ", ".join("'" + glob.escape(p.path).replace("'", "''") + "'" for p in parts)
        if ending in (".parquet", ".pq"):
            return con.sql(f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)")
        query, names, *_ = csv_query(con, [part.path for part in parts])
        return con.sql(f"SELECT * FROM ({query}) AS t({', '.join(map(quoted, names))})")


def _not_kept() -> StairError:
    return StairError(
        "the engine cuda does not keep the rows of a table that is held; apply the rules to it, as "
        "with summary.rules.matches(data)"
    )


def _is_of_outliers(rules: RuleSet, label: Label) -> bool:
    return bool(label != rules.default if rules.positive is None else label == rules.positive)


def _true(condition: str) -> str:
    return f"coalesce({condition}, FALSE)"


def _uncovered(is_one: str, conditions: Sequence[str], own: Sequence[int]) -> str:
    by_any = " OR ".join(_true(conditions[k]) for k in own) or "FALSE"
    return f"{is_one} AND NOT ({by_any})"


def _covered(part: Foreign, rules: RuleSet, places: Sequence[int]) -> Foreign:
    """The rows of a part that any of these rules covers."""
    if not len(part):
        return part
    return part[rules.matches(part).applies[:, list(places)].any(axis=1)]


def _missed(
    part: Foreign, rules: RuleSet, own: Sequence[int], label: str, codebook: Codebook
) -> Foreign:
    """The outliers of a part that none of these rules covers."""
    if not len(part):
        return part
    codes = codebook.codes(part[label], label)
    is_one = np.array([*(_is_of_outliers(rules, each) for each in rules.classes), False])
    is_outlier = is_one[codes]  # −1 has no label
    return part[is_outlier & ~rules.matches(part).applies[:, list(own)].any(axis=1)]
