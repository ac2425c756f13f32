"""What a click on a verdict costs: counted, not timed."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from places import PICTURE, SOURCE
from stair.data import write_table
from stair.review import session
from stair.review.app import make_app
from stair.review.desk import Desk, Opening
from stair.review.store import Store

EARLIER = 20  # decisions before the click


def ask(app: Any, method: str, path: str, **fields: str) -> httpx.Response:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            return await client.request(method, path, data=fields or None)

    return asyncio.run(answer())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Any, Desk]]:
    """A review with decisions in it, in a file that holds those about other data too."""
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=400).round(2), rng.normal(size=400).round(2)
    y = ((x > 1.2) | (z < -1.5)).astype(np.int64)
    path = tmp_path / "t.csv"
    write_table(path, {"x": x, "z": z, "y": y})
    desk = Desk(db=tmp_path / "v.sqlite")
    other = Store(tmp_path / "v.sqlite", "other data")
    for number in range(EARLIER):
        other.decide("Bo", f"rule {number}", "outlier", payload="not ours to read")
    other.close()
    job = desk.open(Opening(path, label="y", method="stair", max_rule_length=3).check())
    while not job.is_done:
        pass
    assert not job.error
    app = make_app(desk)
    for number in range(EARLIER):
        word = ("outlier", "inlier")[number % 2]
        assert ask(app, "POST", f"/group/{_key(desk, number)}/verdict", verdict=word).is_success
    yield app, desk
    desk.close()


def _key(desk: Desk, number: int) -> str:
    now = desk.review.now() if desk.review else None
    assert now is not None
    judged = [group.key for group in now.revision.groups if group.is_judged]
    return judged[number % len(judged)]


def test_a_click_is_one_transaction_and_decodes_nothing_again(
    opened: tuple[Any, Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was two transactions, every decision was decoded again, and the payloads of all decisions
    about other data were read for the one number of them."""
    app, desk = opened
    assert desk.review is not None
    path = f"/group/{_key(desk, 0)}/verdict"
    said: list[str] = []
    decoded: list[str] = []
    whole = session.rows_from_text
    monkeypatch.setattr(
        session, "rows_from_text", lambda text, n: decoded.append(text) or whole(text, n)
    )
    connection = desk.review.store._connection
    connection.set_trace_callback(said.append)
    try:
        answer = ask(app, "POST", path, verdict="unsure", once="k1")
    finally:
        connection.set_trace_callback(None)
    assert answer.status_code == 200
    assert f"{EARLIER} decisions in this file belong to other rows" in answer.text
    verbs = [statement.split()[0] for statement in said]
    assert (verbs[0], verbs[-1]) == ("BEGIN", "COMMIT")
    assert verbs.count("BEGIN") == 1
    assert verbs.count("SELECT") <= 2  # what has come since, and whether the request came before
    assert not [text for text in said if "not ours to read" in text]
    assert decoded == []


def test_a_click_that_fails_leaves_nothing_behind(
    opened: tuple[Any, Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of an event that did not come to the disk is given to another one, which must not
    be taken for it."""
    _, desk = opened
    review = desk.review
    assert review is not None
    key = _key(desk, 0)
    before = review.store.events()
    with monkeypatch.context() as patch:
        patch.setattr(review.store, "put_place", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError), review.store.writing():
            now = review.now()
            assert now is not None
            review.decide("me", now.revision.find(key), "unsure", "", "")  # type: ignore[arg-type]
            after = review.now()
            assert after is not None and after.state.rules[key].verdict == "unsure"
            review.store.put_place("me", key)
    assert review.store.events() == before
    now = review.now()
    assert now is not None and now.state.rules[key].verdict != "unsure"
    again = Store(review.store.path, review.store._data)
    fresh = session.Review(review.given, again).now()
    assert fresh is not None and np.array_equal(fresh.judged.marks, now.judged.marks)
    again.close()


def _listed(heading: str) -> tuple[set[str], set[str]]:
    """The rooms that a part of docs/architecture.md names: those of the review, and others."""
    part = PICTURE.read_text(encoding="utf-8").split(f"\n### {heading}\n")[1].split("\n#")[0]
    names = {name for name in re.findall(r"`([\w/]+\.py)`", part) if (SOURCE / name).exists()}
    own = {name for name in names if name.startswith("review/")}
    return own, names - own


def test_the_rooms_of_a_click_are_those_that_are_listed(opened: tuple[Any, Desk]) -> None:
    """The walk in docs/architecture.md: the modules of ours in which anything is called, from one
    POST to its answer."""
    app, desk = opened
    path = f"/group/{_key(desk, 1)}/verdict"
    rooms: set[str] = set()

    def called(frame: Any, event: str, _: Any) -> None:
        place = Path(frame.f_code.co_filename)
        if event == "call" and place.suffix == ".py" and place.is_relative_to(SOURCE):
            rooms.add(place.relative_to(SOURCE).as_posix())

    threading.setprofile(called)  # a handler has a thread of its own
    sys.setprofile(called)
    try:
        answer = ask(app, "POST", path, verdict="unsure")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    assert answer.status_code == 200
    own, others = _listed("A click")
    assert len(own) <= 8
    assert rooms == own | others
