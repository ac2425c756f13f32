"""Times: their zones in reading, rules, words and exports; their parts; and their one bound."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones
from zoneinfo._zoneinfo import ZoneInfo as PlainZone  # which shows when clocks change

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stair
from databases import Database
from stair.data import from_object, read
from stair.data.conversion import WEEKDAYS, part_of, parts_that_change
from stair.data.zones import SEVERAL, known_zone, local_times, was_in, zone_named, zone_of
from stair.demo import payments
from stair.errors import StairError
from stair.export import from_json, to_json
from stair.export.json import Rulebook
from stair.export.onnx import to_onnx
from stair.export.pandas import pandas_labels, to_pandas
from stair.export.polars import polars_label, to_polars
from stair.export.python import to_python
from stair.export.sql import to_sql
from stair.learn.methods import method_of
from stair.learn.table import choose_fields
from stair.rules.clauses import Among, Interval, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
ZONES = (BERLIN, NEW_YORK, "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "UTC")
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
# Around changes of clocks: the hour that is skipped, the one that comes twice, and a day beside.
CHANGES = {
    BERLIN: (datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1)),
    NEW_YORK: (datetime(2024, 3, 10, 7), datetime(2024, 11, 3, 6)),
}


# --- the time in a zone ---------------------------------------------------------------------------


@given(st.sampled_from(ZONES), st.lists(MOMENTS, min_size=1, max_size=20))
def test_clocks_show_what_python_says(zone: str, moments: list[datetime]) -> None:
    """Over all years, changes of clocks among them: the hour and the weekday of every moment."""
    inside = [m for m in moments if datetime(1, 1, 3) < m < datetime(9999, 12, 29)]
    times = np.array(inside, dtype="datetime64[us]")
    local = [m.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for m in inside]
    assert part_of(times, "hour", zone).tolist() == [m.hour for m in local]
    assert part_of(times, "weekday", zone).tolist() == [WEEKDAYS[m.weekday()] for m in local]


@given(st.sampled_from(sorted(CHANGES)), st.integers(0, 1), st.integers(-7200, 7200))
def test_clocks_near_a_change(zone: str, which: int, seconds: int) -> None:
    """A day is looked at second by second where its clocks change."""
    moment = CHANGES[zone][which] + timedelta(seconds=seconds)
    shown = local_times(np.array([moment], dtype="datetime64[us]"), zone)[0].item()
    assert shown == moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def test_no_clock_changes_twice_a_day() -> None:
    """What `local_times` relies on: where clocks show the same at both ends of a day of UTC, they
    did not change in between. Every zone, every change that is written down for it."""
    for name in sorted(available_timezones()):
        days = [seconds // 86_400 for seconds in PlainZone(name)._trans_utc]
        assert len(set(days)) == len(days), name


@pytest.mark.parametrize("ticks", [-(2**63) + 1, 2**63 - 1, 0, 10**18, -(10**18)])
def test_times_beyond_the_calendar_have_an_hour(ticks: int) -> None:
    """Years that Python does not know do not break anything."""
    times = np.array([ticks], dtype=np.int64).astype("datetime64[us]")
    assert 0 <= part_of(times, "hour", BERLIN)[0] <= 23
    assert part_of(times, "weekday", "-08:00")[0] in WEEKDAYS


@pytest.mark.parametrize(
    ("given_", "expected"),
    [("Europe/Berlin", BERLIN), ("+02:00", "+02:00"), ("UTC+02:00", "+02:00"), ("-0330", "-03:30"),
     ("Z", "UTC"), ("+00:00", "UTC"), ("Etc/UTC", "UTC"), ("pytz.FixedOffset(-90)", "-01:30"),
     ("tzfile('/usr/share/zoneinfo/Europe/Berlin')", BERLIN), ("Mars/Olympus", None),
     ("../etc/passwd", None), ("", None), ("+25:00", None)],
)  # fmt: skip
def test_zones_are_known_by_many_names(given_: str, expected: str | None) -> None:
    assert known_zone(given_) == expected


def test_every_zone_is_known() -> None:
    assert all(known_zone(name) is not None for name in available_timezones())
    assert zone_of(was_in(BERLIN)) == BERLIN
    assert zone_of(was_in("UTC")) == "UTC"
    assert zone_of("duration") is None


def test_an_unknown_zone_gets_one_sentence() -> None:
    with pytest.raises(StairError, match=r'no time zone is called "Europe/Berln".*Europe/Berlin'):
        zone_named("Europe/Berln")
    with pytest.raises(StairError, match="no time zone is called"):
        stair.summarize(stair.Source(payments(), time_zone="Narnia"), labels="flagged")


# --- reading --------------------------------------------------------------------------------------


def _stamps(zone: str, n: int = 60) -> pd.Series:
    start = pd.Timestamp("2024-03-20", tz="UTC")
    return pd.Series([start + pd.Timedelta(hours=7 * k) for k in range(n)]).dt.tz_convert(zone)


@pytest.mark.parametrize("zone", [BERLIN, "+02:00", "UTC"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet", "objects"])
def test_the_zone_of_a_column_is_read(tmp_path: Path, zone: str, kind: str) -> None:
    """Whatever holds the table: its times are moments, and their zone is known."""
    frame = pd.DataFrame({"t": _stamps(zone), "x": np.arange(60.0)})
    data: Any = frame
    if kind == "polars":
        if zone == "+02:00":
            return  # polars has no such zones
        data = pl.from_pandas(frame)
    elif kind == "arrow":
        data = pa.Table.from_pandas(frame)
    elif kind == "parquet":
        data = tmp_path / "t.parquet"
        pq.write_table(pa.Table.from_pandas(frame), data)
    elif kind == "objects":
        data = {"t": [v.to_pydatetime() for v in frame.t], "x": frame.x.tolist()}
    read = from_object(data)
    assert zone_of(read.types["t"]) == zone
    assert (read.columns["t"] == _stamps("UTC").dt.tz_localize(None).to_numpy()).all()
    fields, _ = choose_fields(read)
    assert {f.zone for f in fields if f.source == "t"} == {zone}
    assert [f.name for f in fields] == ["t", "hour of t", "weekday of t", "x"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_texts_with_one_offset_have_that_offset(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    texts = [v.isoformat() for v in _stamps("+02:00")]
    if ending == "csv":
        path.write_text("t,x\n" + "".join(f"{t},{k}\n" for k, t in enumerate(texts)))
    else:
        path.write_text("".join(json.dumps({"t": t, "x": k}) + "\n" for k, t in enumerate(texts)))
    assert zone_of(read(path).types["t"]) == "+02:00"


def _check_before_three(summary: stair.Summary) -> None:
    (rule,) = (rule for rule in summary.rules if rule.label == "outlier")
    assert str(rule) in ('"hour of at" ≤ 2.5', '"hour of at" ≤ 2')


def _labelled(path: Path, zone: str = BERLIN, n: int = 2000) -> pd.DataFrame:
    """Rows over a change of clocks; those before 3 am in a zone are outliers."""
    start = pd.Timestamp("2024-03-11 00:07", tz="UTC")
    times = pd.Series([start + pd.Timedelta(minutes=29 * k) for k in range(n)]).dt.tz_convert(zone)
    frame = pd.DataFrame({"at": times, "noise": np.random.default_rng(0).normal(size=n)})
    frame["bad"] = (frame["at"].dt.hour < 3).astype(int)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.assign(at=[t.isoformat() for t in frame["at"]]).to_csv(path, index=False)
    return frame


@pytest.mark.parametrize("method", ["distilled", "stair", "refined"])
def test_before_three_in_berlin_is_one_rule(tmp_path: Path, method: str) -> None:
    """Over a change of clocks it was three rules while hours were those of UTC."""
    path = tmp_path / "t.csv"
    frame = _labelled(path)
    for data in (path, frame):
        zone = BERLIN if data is path else None
        summary = stair.summarize(
            stair.Source(data, time_zone=zone), labels="bad", method=method, validate=0
        )
        _check_before_three(summary)
        assert summary.score == 1.0
        assert any(BERLIN in note for note in summary.notes)
        assert (summary.rules.predict(data) == np.where(frame.bad, "outlier", "inlier")).all()


def test_several_offsets_are_told(tmp_path: Path) -> None:
    """Texts with +01:00 and +02:00 are no zone: hours are those of UTC, and a note says so."""
    path = tmp_path / "t.csv"
    _labelled(path)
    assert zone_of(read(path).types["at"]) == SEVERAL
    summary = stair.summarize(path, labels="bad", validate=0)
    assert any("several offsets" in n and "time_zone=" in n for n in summary.notes)
    assert {f.zone for f in summary.fields if f.source == "at"} == {"UTC"}


def test_an_offset_that_has_changed_is_told() -> None:
    """Learned in winter from texts that all end in +01:00, applied in summer to +02:00: "before 3"
    moved by an hour without a word, and F1 fell from 0.97 to 0.64."""

    def scans(month: int, offset: str) -> pd.DataFrame:
        random = np.random.default_rng(month)
        hours, days = random.integers(0, 24, 600), random.integers(1, 29, 600)
        texts = [
            f"2024-{month:02}-{day:02}T{hour:02}:30:00{offset}"
            for day, hour in zip(days, hours, strict=True)
        ]
        return pd.DataFrame({"at": texts, "late": hours < 3})

    winter, summer = scans(2, "+01:00"), scans(7, "+02:00")
    learned = stair.summarize(winter, labels="late")
    assert any("where clocks change, time_zone=" in note for note in learned.notes)
    assert learned.rules.read(winter).notes == ()
    (note,) = learned.rules.read(summer).notes
    assert "are those of +01:00, as when the rules were learned" in note
    named = stair.summarize(stair.Source(winter, time_zone=BERLIN), labels="late")
    assert named.rules.read(summer).notes == ()
    assert (named.predict(summer) == summer["late"].to_numpy()).all()


def test_a_zone_for_times_without_one_is_told() -> None:
    summary = stair.summarize(
        stair.Source(payments(), time_zone=BERLIN),
        labels="flagged",
        validate=0,
        method=stair.DistilledStair(effort="fast"),
    )
    assert any("no times have a zone" in note for note in summary.notes)
    assert not any(f.zone for f in summary.fields)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("method", ["stair", "distilled"])
def test_duckdb_reads_zones_too(tmp_path: Path, ending: str, method: str) -> None:
    """The engine for large files finds the same rule, with the zone of Parquet or one offset."""
    path = tmp_path / f"t.{ending}"
    zone = BERLIN if ending == "parquet" else "+02:00"
    _labelled(path, zone)
    summary = stair.summarize(path, labels="bad", engine="duckdb", method=method)
    _check_before_three(summary)
    assert {f.zone for f in summary.fields if f.source == "at"} == {zone}
    assert any(zone in note for note in summary.notes)


def test_dask_reads_zones_too(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = _labelled(tmp_path / "t.parquet")
    parts = dd.from_pandas(frame, npartitions=3)
    for method in ("stair", "distilled"):
        summary = stair.summarize(parts, labels="bad", engine="dask", method=method)
        _check_before_three(summary)
    texts = dd.from_pandas(frame.assign(at=[t.isoformat() for t in frame["at"]]), npartitions=3)
    summary = stair.summarize(
        stair.Source(texts, time_zone=BERLIN), labels="bad", engine="dask", method="stair"
    )
    _check_before_three(summary)


# --- parts and bounds -----------------------------------------------------------------------------


def test_parts_are_there_where_they_change() -> None:
    """Dates have no hour, and a part that is always the same is no attribute."""
    days = np.arange("2024-01-01", "2024-02-01", dtype="datetime64[D]").astype("datetime64[us]")
    noons = days + np.timedelta64(12, "h")
    clocks = days[:1] + np.arange(24).astype("timedelta64[h]")
    assert parts_that_change(days, "") == ("weekday",)
    assert parts_that_change(days, BERLIN) == ("weekday",)
    assert parts_that_change(noons, "") == ("weekday",)
    assert parts_that_change(clocks, "") == ("hour",)
    assert parts_that_change(clocks, BERLIN) == ("hour", "weekday")
    assert parts_that_change(days[:1], "") == ()
    assert parts_that_change(np.full(3, np.datetime64("NaT", "us")), BERLIN) == ()


def test_parts_can_be_left_out() -> None:
    summary = stair.summarize(
        stair.Source(payments(), time_parts=False),
        labels="flagged",
        validate=0,
        method=stair.DistilledStair(effort="fast"),
    )
    assert not any(f.part for f in summary.fields)
    assert not summary.settings["time_parts"]


def test_the_demo_has_no_windows() -> None:
    """With a floor of 0.5 and one attribute a rule it had five windows of a few hours each."""

    def windows(**more: Any) -> int:
        rules = stair.summarize(
            payments(),
            labels="flagged",
            min_score=0.5,
            validate=0,
            method=stair.DistilledStair(max_rule_length=1, **more),
        ).rules
        return sum(c.n_bounds == 2 for r in rules for c in r.clauses if c.feature == "paid_at")

    assert windows() == 0
    assert windows(time_windows=True, effort="fast") > 0


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
@pytest.mark.parametrize("far", [False, True])
def test_no_method_gives_a_time_two_bounds(method: str, far: bool) -> None:
    """Outliers of two afternoons, also where times are so large that codes are ranks: nobody finds
    the window unless windows are asked for. ID3 and CART did, whose trees cut a time twice."""
    rng = np.random.default_rng(1)
    start = np.datetime64("9000-01-01" if far else "2024-01-01", "us")
    at = start + rng.integers(0, 60 * 86400, 1500).astype("timedelta64[s]")
    since = (at - start).astype(np.int64) / 86_400_000_000
    bad = ((since > 20) & (since < 21)) | ((since > 40) & (since < 41.5))
    data = {"at": at, "x": rng.normal(size=1500), "bad": bad.astype(int)}
    for windows in (False, True):
        summary = stair.summarize(
            stair.Source(data, time_parts=False),
            labels="bad",
            min_score=0.8,
            validate=0,
            method=method_of(method, time_windows=windows),
        )
        bounds = [c.n_bounds for r in summary.rules for c in r.clauses if c.feature == "at"]
        assert (max(bounds, default=0) == 2) == windows


@pytest.mark.parametrize("method", ["stair", "distilled"])
def test_large_engines_give_a_time_one_bound(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(1)
    at = np.datetime64("2024-01-01", "us") + rng.integers(0, 5_000_000, 2000).astype("<m8[s]")
    day = (at - at.min()).astype("timedelta64[D]").astype(int)
    frame = pd.DataFrame({"at": at, "x": rng.normal(size=2000), "bad": (day == 20).astype(int)})
    frame.to_parquet(tmp_path / "t.parquet")
    for windows in (False, True):
        summary = stair.summarize(
            stair.Source(tmp_path / "t.parquet", time_parts=False),
            labels="bad",
            engine="duckdb",
            method=method_of(method, time_windows=windows, max_rule_length=2),
        )
        bounds = [c.n_bounds for r in summary.rules for c in r.clauses if c.feature == "at"]
        assert (max(bounds, default=0) == 2) == windows


# --- exports --------------------------------------------------------------------------------------


def _rules(clause: Any, zone: str) -> RuleSet:
    fields = (
        Field("t", "time", "t", type="zoned", zone=zone),
        Field("hour of t", "number", "t", "hour", "zoned", zone),
        Field("weekday of t", "category", "t", "weekday", "zoned", zone),
    )
    rule = Rule((clause,), "outlier", (("inlier", 1.0), ("outlier", 1.0)))
    return RuleSet((rule,), ("inlier", "outlier"), Schema(fields), "inlier", (1.0, 1.0), "outlier")


def _clauses() -> list[Any]:
    return [
        Interval("hour of t", high=2.5),
        Interval("hour of t", low=1.5, high=3.5, missing=True),
        Interval("hour of t", low=22.5),
        Among("weekday of t", ("Sunday", "Monday")),
        Among("weekday of t", ("Sunday",), negated=True, missing=True),
        Period("t", after=np.datetime64("2024-10-27T00:30:00", "us")),
        Period("t", until=np.datetime64("2024-03-31T01:00:00", "us"), missing=True),
    ]


def _moments() -> list[datetime | None]:
    """Around every change, minute by minute where it matters, and some missing."""
    found: list[datetime | None] = [None]
    for changes in CHANGES.values():
        for change in changes:
            found += [change + timedelta(minutes=20 * k) for k in range(-15, 16)]
            found += [change + timedelta(microseconds=k) for k in (-1, 1)]
    found += [
        datetime(1901, 12, 13, 20, 45, 52),
        datetime(2087, 7, 1, 22, 30),
        datetime(1969, 7, 20),
    ]
    return [None if m is None else m.replace(tzinfo=UTC) for m in found]


EVERY_ZONE = (BERLIN, NEW_YORK, "+05:30", "-03:30", "UTC")


@pytest.fixture(params=["Europe/Berlin", "America/New_York"])
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A process whose own zone is another one than UTC."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", EVERY_ZONE)
def test_sql_is_of_the_zone_of_the_rules(database: Database, here: str, zone: str) -> None:
    """Whatever zone the process and the session have: absolute times compare moments, hours and
    weekdays are those of the rules' zone."""
    database.con.execute(f"SET TimeZone = '{here}'")
    moments = _moments()
    database.fill("t", "timestamptz", moments)
    for clause in _clauses():
        rules = _rules(clause, zone)
        assert database.labels(rules) == rules.predict({"t": moments}).tolist(), clause


