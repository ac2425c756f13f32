"""A check as a page: what is drawn is what was counted, and nothing from outside gets in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stair
from browser import open_file
from stair.demo import KINDS_OF_FRAUD, USUAL, Planted, month
from stair.export import from_json
from stair.operation.courses import LEFT, RIGHT, TALL, TOP, WIDTH, course
from stair.operation.page import to_html
from stair.operation.statistics import Share

SHARES = st.lists(
    st.none() | st.builds(lambda a, b: Share(a, a + b), st.integers(0, 50), st.integers(0, 10**6)),
    min_size=1, max_size=30,
)  # fmt: skip


@given(SHARES, st.booleans(), st.integers(0, 40))
def test_a_course_stays_in_its_picture(
    shares: list[Share | None], whole: bool, changed: int
) -> None:
    """Each period with rows has a dot in its interval, in the order of the periods, and the change
    is before the dot of its period."""
    names = [f"p{k}" for k in range(len(shares))]
    since = names[changed] if changed < len(names) else ""
    found = course(shares, names, Share(1, 2), since, "right", whole=whole)
    with_rows = [k for k, share in enumerate(shares) if share is not None and share.rows]
    assert len(found.dots) == len(with_rows)
    assert [dot.x for dot in found.dots] == sorted({dot.x for dot in found.dots})
    for dot in found.dots:
        assert LEFT <= dot.x <= WIDTH - RIGHT
        assert TOP - 1e-6 <= dot.high <= dot.y <= dot.low <= TOP + TALL + 1e-6
    assert (found.change is None) == (not since)
    if found.change is not None:
        later = [d for d, k in zip(found.dots, with_rows, strict=True) if k >= changed]
        assert all(dot.x > found.change for dot in later)
        assert sum(dot.x > found.change for dot in found.dots) == len(later)


@pytest.fixture(scope="module")
def checked() -> stair.CheckUp:
    """Five months: in the fourth a kind has faded out."""
    learned = stair.summarize(
        stair.Source(month(1), name="j"), "flagged", min_score=0.9, validate=0
    )
    book = from_json(learned.to_json())
    faded = {**USUAL, KINDS_OF_FRAUD[1]: Planted(0, 1)}
    tables = [month(k, planted=faded if k >= 5 else None, n=3000) for k in range(2, 7)]
    whole = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    source = stair.Source(whole, name="<script>alert(1)</script> \x00")
    return stair.check(book, source, "flagged", time="paid_at")


def test_names_stay_names_and_one_period_has_no_course(checked: stair.CheckUp) -> None:
    text = to_html(checked)
    assert "<script>" not in text
    assert "\x00" not in text
    assert text.count('class="course"') == 2 * len(checked.standings)
    assert "faded since 2026-05" in text
    alone = stair.check(checked.book, month(1, 2), "flagged").to_html()
    assert 'class="course"' not in alone
    assert "No rule has decayed" in alone


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_the_page_in_a_browser(
    checked: stair.CheckUp,
    browser: Any,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    """Nothing is asked for, nothing complains, nothing is wider than the window."""
    checked.to_html(tmp_path / "check.html")
    opened = open_file(browser, tmp_path / "check.html", width=width, color_scheme=scheme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    marks = page.locator("svg.chart path.bound")
    assert marks.count() == 2  # the change of one rule, in both of its pictures
    for text in page.locator("svg.chart text").all():
        box, chart = (
            text.bounding_box(),
            text.locator("xpath=ancestor::*[name()='svg']").bounding_box(),
        )
        assert chart["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= chart["x"] + chart["width"] + 1
    assert opened.complaints == []
    assert len(opened.requests) == 1
    page.context.close()
