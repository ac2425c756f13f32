"""The report in a real browser: Chromium opens the file, uses it, and nothing goes wrong.

Without Chromium these tests are skipped with a visible line; where STAIR_TEST_REQUIRE names
"chromium", as CI does, that is a failure.
"""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import open_file
from flows import flows
from other_rules import distilled
from stair import DistilledStair, LocalStair, Source, Stair, Summary, summarize
from stair.demo import payments
from stair.rules.rule_set import Rule

EVIL = "<script>window.hacked = 1</script>"
IMAGE = '"><img src=x onerror="window.hacked = 1">'


def _evil_table() -> dict[str, Any]:
    """Payments whose columns and categories are called what nobody should call them."""
    table = {name: values[:1500] for name, values in payments().items()}
    country = table.pop("country")
    country[country == "DE"] = EVIL
    country[country == "US"] = IMAGE
    return {
        f"amount {EVIL}": table.pop("amount"),
        IMAGE: country,
        "t}}{{ 7*7": table.pop("hour"),
    } | table


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind of page."""
    folder = tmp_path_factory.mktemp("reports")
    table: dict[str, Any] = payments()
    demo = summarize(
        table, labels="flagged", min_score=0.9, validate=2, method=Stair(max_rule_length=3)
    )
    small = {name: values[:1200] for name, values in payments().items()}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.where(X[:, 0] > 0.5, "a long name of a class", np.where(X[:, 1] > 0.5, "wide", "plain"))
    noise = rng.normal(size=(1500, 4))
    made: dict[str, tuple[Summary, int]] = {
        "demo": (demo, 0),
        "evil": (summarize(Source(_evil_table(), name=f"{EVIL} & Co"), labels="flagged"), 2),
        "local": (summarize(small, labels="flagged", method=LocalStair(n_partitions=3)), 1),
        "classes": (summarize(X, labels=y, min_score=0.9), 1),
        "distilled": (summarize(table, labels="flagged", method=DistilledStair(effort="fast")), 0),
        "overlapping": (_overlapping(demo), 0),
        "kinds": (summarize(Source(flows(1500), name="flows.csv"), labels="Label"), 0),
        "many": (
            summarize(noise, labels=rng.integers(0, 2, 1500), method="stair"),
            0,
        ),
    }
    for name, (summary, examples) in made.items():
        summary.to_html(folder / f"{name}.html", examples=examples)
    return {name: folder / f"{name}.html" for name in made}


def _overlapping(demo: Summary) -> Summary:
    rules = demo.rules.outlier_rules
    wider = [Rule(rule.clauses[1:], rule.label) for rule in rules]
    return distilled(demo, [*rules, *wider])


KINDS = ["demo", "evil", "local", "classes", "distilled", "kinds", "many"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_quiet_and_fits(browser: Any, reports: dict[str, Path], kind: str) -> None:
    """No console message, no request but the file itself, nothing wider than the window, and
    nothing that came from the data has run; everything open."""
    page, complaints, requests = open_file(browser, reports[kind])
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for width, scheme in product((400, 1400), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.hacked") is None
        outside = page.evaluate(
            """() => [...document.querySelectorAll('main *')].filter((e) => {
                const box = e.getBoundingClientRect();
                return box.width && box.right > innerWidth + 1 && !e.closest('.scroll, pre');
            }).map((e) => e.outerHTML.slice(0, 120))"""
        )
        assert outside == [], (width, scheme)
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert complaints == []
    assert requests == [reports[kind].as_uri()]
    page.context.close()


def test_a_person_with_a_keyboard_gets_everywhere(browser: Any, reports: dict[str, Path]) -> None:
    """Sort, search, open with Enter, copy as SQL, switch to dark: by keys alone."""
    page, complaints, requests = open_file(browser, reports["demo"])
    assert page.locator("h1").inner_text().startswith("222 of 5,000 rows are outliers; four short")

    def numbers() -> list[str]:
        return page.locator("#rules > ol > li:visible > details > summary .no").all_inner_texts()

    assert numbers() == ["1", "2", "3", "4"]
    page.locator("#sort").focus()
    page.keyboard.press("ArrowDown")  # from the number to outliers, to precision
    page.keyboard.press("ArrowDown")
    assert page.locator("#sort").input_value() == "precision"
    assert numbers() == ["2", "3", "4", "1"]
    page.locator("#sort").select_option("length")
    assert numbers() == ["1", "3", "4", "2"]
    page.locator("#sort").select_option("rows")
    assert numbers() == ["1", "2", "3", "4"]

    page.locator("#search").focus()
    page.keyboard.type("REFUND")
    assert numbers() == ["3"]
    assert page.locator("#found").inner_text() == "2 of 9 rules"
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    assert numbers() == ["1", "2", "3", "4"]

    page.locator("#all").focus()
    page.keyboard.press("Tab")  # the first rule
    assert page.evaluate("document.activeElement.closest('li').id") == "rule-1"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#rule-1 .body").is_visible()
    assert page.locator("#rule-1 svg.chart").count() == 2
    page.keyboard.press("Tab")  # the SQL
    page.keyboard.press("Tab")  # its button
    page.keyboard.press("Enter")
    page.locator("#rule-1 .copy", has_text="Copied").wait_for()
    sql = page.locator("#sql-1").inner_text()
    assert "IN ('DE', 'FR', 'NL')" in sql
    assert page.evaluate("navigator.clipboard.readText()") == sql

    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.locator("#theme").inner_text() == "Light"
    assert complaints == []
    assert len(requests) == 1
    page.context.close()


def test_a_link_opens_its_rule(browser: Any, reports: dict[str, Path]) -> None:
    """The bar of all outliers leads to the rules, and so does an address with a rule's name."""
    page, _, _ = open_file(browser, reports["demo"])
    page.locator('.strip a[href="#rule-2"]').click()
    page.locator("#rule-2 details[open]").wait_for()
    page.goto("about:blank")
    page.goto(reports["demo"].as_uri() + "#rule-7")  # an inlier rule, folded away
    assert page.locator("#rule-7 .body").is_visible()
    page.context.close()