@pytest.mark.parametrize("zone", ["+05:30", "-03:30", "UTC"])
def test_sql_in_sqlite_knows_offsets(zone: str) -> None:
    import sqlite3

    moments = [*_moments(), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)]
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE data (place INTEGER, t TEXT)")
    rows = [(k, None if m is None else m.isoformat()) for k, m in enumerate(moments)]
    con.executemany("INSERT INTO data VALUES (?, ?)", rows)
    for clause in _clauses():
        rules = _rules(clause, zone)
        query = to_sql(rules, "data", "sqlite").rstrip().rstrip(";")
        found = con.execute(f"SELECT stair_label FROM ({query}) ORDER BY place").fetchall()
        expected = rules.predict({"t": [r[1] for r in rows]}).tolist()
        assert [f[0] for f in found] == expected, clause
    con.close()


def test_what_knows_no_zones_says_so() -> None:
    """SQLite names the rule that it cannot write; ONNX the attribute; the others refuse zones."""
    rules = _rules(Interval("hour of t", high=2.5), BERLIN)
    with pytest.raises(StairError, match=r"the rule .hour of t. ≤ 2\.5 .*Europe/Berlin.*SQLite"):
        to_sql(rules, "data", "sqlite")
    with pytest.raises(StairError, match="Europe/Berlin, and ONNX knows no time zones"):
        to_onnx(rules)
    for dialect in ("snowflake", "mysql", "sqlserver"):
        with pytest.raises(StairError, match="times with a zone"):
            to_sql(rules, "data", dialect)
    text = to_sql(rules, "data", "bigquery")
    assert "EXTRACT(HOUR FROM DATETIME(`t`, 'Europe/Berlin')) <= 2.5" in text
    assert "'Europe/Berlin'" in to_sql(rules, "data", "spark")


