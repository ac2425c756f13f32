"""Tables of every kind and nastiness, always the same for the same seed and number."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from fuzz.case import NESTED, Case, Column, Table
from fuzz.verdicts import draw_verdict
from fuzz.wishes import draw_wishes

Rng = np.random.Generator
Values = list[Any]

CONTAINERS = (
    "dict", "pandas", "polars", "arrow", "numpy", "csv", "parquet", "jsonl", "excel", "sqlite",
    "duckdb",
)  # fmt: skip
NAMES = (
    "amount", "code", "a", "A", "b", "x.y", "two words", 'quo"te', "it's", "select", "rowid",
    "stair_label", "stair_partition", "stair_rule", "stair_distance_1", "STAIR_LABEL", "new\nline",
    "tab\t", "<b>&amp;", "😀", "שלום", "é", "e\u0301", "back\\slash", "`tick`", "[brackets]",
    "{braces}", "a;--b", "%s", "x" * 70, "y" * 300, "1", "0", "None", "label", "row", "df", "x1",
    "pl", "_number", "place", "data", "partition", " lead", "\x1b[31mred", "Dst Port", "Src IP",
    "order id", "hour of a", "weekday of b", "a/24",
)  # fmt: skip
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
# Hours and weekdays are also asked for by a distance from UTC alone.
CLOCKS = (*ZONES, "+05:30", "-03:00")
NASTY_REALS = (
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 1.7976931348623157e308,
    2.0**53, 2.0**53 + 2, -(2.0**53), 0.1, 0.2, 0.30000000000000004, 0.3, 1e-9, 1 / 3, 3.4e38,
    3.5e38, 16777217.0, 1e15, 1e16, 123456789.123, math.pi, -1.0, 1.0, 2.0, 3.0,
)  # fmt: skip
BIG_WHOLES = (
    *(2**53 + k for k in range(-2, 4)), *(-(2**53) - k for k in range(3)), 2**60, 2**60 + 1,
    2**60 + 2, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 0, 1, -1,
)  # fmt: skip
UNSIGNED = (2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2, 2**53 + 1, 0, 1, 2)
NASTY_TEXTS = (
    "", " ", "NA", "N/A", "nan", "None", "null", "  padded  ", "😀", "👩‍👩‍👧", "שלום", "\u202eabc",
    "it's", 'say "hi"', "a\nb", "a\r\nb", "tab\there", "\x01", "\x7f", "%_", "\\", "';--", "é",
    "e\u0301", "É", "İ", "ß", "SS", "a,b", "a;b", "true", "1", "1.0", "01", "-0", "1e3", "inf",
    "2024-01-01", "2024-02-30", "x" * 300, "<script>", "$1", "{0}", "\u2028", "\ufeff",
)  # fmt: skip
# What is nearly an IPv4 address, but none in its usual form.
NO_ADDRESSES = (
    "10.0.0.256", "10.0.0", "10.0.0.1.5", "010.0.0.1", "10.0.0.01", " 10.0.0.1", "10.0.0.1 ",
    "10.0.0.1\n", "10.0.0.1:80", "10.0.0.1/8", "::1", "10.0..1", "-1.0.0.1", "１0.0.0.1", "",
    "10.0.0.1e0", "300.1.1.1", "1.2.3.1000",
)  # fmt: skip
WORDS = (
    "refund of the order", "late delivery", "Payment", "payment", "card declined", "É", "naïve",
    "customer called", "it's fine", "100%", "gift voucher", "REFUND", "wrong size", "no answer",
)  # fmt: skip


def generator(seed: int, number: int) -> Rng:
    return np.random.default_rng([seed, number])


def draw_case(seed: int, number: int) -> Case:
    """Case number so-and-so of a seed."""
    rng = generator(seed, number)
    n_rows = _n_rows(rng)
    columns = [
        _column(rng, name, n_rows) for name in _names(rng, 1 + int(rng.integers(0, 8) ** 1.0))
    ]
    container = _choice(rng, CONTAINERS, (4, 4, 3, 3, 1, 3, 3, 1, 0.5, 1, 2))
    table = fit_to(Table(tuple(columns), container), rng)
    verdict = draw_verdict(rng, table)
    method = _choice(
        rng, ("distilled", "stair", "refined", "local", "id3", "cart"), (5, 6, 2, 1.5, 1, 1)
    )
    kinds = {}
    if method in ("id3", "cart"):  # they take numbers alone
        numbers = tuple(c for c in table.columns if c.type in ("real", "whole", "decimal"))
        method = method if numbers else "stair"
        table = replace(table, columns=numbers or table.columns)
    if rng.random() < 0.15 and len(set(table.names)) == len(table.columns):
        column = table.columns[rng.integers(len(table.columns))]
        kinds[column.name] = _choice(rng, ("category", "number", "time", "text"), (6, 1, 1, 2))
    new = draw_new(rng, table)
    extras = [name for name, share in EXTRAS.items() if rng.random() < share]
    parts = bool(rng.random() < 0.5)
    windows = bool(rng.random() < 0.3)
    has_zone = any(c.type == "zoned" for c in table.columns)
    return Case(
        seed, number, table, verdict, new, method, "memory", kinds, parts, tuple(extras),
        str(_choice(rng, CLOCKS)) if has_zone else None, windows,
        draw_wishes(np.random.default_rng([seed, number, 11]), table, verdict, method),
    )  # fmt: skip


# The share of cases that the dearer checks look at.
EXTRAS = {
    "order": 0.25,
    "duckdb": 0.12,
    "twin": 0.2,
    "containers": 0.3,
    "dask": 0.002,
    "command": 0.1,
    "exceptions": 0.2,
    "reasons": 0.3,
}


def _choice(rng: Rng, values: Sequence[Any], weights: Sequence[float] | None = None) -> Any:
    if weights is None:
        return values[int(rng.integers(len(values)))]
    shares = np.array(weights) / sum(weights)
    return values[int(rng.choice(len(values), p=shares))]


def _n_rows(rng: Rng) -> int:
    low, high = _choice(rng, ((1, 4), (4, 30), (30, 100), (100, 401)), (0.5, 2, 5, 3))
    return int(rng.integers(low, high))


def _names(rng: Rng, n: int) -> list[str]:
    if rng.random() < 0.35:
        return [f"c{k}" for k in range(n)]
    names = [_choice(rng, NAMES) for _ in range(n)]
    if rng.random() < 0.03 and n > 1:
        names[-1] = names[0]  # duplicates, where the container can hold them
        return names
    return list(dict.fromkeys(names))


def fit_to(table: Table, rng: Rng) -> Table:
    """The table with names and columns that its container can hold."""
    columns = list(table.columns)
    if table.container not in ("pandas", "arrow", "csv"):
        columns = list({column.name: column for column in columns}.values())
    if table.container in ("sqlite", "duckdb"):
        columns = list({column.name.lower(): column for column in columns}.values())
    if table.container == "numpy":
        columns = [c for c in columns if c.type in ("real", "whole", "flag")] or [
            Column("x0", "real", tuple(rng.normal(size=table.n_rows).round(2).tolist()))
        ]
        columns = [replace(c, name=f"x{k}") for k, c in enumerate(columns)]
    return replace(table, columns=tuple(columns))


# --- columns --------------------------------------------------------------------------------------


def _column(rng: Rng, name: str, n: int) -> Column:
    kind = _choice(rng, tuple(_FLAVOURS), tuple(weight for weight, _ in _FLAVOURS.values()))
    type_, values = _FLAVOURS[kind][1](rng, n)
    zone = _choice(rng, ZONES) if type_ == "zoned" else "UTC"
    if type_ == "zoned":
        values = [v.astimezone(ZoneInfo(zone)) for v in values]
    gone = _choice(rng, (0.0, 0.05, 0.5), (6, 3, 1))
    if gone and n > 1:
        missing = rng.random(n) < gone
        nothing = math.nan if type_ == "real" and rng.random() < 0.5 else None
        values = [nothing if m else v for v, m in zip(values, missing.tolist(), strict=True)]
    return Column(name, type_, tuple(values), int(rng.integers(4)), zone)


def _picked(rng: Rng, pool: Sequence[Any], n: int, most: int | None = None) -> Values:
    """Values of a pool, of which only some are used, not all as often."""
    size = int(rng.integers(1, 1 + min(len(pool), most or len(pool))))
    chosen = [pool[i] for i in rng.permutation(len(pool))[:size].tolist()]
    shares = rng.dirichlet(np.full(size, 1.5))
    return [chosen[i] for i in rng.choice(size, n, p=shares).tolist()]


def _real(rng: Rng, n: int) -> tuple[str, Values]:
    digits, scale = int(rng.integers(0, 6)), 10.0 ** rng.integers(-3, 7)
    return "real", (rng.normal(size=n) * scale).round(digits).tolist()


def _nasty_real(rng: Rng, n: int) -> tuple[str, Values]:
    return "real", _picked(rng, NASTY_REALS, n)


def _infinite(rng: Rng, n: int) -> tuple[str, Values]:
    finite = (0.0, 1.0, 2.5) if rng.random() < 0.5 else (-7, 0, 3, 4, 120_000)
    return "real", [float(x) for x in _picked(rng, (math.inf, -math.inf, *finite), n)]


def _whole(rng: Rng, n: int) -> tuple[str, Values]:
    high = int(10 ** rng.integers(1, 7))
    return "whole", rng.integers(-high if rng.random() < 0.3 else 0, high, n).tolist()


def _ports(rng: Rng, n: int) -> tuple[str, Values]:
    """Whole numbers that are names: a few that are frequent, far apart from each other."""
    if rng.random() < 0.2:
        return "whole", _picked(rng, (2**53 + 1, 2**60, 2**60 + 1, 2**62 + 7, 5), n)
    usual = _picked(rng, (22, 53, 80, 443, 3389, 8080, 50_000), n)
    return "whole", [
        int(rng.integers(1024, 65_536)) if free else port
        for port, free in zip(usual, (rng.random(n) < 0.2).tolist(), strict=True)
    ]


def _addresses(rng: Rng, n: int) -> tuple[str, Values]:
    """IPv4 addresses of a few networks, with some texts that are none."""
    starts = [".".join(map(str, rng.integers(0, 256, int(rng.integers(1, 4))))) for _ in range(4)]
    starts += ["10.0.0", "10.0.1", "10.0.10", "1.0.0"]
    values = []
    for start in _picked(rng, starts, n):
        left = 4 - len(start.split("."))
        values.append(".".join([start, *map(str, rng.integers(0, 256, left).tolist())]))
    if rng.random() < 0.3:
        wrong = (rng.random(n) < 0.05).tolist()
        values = [
            _choice(rng, NO_ADDRESSES) if w else v for w, v in zip(wrong, values, strict=True)
        ]
    return "text", values


def _tokens(rng: Rng, n: int) -> tuple[str, Values]:
    """Names of rows, some of which come twice: text or numbers."""
    numbers = rng.integers(0, int(_choice(rng, (2 * n + 1, 10**9, 2**62))), n).tolist()
    if rng.random() < 0.3:
        return "whole", numbers
    return "text", [f"{_choice(rng, ('', 'id-', '0x'))}{number:x}" for number in numbers]


def _big_whole(rng: Rng, n: int) -> tuple[str, Values]:
    if rng.random() < 0.4:
        start = _choice(rng, (2**53, 2**60, 2**62, -(2**61)))
        return "whole", [start + k for k in rng.integers(0, 12, n).tolist()]
    return "whole", _picked(rng, BIG_WHOLES, n)


def _unsigned(rng: Rng, n: int) -> tuple[str, Values]:
    return "whole", _picked(rng, UNSIGNED, n)


def _decimal(rng: Rng, n: int) -> tuple[str, Values]:
    return "decimal", [Decimal(v).scaleb(-2) for v in rng.integers(-500, 5000, n).tolist()]


def _flag(rng: Rng, n: int) -> tuple[str, Values]:
    return "flag", (rng.random(n) < 0.4).tolist()


def _text(pool: Sequence[str]) -> Callable[[Rng, int], tuple[str, Values]]:
    def draw(rng: Rng, n: int) -> tuple[str, Values]:
        return "text", _picked(rng, pool, n)

    return draw


def _many_texts(rng: Rng, n: int) -> tuple[str, Values]:
    return "text", [f"id {k}" for k in rng.integers(0, 300, n).tolist()]


def _sentences(rng: Rng, n: int) -> tuple[str, Values]:
    picked = rng.integers(0, len(WORDS), (n, 3)).tolist()
    return "text", [" ".join(WORDS[i] for i in row) for row in picked]


def _date_texts(rng: Rng, n: int) -> tuple[str, Values]:
    pool = ["2024-01-31", "2024-02-29", "2024-12-01", "1969-07-20", "2300-01-01", "2023-06-30"]
    if rng.random() < 0.5:
        pool += ["2024-02-30", "2024-13-01", "0000-01-01"]
    if rng.random() < 0.3:
        pool = [f"{p}{_choice(rng, (' 10:20', 'T10:20:30', 'T10:20:30.123456'))}" for p in pool]
    if rng.random() < 0.2:
        pool = [f"{p[:10]}T01:30:00{_choice(rng, ('+02:00', 'Z', '-05:30'))}" for p in pool]
    return "text", _picked(rng, pool, n)


def _date(rng: Rng, n: int) -> tuple[str, Values]:
    start = _choice(rng, (dt.date(2024, 1, 1), dt.date(1950, 1, 1), dt.date(2260, 1, 1)))
    return "date", [start + dt.timedelta(days=k) for k in rng.integers(0, 400, n).tolist()]


def _moments(rng: Rng, n: int) -> Values:
    start = _choice(
        rng,
        (dt.datetime(2024, 3, 30), dt.datetime(2024, 10, 26, 12), dt.datetime(1969, 12, 31, 20),
         dt.datetime(1900, 1, 1), dt.datetime(2255, 6, 5, 23, 47), dt.datetime(2900, 1, 1)),
        (4, 3, 2, 1, 1, 1),
    )  # fmt: skip
    unit = _choice(
        rng,
        (dt.timedelta(microseconds=1), dt.timedelta(milliseconds=1), dt.timedelta(minutes=30),
         dt.timedelta(hours=1), dt.timedelta(seconds=1.25), dt.timedelta(hours=7, minutes=20)),
        (2, 1, 4, 2, 1, 4),
    )  # fmt: skip
    return [start + unit * k for k in rng.integers(0, 90, n).tolist()]


def _naive(rng: Rng, n: int) -> tuple[str, Values]:
    return "naive", _moments(rng, n)


def _zoned(rng: Rng, n: int) -> tuple[str, Values]:
    return "zoned", [v.replace(tzinfo=dt.UTC) for v in _moments(rng, n)]


def _clock(rng: Rng, n: int) -> tuple[str, Values]:
    unit = _choice(rng, (1, 60, 1800))
    return "clock", [
        (dt.datetime(2000, 1, 1) + dt.timedelta(seconds=unit * k)).time()
        for k in rng.integers(0, 86400 // unit, n).tolist()
    ]


def _duration(rng: Rng, n: int) -> tuple[str, Values]:
    unit = _choice(rng, (dt.timedelta(microseconds=1), dt.timedelta(hours=1), dt.timedelta(1)))
    return "duration", [unit * k for k in rng.integers(-5, 60, n).tolist()]


def _constant(rng: Rng, n: int) -> tuple[str, Values]:
    kind = _choice(rng, ("real", "text", "flag", "whole"))
    return kind, [{"real": 1.5, "text": "same", "flag": True, "whole": 7}[kind]] * n


def _all_missing(rng: Rng, n: int) -> tuple[str, Values]:
    return _choice(rng, ("real", "text", "naive", "whole")), [None] * n


def _list(rng: Rng, n: int) -> tuple[str, Values]:
    return "list", [[int(k), 1] for k in rng.integers(0, 3, n)]


def _struct(rng: Rng, n: int) -> tuple[str, Values]:
    return "struct", [{"k": int(k), "w": "x"} for k in rng.integers(0, 3, n)]


def _binary(rng: Rng, n: int) -> tuple[str, Values]:
    return "binary", _picked(rng, (b"", b"a", b"\x00\xff", b"abc"), n)


def _mixed(rng: Rng, n: int) -> tuple[str, Values]:
    return "mixed", _picked(rng, ("a", 1, 2.5, True, "1", "True"), n)


_FLAVOURS: dict[str, tuple[float, Callable[[Rng, int], tuple[str, Values]]]] = {
    "real": (10, _real),
    "nasty real": (4, _nasty_real),
    "infinite": (2, _infinite),
    "whole": (6, _whole),
    "ports": (2, _ports),
    "big whole": (3, _big_whole),
    "unsigned": (1, _unsigned),
    "decimal": (2, _decimal),
    "flag": (3, _flag),
    "codes": (5, _text(("DE", "FR", "it", "IT", "X"))),
    "digits and words": (3, _text(("2", "3", "4", "10", "X"))),
    "leading zeros": (1, _text(("007", "010", "10", "7"))),
    "flags as text": (2, _text(("true", "false", "unknown"))),
    "only flags as text": (1, _text(("true", "false", "True"))),
    "numbers as text": (2, _text(("1", "2.5", "-3", "1e3", " 4", "n/a"))),
    "only numbers as text": (1, _text(("1", "2", "3", "2.0"))),
    "nasty text": (5, _text(NASTY_TEXTS)),
    "addresses": (3, _addresses),
    "tokens": (2, _tokens),
    "many texts": (1, _many_texts),
    "sentences": (2, _sentences),
    "dates as text": (2, _date_texts),
    "date": (2, _date),
    "naive": (4, _naive),
    "zoned": (3, _zoned),
    "clock": (2, _clock),
    "duration": (2, _duration),
    "constant": (1, _constant),
    "all missing": (0.7, _all_missing),
    "list": (0.4, _list),
    "struct": (0.4, _struct),
    "binary": (0.4, _binary),
    "mixed": (0.7, _mixed),
}


# --- a new table for rules that are there ---------------------------------------------------------


def draw_new(rng: Rng, table: Table) -> Table:
    """The same columns with other rows, and for some of them other types and unseen values."""
    n_rows = int(rng.integers(1, 60))
    container = _choice(rng, CONTAINERS, (4, 4, 3, 3, 0, 4, 3, 1, 0.5, 1, 2))
    if table.container == "numpy":
        container = "dict"
    columns = [_renewed(rng, column, n_rows) for column in table.columns]
    if len(set(table.names)) == len(columns) and rng.random() < 0.3:
        columns = [columns[i] for i in rng.permutation(len(columns)).tolist()]
    return fit_to(Table(tuple(columns), container), rng)


def _renewed(rng: Rng, column: Column, n: int) -> Column:
    values = [column.values[i] for i in rng.integers(0, len(column.values), n).tolist()]
    column = replace(column, values=tuple(values), form=int(rng.integers(4)))
    if column.type in NESTED or rng.random() < 0.4:
        return column
    changed = _choice(rng, _RENEWALS[column.type])(rng, column)
    if rng.random() < 0.2:
        return _with_gaps(rng, changed)
    return changed


def _with_gaps(rng: Rng, column: Column) -> Column:
    gone = (rng.random(len(column.values)) < 0.3).tolist()
    return replace(
        column, values=tuple(None if g else v for v, g in zip(column.values, gone, strict=True))
    )


Change = Callable[[Rng, Column], Column]


def mapped(type_: str, change: Callable[[Any], Any]) -> Change:
    """Every value that is there as something else."""

    def renew(_: Rng, column: Column) -> Column:
        values = [None if v is None or v != v else change(v) for v in column.values]
        return replace(column, type=type_, values=tuple(values))

    return renew


def _unseen(*pool: Any) -> Change:
    def renew(rng: Rng, column: Column) -> Column:
        new = (rng.random(len(column.values)) < 0.5).tolist()
        return replace(
            column,
            values=tuple(
                _choice(rng, pool) if fresh else v
                for v, fresh in zip(column.values, new, strict=True)
            ),
        )

    return renew


def _only_digits(rng: Rng, column: Column) -> Column:
    """The codes that look like whole numbers, which a file then gives as numbers."""
    pool = sorted({v for v in column.values if isinstance(v, str) and v.isdecimal()}) or ["1", "2"]
    picked = [_choice(rng, pool) for _ in column.values]
    if rng.random() < 0.5:
        return replace(column, values=tuple(picked))
    if rng.random() < 0.5:
        return replace(column, type="real", values=tuple(map(float, picked)))
    return replace(column, type="whole", values=tuple(map(int, picked)))


def _only_flags(rng: Rng, column: Column) -> Column:
    values = (rng.random(len(column.values)) < 0.5).tolist()
    if rng.random() < 0.5:
        return replace(column, type="flag", values=tuple(values))
    return replace(column, values=tuple("true" if v else "false" for v in values))


def _other_zone(rng: Rng, column: Column) -> Column:
    zone = _choice(rng, ZONES)
    moved = [None if v is None else v.astimezone(ZoneInfo(zone)) for v in column.values]
    return replace(column, zone=zone, values=tuple(moved))


def _whole_of(value: Any) -> int:
    return max(-(2**63), min(2**63 - 1, int(value))) if math.isfinite(value) else 0


def _epoch(value: dt.datetime) -> int:
    return int((value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).days)


def _as_clock_text(value: Any) -> str:
    return str(value)


_RENEWALS: dict[str, tuple[Change, ...]] = {
    "real": (mapped("text", repr), mapped("whole", _whole_of), _unseen(1e9, -1e9, 0.5, None),
             _unseen(math.nan, 3.0), _unseen(math.inf, -math.inf, None),
             mapped("flag", lambda v: v > 0)),
    "whole": (mapped("real", float), mapped("text", str), mapped("decimal", Decimal),
              _unseen(2**53 + 1, 0, -7, None), mapped("flag", lambda v: v > 0)),
    "decimal": (mapped("real", float), mapped("text", str), _unseen(Decimal("0.01"), None)),
    "flag": (mapped("text", lambda v: str(v).lower()), mapped("text", str), mapped("whole", int),
             mapped("real", float), _unseen(None)),
    "text": (_only_digits, _only_flags, _unseen("never seen", "", "NA", "7", "true"),
             _unseen("2024-01-31", None), _unseen("0", "2.0", " 2"),
             _unseen("10.0.0.7", "10.0.1.255", "192.168.3.4", *NO_ADDRESSES)),
    "date": (mapped("text", str), mapped("naive", lambda v: dt.datetime(v.year, v.month, v.day)),
             _unseen(dt.date(2024, 2, 29), None), mapped("whole", lambda v: v.toordinal())),
    "naive": (mapped("text", str), mapped("text", lambda v: v.isoformat()),
              mapped("date", lambda v: v.date()),
              mapped("zoned", lambda v: v.replace(tzinfo=dt.UTC)),
              mapped("whole", _epoch), _unseen(dt.datetime(2024, 1, 31, 10, 20), None)),
    "zoned": (mapped("naive", lambda v: v.astimezone(dt.UTC).replace(tzinfo=None)), _other_zone,
              mapped("text", lambda v: v.isoformat()), _unseen(None)),
    "clock": (mapped("text", _as_clock_text), mapped("real", lambda v: v.hour + v.minute / 60),
              _unseen(dt.time(23, 59, 59), None)),
    "duration": (mapped("real", lambda v: v.total_seconds()), _unseen(dt.timedelta(1), None),
                 mapped("text", str)),
}  # fmt: skip
