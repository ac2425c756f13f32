"""The endings as methods, for whatever has rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stair.data import atomic_write, from_object
from stair.export.dbt import to_dbt
from stair.export.great_expectations import to_great_expectations
from stair.export.onnx import onnx_inputs, to_onnx
from stair.export.pandas import pandas_labels, to_pandas
from stair.export.pmml import to_pmml
from stair.export.polars import polars_label, to_polars
from stair.export.python import to_python
from stair.export.sentences import to_markdown, to_sentences
from stair.export.sigma import to_sigma
from stair.export.soda import to_soda
from stair.export.sql import to_sql, to_sql_case, to_sql_predicates, to_sql_view
from stair.rules.rule_set import RuleSet

Content = TypeVar("Content", str, bytes)


class Endings:
    """What a summary and a file of rules can both be turned into.

    Each method gives the text (ONNX: the bytes), and writes it too where a path is given.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def rules(self) -> RuleSet: ...

    def to_sentences(self, path: str | Path | None = None) -> str:
        """A sentence for each rule, as a colleague reads it."""
        return written(to_sentences(self.rules), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The sentences as Markdown."""
        return written(to_markdown(self.rules), path)

    def to_sql(
        self,
        table: str | Sequence[str] = "data",
        path: str | Path | None = None,
        dialect: str = "duckdb",
    ) -> str:
        """The rules as a query that labels each row of a table."""
        return written(to_sql(self.rules, table, dialect), path)

    def to_sql_view(
        self,
        table: str | Sequence[str] = "data",
        path: str | Path | None = None,
        dialect: str = "duckdb",
        view: str | Sequence[str] | None = None,
    ) -> str:
        """The rules as a view; it is called like the table, with _labelled, if not named."""
        return written(to_sql_view(self.rules, table, view, dialect), path)

    def to_sql_case(self, dialect: str = "duckdb") -> str:
        """The label as a CASE expression."""
        return to_sql_case(self.rules, dialect)

    def to_sql_predicates(self, dialect: str = "duckdb") -> tuple[str, ...]:
        """A condition for each rule, to stand behind WHERE."""
        return to_sql_predicates(self.rules, dialect)

    def to_dbt(
        self,
        folder: str | Path | None = None,
        table: str | Sequence[str] = "data",
        dialect: str = "duckdb",
    ) -> dict[str, str]:
        """The rules as a folder for dbt, as its files: a model that labels the rows of a table, and
        a test for each outlier rule."""
        return to_dbt(self.rules, folder, table, dialect)

    def to_great_expectations(self, path: str | Path | None = None, dialect: str = "duckdb") -> str:
        """The outlier rules as a suite of Great Expectations, as JSON. With the dialect "pandas" it
        is for a frame that `to_pandas` has labelled."""
        return written(to_great_expectations(self.rules, dialect), path)

    def to_soda(
        self,
        table: str | Sequence[str] = "data",
        path: str | Path | None = None,
        dialect: str = "duckdb",
    ) -> str:
        """The outlier rules as checks of Soda, which count the rows that fail."""
        return written(to_soda(self.rules, table, dialect), path)

    def to_sigma(self, table: str | Sequence[str] = "data", path: str | Path | None = None) -> str:
        """The outlier rules as detections of Sigma, in one file. The table is the category of the
        log source; ("product", "category") says both."""
        return written(to_sigma(self.rules, table), path)

    def to_python(self, path: str | Path | None = None) -> str:
        """The source of a function that labels a row and needs nothing but Python."""
        return written(to_python(self.rules), path)

    def to_pandas(self, path: str | Path | None = None) -> str:
        """The source of functions that label a pandas DataFrame."""
        return written(to_pandas(self.rules), path)

    def pandas_labels(self, frame: object) -> Any:
        """A Series with the label of each row of a pandas DataFrame."""
        return pandas_labels(self.rules, frame)

    def to_polars(self, path: str | Path | None = None) -> str:
        """The source of polars expressions."""
        return written(to_polars(self.rules), path)

    def polars_label(self) -> Any:
        """A polars expression for the label of a row."""
        return polars_label(self.rules)

    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """The rules as an ONNX model; needs onnx."""
        return written(to_onnx(self.rules), path)

    def onnx_inputs(self, data: object) -> dict[str, Any]:
        """A table as the ONNX model wants it."""
        return onnx_inputs(self.rules, from_object(data))

    def to_pmml(self, path: str | Path | None = None) -> str:
        """The rules as PMML 4.4."""
        return written(to_pmml(self.rules), path)


def written(content: Content, path: str | Path | None) -> Content:
    """The content itself, which is written too where a path is given."""
    if path is not None:
        atomic_write(Path(path), content)
    return content