@pytest.mark.parametrize("zone", EVERY_ZONE)
def test_code_is_of_the_zone_of_the_rules(here: str, zone: str) -> None:
    """Python, pandas and polars, as functions and as exported text, say what the rules say."""
    del here
    moments = _moments()
    frame = pd.DataFrame({"t": pd.Series(moments, dtype="datetime64[us, UTC]")})
    frames = [frame, frame.assign(t=frame.t.dt.tz_convert("Asia/Tokyo"))]
    for clause in _clauses():
        rules = _rules(clause, zone)
        expected = rules.predict({"t": moments}).tolist()
        code: dict[str, Any] = {}
        exec(to_python(rules), code)
        assert [code["label"]({"t": m}) for m in moments] == expected, clause
        for each in frames:
            assert pandas_labels(rules, each).tolist() == expected, clause
            exec(to_pandas(rules), code := {})
            assert code["label"](each).tolist() == expected, clause
            table = pl.from_pandas(each)
            assert table.select(polars_label(rules)).to_series().to_list() == expected, clause
            exec(to_polars(rules), code := {})
            assert table.select(code["LABEL"]).to_series().to_list() == expected, clause


@pytest.mark.parametrize("zone", EVERY_ZONE)
def test_rules_files_keep_the_zone(zone: str) -> None:
    saved = Rulebook(_rules(_clauses()[0], zone), {})
    text = to_json(saved)
    assert from_json(text).rules == saved.rules
    assert ('"zone"' in text) == (zone != "UTC")
    without = json.loads(text)
    for each in without["fields"]:
        each.pop("zone", None)
    assert {f.zone for f in from_json(json.dumps(without)).fields} == {"UTC"}


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", 7, "../UTC"])
def test_a_zone_in_a_file_is_not_believed(zone: Any) -> None:
    document = json.loads(to_json(Rulebook(_rules(_clauses()[0], BERLIN), {})))
    document["fields"][1]["zone"] = zone
    with pytest.raises(StairError, match="damaged"):
        from_json(json.dumps(document))
    document["fields"][1] |= {"zone": BERLIN, "type": "naive"}
    with pytest.raises(StairError, match="damaged"):
        from_json(json.dumps(document))


