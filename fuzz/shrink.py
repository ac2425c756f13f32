"""The same failure in a smaller case: fewer columns, fewer rows, plainer names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz import wishes
from fuzz.case import Case, Table

Fails = Callable[[Case], bool]


def shrunk(case: Case, fails: Fails, seconds: float) -> Case:
    """A case that still fails, and of which nothing can go; or as far as the time allows."""
    end = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for attempt in _smaller(case):
            if time.monotonic() > end:
                return case
            if fails(attempt):
                case, smaller = attempt, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    names = case.table.names
    if case.extras:
        for extra in case.extras:
            yield replace(case, extras=tuple(e for e in case.extras if e != extra))
    if case.wishes:
        yield replace(case, wishes={})
        for wish in case.wishes:
            left = {name: value for name, value in case.wishes.items() if name != wish}
            yield replace(case, wishes=left)
    for name in dict.fromkeys(names):
        if len(set(names)) > 1:
            yield replace(
                case,
                table=_without(case.table, name),
                new=_without(case.new, name),
                kinds={n: k for n, k in case.kinds.items() if n != name},
                wishes=wishes.without(case.wishes, name),
            )
    if case.time_parts:
        yield replace(case, time_parts=False)
    if not case.time_windows:
        yield replace(case, time_windows=True)
    if case.kinds:
        yield replace(case, kinds={})
    for rows in _fewer(case.table.n_rows):
        verdict = case.verdict.take(rows)
        if case.verdict.kind != "classes" or len(set(verdict.values)) > 2:  # two are a verdict of
            yield replace(case, table=case.table.take(rows), verdict=verdict)  # another kind
    for rows in _fewer(case.new.n_rows):
        yield replace(case, new=case.new.take(rows))
    for k, name in enumerate(dict.fromkeys(names)):
        plain = f"c{k}"
        if name != plain and plain not in names and case.table.container != "numpy":
            yield replace(
                case,
                table=_renamed(case.table, name, plain),
                new=_renamed(case.new, name, plain),
                kinds={plain if n == name else n: kind for n, kind in case.kinds.items()},
                wishes=wishes.renamed(case.wishes, name, plain),
            )
    for container in ("dict", "pandas"):
        if case.table.container not in ("dict", container):
            yield replace(case, table=replace(case.table, container=container))
        if case.new.container not in ("dict", container):
            yield replace(case, new=replace(case.new, container=container))
    if case.method not in ("stair", "local"):
        yield replace(case, method="stair", wishes={})


def _without(table: Table, name: str) -> Table:
    return replace(table, columns=tuple(c for c in table.columns if c.name != name))


def _renamed(table: Table, old: str, new: str) -> Table:
    return replace(
        table,
        columns=tuple(replace(c, name=new) if c.name == old else c for c in table.columns),
    )


def _fewer(n: int) -> Iterator[list[int]]:
    """All rows but one half, but one quarter, and so on."""
    size = n // 2
    while size >= 1:
        for start in range(0, n, size):
            kept = [row for row in range(n) if not start <= row < start + size]
            if kept:
                yield kept
        size //= 2
        if n > 40 and size < n // 16:
            return