@pytest.mark.parametrize("kind", ["demo", "distilled", "kinds", "classes"])
def test_words_of_pictures_do_not_touch(browser: Any, reports: dict[str, Path], kind: str) -> None:
    """As the browser measures them, with the font that it has: no two words of a picture overlap,
    and none leaves it."""
    page, _, _ = open_file(browser, reports[kind])
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.locator("svg.chart text").count() > 10
    assert page.evaluate(TOUCHING) == []
    page.context.close()


def test_kinds_are_found_and_opened(browser: Any, reports: dict[str, Path]) -> None:
    """A search leaves the kinds alone that have such a rule, and all rules open at once."""
    page, complaints, _ = open_file(browser, reports["kinds"])
    n_kinds = page.locator(".kind:visible").count()
    assert n_kinds >= 4
    page.locator("#search").fill("protocol")
    assert 1 <= page.locator(".kind:visible").count() < n_kinds
    page.locator("#search").fill("")
    assert page.locator(".kind:visible").count() == n_kinds
    page.locator("#all").click()
    assert page.locator("#rules li.rule details:not([open])").count() == 0
    assert complaints == []
    page.context.close()


def test_paper_shows_everything(browser: Any, reports: dict[str, Path]) -> None:
    """Printed, every rule is open and no control is on the page; afterwards all is as it was."""
    page, complaints, _ = open_file(browser, reports["demo"])
    page.evaluate(
        """() => addEventListener('beforeprint', () => {
            window.open_at_print = document.querySelectorAll('details[open]').length; })"""
    )
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    n_details = page.locator("details").count()
    assert page.evaluate("window.open_at_print") == n_details
    assert page.locator("details[open]").count() == 0
    page.emulate_media(media="print")
    assert not page.locator(".tools").is_visible()
    assert complaints == []
    page.context.close()


def test_without_javascript_the_answer_is_still_there(
    browser: Any, reports: dict[str, Path]
) -> None:
    page, _, _ = open_file(browser, reports["demo"], java_script_enabled=False)
    assert page.locator("h1").is_visible()
    assert not page.locator(".tools").is_visible()
    page.locator("#rule-1 summary").click()
    assert page.locator("#sql-1").is_visible()
    page.context.close()


@pytest.mark.parametrize("kind", ["demo", "local", "distilled"])
def test_words_stand_out_from_their_ground(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    """Contrast of all words at least 4.5 to 1 (WCAG AA); SVG's words too."""
    page, _, _ = open_file(browser, reports[kind])
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == [], scheme
    page.context.close()


def test_the_page_has_names_for_its_parts(browser: Any, reports: dict[str, Path]) -> None:
    """Every control and picture has a name, ids are unique, headings go down one by one."""
    for kind in ("evil", "local", "classes", "distilled"):
        page, _, _ = open_file(browser, reports[kind])
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, input, select, svg[role], a')].filter(
                (e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
                .map((e) => e.outerHTML.slice(0, 100))"""
        )
        assert nameless == []
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))
        levels = page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        page.context.close()


TOUCHING = """() => {
    const found = [];
    for (const svg of document.querySelectorAll('svg.chart')) {
        const room = svg.getBoundingClientRect();
        const boxes = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim())
            .map((t) => [t.textContent, t.getBoundingClientRect()]);
        boxes.forEach(([text, a], k) => {
            if (a.left < room.left - 1 || a.right > room.right + 1) found.push(text + ' leaves');
            for (const [other, b] of boxes.slice(k + 1)) {
                const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (over > 0 && down > 3) found.push(text + ' and ' + other);
            }
        });
    }
    return found;
}"""

# Each text's colour against the first ground behind it that is not transparent.
CONTRAST = """() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (c) => c.slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const ground = (e) => {
        for (; e; e = e.parentElement) {
            const c = numbers(getComputedStyle(e).backgroundColor);
            if (c.length < 4 || c[3] > 0) return c;
        }
        return [255, 255, 255];
    };
    const weak = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!own || !e.checkVisibility() || e.closest('title, script, defs')) continue;
        const style = getComputedStyle(e);
        const inside = e.closest('svg');
        if (inside && inside.closest('.strip')) continue;  // words on coloured bars, tried below
        const a = light(numbers(inside ? style.fill : style.color)), b = light(ground(e));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) weak.push([e.outerHTML.slice(0, 90), ratio]);
    }
    for (const g of document.querySelectorAll('.strip g')) {
        const text = g.querySelector('text'), rect = g.querySelector('rect');
        if (!text.textContent || rect.classList.contains('missed')) continue;
        const a = light(numbers(getComputedStyle(text).fill));
        const b = light(numbers(getComputedStyle(rect).fill));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) weak.push([g.outerHTML.slice(0, 90), ratio]);
    }
    return weak;
}"""