# --- a round trip ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK])
def test_apply_leaves_a_zoned_csv_as_it_is(tmp_path: Path, here: str, zone: str) -> None:
    """Byte for byte: offsets, the T or the blank, fractions, both hours that come twice."""
    del here
    path, out, rules = tmp_path / "t.csv", tmp_path / "out.csv", tmp_path / "rules.json"
    _labelled(path, zone)
    summary = stair.summarize(stair.Source(path, time_zone=zone), labels="bad", validate=0)
    summary.to_json(rules)
    odd = [m.astimezone(ZoneInfo(zone)) for m in _moments() if m is not None]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["at", "noise"])
        for k, moment in enumerate(odd):
            sep = "T" if k % 2 else " "
            writer.writerow([moment.isoformat(sep), f"{k}.50"])
    _apply(rules, path, out)
    before, after = path.read_bytes().split(b"\r\n"), out.read_bytes().split(b"\r\n")
    assert [line.split(b",")[:2] for line in after] == [
        line.split(b",") for line in before[:-1]
    ] + [[b""]]
    expected = ["outlier" if m.hour < 3 else "inlier" for m in odd]
    assert [line.split(b",")[2].decode() for line in after[1:-1]] == expected


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, "+05:30"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_apply_leaves_a_zoned_parquet_as_it_is(
    tmp_path: Path, here: str, zone: str, unit: str
) -> None:
    """Values and types, the zone and the unit of the times included."""
    del here
    path, out, rules = tmp_path / "t.parquet", tmp_path / "out.parquet", tmp_path / "rules.json"
    _labelled(path, zone)
    stair.summarize(path, labels="bad", validate=0).to_json(rules)
    odd = pa.array(_moments(), pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone), safe=False)
    table = pa.table({"at": odd, "noise": pa.array(range(len(odd)), pa.int16())})
    pq.write_table(table, path)
    _apply(rules, path, out)
    after = pq.read_table(out)
    assert after.select(["at", "noise"]).equals(table)
    assert after.schema.field("at").type == pa.timestamp(unit, zone)
    tz = ZoneInfo(zone) if zone != "+05:30" else timezone(timedelta(hours=5, minutes=30))
    expected = [
        "outlier" if m is not None and m.astimezone(tz).hour < 3 else "inlier" for m in _moments()
    ]
    assert after.column(2).to_pylist() == expected


def _apply(rules: Path, path: Path, out: Path) -> None:
    from typer.testing import CliRunner

    from stair.cli import app

    result = CliRunner().invoke(app, ["apply", str(rules), str(path), "-o", str(out)])
    assert result.exit_code == 0, result.output
