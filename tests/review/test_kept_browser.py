"""The second month on the page, in Chromium: what is in use, what is new, and a rulebook again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import stair
from review_server import TOKEN, served
from stair.data import write_table
from stair.demo import GIFT_CARDS, KINDS_OF_FRAUD, USUAL, Planted, month
from stair.export import from_json
from stair.operation.mark import marked

PATIENCE = 60_000  # milliseconds for anything to appear; a busy machine takes its time


def test_the_second_month_on_the_page(browser: Any, tmp_path: Path) -> None:
    """Rules that do as before need nobody. The one that decayed is opened first and retired with
    one key, the new one accepted with a note; false alarms lead to exceptions with one click; what
    is taken away is a rulebook, from which the third month goes on."""
    learned = stair.summarize(month(1), "flagged", min_score=0.9, validate=0)
    book = marked(from_json(learned.to_json()), [], status="accepted", owner="ana")
    book.to_json(tmp_path / "rules.json")
    planted = {**USUAL, KINDS_OF_FRAUD[1]: Planted(30, 30), GIFT_CARDS: Planted(60, 1)}
    write_table(tmp_path / "2.csv", month(2, planted=planted))
    words = ("rules.json", "2.csv", "--label", "flagged")
    with served(*words, cwd=tmp_path) as client:
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{client.port}/?token={TOKEN}")
        page.wait_for_selector("#judge")
        assert page.locator(".kind-name").all_inner_texts()[:2] == ["In use", "New"]
        assert page.locator(".progress").inner_text().startswith("3 of 5 rules judged")
        assert page.locator(".sentence").inner_text() == "hour ≤ 4 and merchant = electronics"
        assert "As a false alarm it is retired." in page.locator(".stands").inner_text()
        page.keyboard.press("2")
        page.locator(".sentence", has_text="gift cards").wait_for()
        page.fill("#note", "bought with stolen cards")
        page.locator("#verdict-outlier").click()
        page.locator(".progress", has_text="5 of 5").wait_for()
        page.locator("#find-exceptions-here").click()
        page.locator("#take-exceptions").click()
        page.wait_for_selector(".excepted")
        page.locator("#take").click()
        with page.expect_download() as download:
            page.locator("#take-rulebook").click()
        download.value.save_as(tmp_path / "next.json")
        page.set_viewport_size({"width": 400, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert complaints == []
        context.close()
    after = stair.load(tmp_path / "next.json")
    before = {record.id: record for record in book.records}
    for rule, record in zip(after.kept.rules, after.records, strict=True):
        if record.id not in before:
            assert (record.status, record.note) == ("accepted", "bought with stolen cards")
            assert "gift cards" in str(rule)
        elif "merchant" in rule.features:
            assert record.status == "retired"
        else:
            assert record == before[record.id]
            assert rule in book.kept.rules
    assert after.rules.exceptions
