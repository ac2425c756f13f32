"""The review page in a real browser, with the real command behind it, as a person uses it.

Every page that these tests open is watched: a message in the console, an error, a request that
fails or goes to another host fails the test. Without Chromium they are skipped with a visible
line; where STAIR_TEST_REQUIRE names "chromium", as CI does, that is a failure.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from command import start as start_command
from stair.data import read
from stair.demo import payments
from stair.export.kinds import KINDS
from stair.review.identity import fingerprint_of_table
from stair.review.log import Event
from stair.review.store import Store

PATIENCE = 60_000  # milliseconds for anything to appear; a busy machine takes its time
LEARNED = ["--label", "flagged", "--min-score", "0.9", "--max-rule-length", "3"]
REFUSED = "422"  # the console's lines about input for which the page has a sentence


# --- the command ------------------------------------------------------------------------------


class Command:
    """`stair review` in a process of its own; the address is what it prints."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.process = start_command("review", "--no-browser", *arguments, cwd=folder)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.address

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=30)
        self.process.close()

    def again(self) -> Command:
        """Another process at the same address."""
        parts = urlsplit(self.address)
        token = parts.query.removeprefix("token=")
        return Command(
            *self.arguments, "--port", str(parts.port), "--token", token, folder=self.folder
        )


@pytest.fixture
def start() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def begin(*arguments: str, folder: Path) -> Command:
        started.append(Command(*arguments, folder=folder))
        return started[-1]

    yield begin
    for each in started:
        if each.process.returncode is None:
            each.end()


def write(path: Path, table: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(
            ["" if value is None or value != value else value for value in row]
            for row in zip(*(np.asarray(v).tolist() for v in table.values()), strict=True)
        )
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "payments.csv", payments())


@pytest.fixture
def table(data: Path, tmp_path: Path) -> Path:
    """The demo's data in a folder of its own."""
    return Path(shutil.copy(data, tmp_path))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A part of it, for what is not about the rules."""
    return write(tmp_path / "small.csv", {name: v[:1500] for name, v in payments().items()})


@pytest.fixture(scope="module")
def shared(data: Path) -> Iterator[Command]:
    """One server for all that leaves the rules as they are; with inlier rules, too."""
    server = Command("payments.csv", *LEARNED, "--method", "stair", folder=data.parent)
    yield server
    server.end()


def events_of(path: Path) -> list[Event]:
    """What the file of verdicts beside a table holds."""
    verdicts = path.with_name(path.name + ".review.sqlite")
    store = Store(verdicts, fingerprint_of_table(read(path).columns))
    try:
        return store.events()
    finally:
        store.close()


# --- the browser ------------------------------------------------------------------------------


@dataclass
class Watch:
    """All pages of a test, and what they complained about."""

    browser: Any
    complaints: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def open(
        self, address: str, *, allowed: str = "", width: int = 1400, context: Any = None,
        **settings: Any,
    ) -> Any:  # fmt: skip
        """A page of a new browser profile, or of a known one. `allowed` is a pattern of lines
        in the console that the test brings about itself."""
        if context is None:
            context = self.browser.new_context(
                viewport={"width": width, "height": 900}, reduced_motion="reduce", **settings
            )
            context.set_default_timeout(PATIENCE)
            self.contexts.append(context)
        page = context.new_page()
        host = urlsplit(address).netloc

        def complain(text: str) -> None:
            if not allowed or not re.search(allowed, text):
                self.complaints.append(text)

        def failed(request: Any) -> None:
            if "ERR_ABORTED" not in (request.failure or ""):  # the person went on, or downloads
                complain(f"failed: {request.url} {request.failure}")

        def requested(request: Any) -> None:
            parts = urlsplit(request.url)
            if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != host:
                self.complaints.append(f"another host: {request.url}")

        page.on("console", lambda message: complain(f"console: {message.text}"))
        page.on("pageerror", lambda error: complain(f"error: {error}"))
        page.on("dialog", lambda dialog: (complain("dialog"), dialog.dismiss()))
        page.on("requestfailed", failed)
        page.on("request", requested)
        page.goto(address)
        return page


@pytest.fixture
def watch(browser: Any, start: object) -> Iterator[Watch]:
    """Asks for `start`, so that the pages are closed before their servers end."""
    assert start
    watched = Watch(browser)
    yield watched
    for context in watched.contexts:
        context.close()
    assert watched.complaints == []


def ready(page: Any) -> None:
    """The rule and the first page of its rows are there."""
    page.locator("#rows table.rows, #rows h3").first.wait_for()


def confirmed(page: Any, n: int) -> None:
    """So many decisions of this page are on the disk."""
    page.wait_for_function("n => Number(document.body.dataset.confirmed || 0) >= n", arg=n)
    assert page.evaluate("document.body.dataset.confirmed") == str(n)


def sentence(page: Any) -> str:
    return str(page.locator("#panel .sentence").inner_text())


def on(page: Any, words: str) -> None:
    """The panel shows the rule with these words."""
    page.locator("#panel .sentence", has_text=words).wait_for()


def listed(page: Any) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(".item").all_inner_texts()]


def waiting(page: Any) -> int:
    return int(page.locator("#side > .groups .item.waiting").count())


def fits(page: Any) -> None:
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def job_done(page: Any) -> None:
    page.locator("#job .job").wait_for(state="detached")


# --- the whole way ----------------------------------------------------------------------------


def test_a_person_judges_everything_by_keyboard_and_finds_it_again(
    watch: Watch, table: Path, start: Callable[..., Command]
) -> None:
    """Open, judge, note, undo, edit, relearn, take away, stop, start again: all is there."""
    command = start(table.name, *LEARNED, folder=table.parent)
    page = watch.open(command.address, accept_downloads=True)
    page.locator("#job").first.wait_for(state="attached")  # the page waits and says so
    ready(page)
    assert waiting(page) == 5
    assert page.locator(".progress").inner_text() == "0 of 4 rules judged, 0 of 222 outliers"
    page.keyboard.press("j")
    on(page, "merchant = electronics")
    page.keyboard.press("k")
    on(page, "country not in {DE, FR, NL}")

    page.keyboard.press("1")
    confirmed(page, 1)
    on(page, "merchant = electronics")
    page.keyboard.press("n")
    page.keyboard.type("1 night, 2 shops, 3 jackets")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    confirmed(page, 2)
    on(page, "refund")
    assert page.locator("#note").input_value() == ""
    page.keyboard.press("3")
    confirmed(page, 3)
    on(page, "device is missing")
    page.keyboard.press("u")
    on(page, "refund")
    page.locator("#toast", has_text="Undone: unsure for").wait_for()
    assert waiting(page) == 3
    page.keyboard.press("1")
    confirmed(page, 4)
    on(page, "device is missing")

    page.keyboard.press("e")
    page.locator("#edit-0 input[name=low]:focus").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("1500")
    page.locator("#preview-0", has_text="amount > 1500").wait_for()
    said = page.locator("#preview-0").inner_text()
    assert re.search(r"Would match \d+ rows \(−\d+\), 100% right \(now 100%\)", said), said
    page.keyboard.press("Enter")
    on(page, "amount > 1500")
    assert page.locator("#panel .chip", has_text="edited").is_visible()
    page.keyboard.press("1")
    confirmed(page, 5)
    on(page, "Outliers that no rule covers")
    page.keyboard.press("3")
    confirmed(page, 6)
    assert waiting(page) == 0
    assert page.locator(".progress").inner_text().startswith("4 of 4 rules judged, 222 of 222")
    assert re.match(r"5 decisions cover \d+ rows", page.locator(".effort").inner_text())

    page.locator("#relearn").focus()
    page.keyboard.press("Enter")
    page.locator("#job .job").wait_for()
    job_done(page)
    page.locator("#toast.shown", has_text="kept a verdict").wait_for()
    page.locator(".item", has_text="electronics").wait_for(state="detached")  # rejected
    ready(page)
    n = 6
    while waiting(page):
        assert page.locator(".item.now.waiting").count() == 1  # it landed on one to judge
        page.keyboard.press("1")
        n += 1
        confirmed(page, n)
    page.locator(".item").first.focus()
    page.keyboard.press("Enter")
    on(page, "country")
    page.keyboard.press("n")
    page.keyboard.type("kept <for later> & more")
    page.keyboard.press("Enter")
    confirmed(page, n + 1)

    _take_away(watch, page, table)

    before = (listed(page), page.locator("#lost li").all_inner_texts())
    page.locator(".item").nth(1).click()
    page.locator(".item.now").nth(0).wait_for()
    place = sentence(page)
    context = page.context
    page.close()
    command.end()
    stored = events_of(table)
    command = command.again()
    try:
        page = watch.open(command.address, context=context)
        ready(page)
        assert (listed(page), page.locator("#lost li").all_inner_texts()) == before
        assert sentence(page) == place
        other = watch.open(command.address)  # another browser begins where somebody was
        ready(other)
        assert sentence(other) == place
        assert listed(other) == before[0]
        page.close()
        other.locator(".item").first.click()
        on(other, "country")
        assert other.locator("#note").input_value() == "kept <for later> & more"
        other.close()
    finally:
        command.end()
    assert events_of(table) == stored
    notes = {event.note for event in stored if event.note}
    assert notes == {"1 night, 2 shops, 3 jackets", "kept <for later> & more"}


def _take_away(watch: Watch, page: Any, table: Path) -> None:
    """Everything that there is to take, through the page's own controls."""
    folder = table.parent / "taken"
    folder.mkdir()
    page.locator("#take").click()
    page.locator(".taking").wait_for()

    def take(button: Any) -> Path:
        with page.expect_download() as got:
            button.click()
        path = folder / got.value.suggested_filename
        got.value.save_as(path)
        return path

    rows = read(take(page.get_by_role("link", name="CSV"))).columns
    same = read(take(page.get_by_role("link", name="Parquet"))).columns
    assert list(rows) == list(same)
    assert len(rows["id"]) == len(same["id"]) == 5000
    said = [value for value in same["stair_review"].tolist() if value is not None]
    assert set(said) == {"outlier", "inlier", "unsure"}
    assert "1 night, 2 shops, 3 jackets" in set(same["stair_note"].tolist())  # its rule is gone
    assert "kept <for later> & more" in set(same["stair_note"].tolist())

    assert page.locator("#to option").all_inner_texts() == list(KINDS)
    for kind in ("json", "sql", "onnx", "dbt"):  # a text, one with more to choose, bytes, a folder
        page.locator("#to").select_option(kind)
        path = take(page.get_by_role("button", name="Download"))
        assert path.stat().st_size > 50, kind
        if kind == "json":
            assert json.loads(path.read_text())["rules"]
        if kind == "sql":
            assert "SELECT" in path.read_text()
        if kind == "dbt":
            with zipfile.ZipFile(path) as archive:
                assert "dbt_project.yml" in archive.namelist()
    assert len(list(folder.iterdir())) == 2 + len({p.name for p in folder.glob("*-rules.*")})

    report = take(page.get_by_role("link", name="HTML"))
    shown = watch.open(report.as_uri())
    assert "decisions cover" in shown.locator("h1").inner_text()
    notes = ["kept <for later> & more", "1 night, 2 shops, 3 jackets"]
    assert shown.locator(".said-note").all_inner_texts() == notes
    assert shown.locator("script").count() == 0
    shown.close()


# --- two people -------------------------------------------------------------------------------

# Presses keys as fast as the page confirms what they say; a step now and then.
JUDGE = """(n) => {
    const body = document.body;
    const press = (key) => body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    const seen = () => Number(body.dataset.confirmed || 0);
    let pressed = 0;
    const next = () => {
        if (seen() < pressed) return;
        if (pressed === n) { watching.disconnect(); window.judged = n; return; }
        if (pressed % 10 === 9) press(pressed % 4 ? 'j' : 'k');
        pressed += 1;
        press(String(1 + pressed % 3));
    };
    const watching = new MutationObserver(next);
    watching.observe(body, { attributeFilter: ['data-confirmed'] });
    next();
}"""


def test_two_people_at_once_lose_nothing(
    watch: Watch, small: Path, start: Callable[..., Command]
) -> None:
    """150 decisions in each of two browsers: 300 in the file, and both lists agree. A busy machine
    is waited for while it goes on: 500 of them took it longer than the patience for one thing."""
    command = start(small.name, *LEARNED, folder=small.parent)
    pages = [watch.open(command.address, width=600) for _ in range(2)]
    for page in pages:
        ready(page)
    for page in pages:
        page.evaluate(JUDGE, 150)
    for n_confirmed in (50, 100):
        for page in pages:
            page.wait_for_function(
                "n => Number(document.body.dataset.confirmed) >= n", arg=n_confirmed
            )
    for page in pages:
        page.wait_for_function("() => window.judged === 150")
    decisions = [event for event in events_of(small) if event.kind == "rule"]
    assert len(decisions) == 300
    assert len({event.who for event in decisions}) == 2
    last = {event.subject: event.verdict for event in decisions}
    verdicts = sorted(last.values())
    for page in pages:
        page.wait_for_function(
            """wanted => JSON.stringify([...document.querySelectorAll('#side .item')]
                .map((e) => e.className.split(' ')[1]).sort()) === JSON.stringify(wanted)""",
            arg=verdicts,
        )
    assert listed(pages[0]) == listed(pages[1])


def test_a_second_tab_sees_what_the_first_one_says(watch: Watch, shared: Command) -> None:
    first = watch.open(shared.address)
    second = watch.open(shared.address, context=first.context)
    ready(first)
    ready(second)
    key = first.locator("#panel [data-key]").get_attribute("data-key")
    first.keyboard.press("3")
    confirmed(first, 1)
    second.locator(f"#item-{key}.unsure").wait_for()
    first.keyboard.press("u")
    second.locator(f"#item-{key}.waiting").wait_for()


def test_what_was_said_while_the_server_was_away_arrives_once(
    watch: Watch, small: Path, start: Callable[..., Command]
) -> None:
    """Killed while a person judges: the page says that nothing is saved, and when the server is
    back, the decision gets there, also while the table is still being read."""
    command = start(small.name, *LEARNED, folder=small.parent)
    page = watch.open(command.address, allowed="ERR_|503|htmx:")
    ready(page)
    n_groups = waiting(page)
    page.keyboard.press("1")
    confirmed(page, 1)
    command.end(signal.SIGKILL)
    page.keyboard.press("2")
    page.keyboard.press("3")
    page.locator("#problem", has_text="Not saved yet: stair does not answer").wait_for()
    assert waiting(page) == n_groups - 1
    command = command.again()
    try:
        confirmed(page, 3)
        page.wait_for_function("() => document.getElementById('problem').textContent === ''")
        assert waiting(page) == n_groups - 3
        page.close()
    finally:
        command.end()
    decisions = [event.verdict for event in events_of(small) if event.kind == "rule"]
    assert decisions == ["outlier", "inlier", "unsure"]


# --- keys, focus and notes --------------------------------------------------------------------


def test_keys_mean_what_they_should(watch: Watch, shared: Command) -> None:
    """Text in fields, one verdict for a key that is held, Escape leaves, focus stays."""
    page = watch.open(shared.address)
    ready(page)
    first = sentence(page)

    page.keyboard.press("n")
    page.keyboard.type("123 jk u e ?")
    assert page.locator("#note").input_value() == "123 jk u e ?"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("j")
    page.wait_for_function(
        "first => document.querySelector('#panel .sentence').innerText !== first", arg=first
    )
    page.keyboard.press("k")
    on(page, first)
    assert page.locator("#note").input_value() == "123 jk u e ?"  # no verdict yet, and not lost

    page.keyboard.down("1")
    for _ in range(5):
        page.keyboard.down("1")  # held: the system repeats it
    page.keyboard.up("1")
    confirmed(page, 1)
    assert page.locator("#side > .groups .item.outlier").count() == 1
    assert page.evaluate("document.activeElement.id") == "panel"

    # A button keeps the focus that it had, and a held Enter presses it once.
    page.locator("#verdict-unsure").focus()
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    confirmed(page, 2)
    assert page.evaluate("document.activeElement.id") == "verdict-unsure"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.locator("#toast", has_text="Undone: true outliers").wait_for()
    on(page, first)
    page.keyboard.press("1")
    confirmed(page, 3)
    page.keyboard.press("k")
    on(page, first)

    # A note on what is judged already is kept with Enter, and once.
    page.keyboard.press("n")
    page.keyboard.press("Control+a")
    page.keyboard.type("seen twice")
    page.keyboard.press("Enter")
    confirmed(page, 4)
    on(page, first)
    assert page.locator("#note").input_value() == "seen twice"
    # Text in the field and then another verdict by the mouse: one decision with both.
    page.locator("#note").fill("seen three times")
    page.locator("#verdict-inlier").click(delay=300)
    confirmed(page, 5)
    page.locator(".item.now.inlier", has_text="note").wait_for()
    assert page.locator("#note").input_value() == "seen three times"

    page.keyboard.press("/")
    page.keyboard.type("refund")
    assert page.locator("#side > .groups > li:visible").count() == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.locator("#search").fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.locator("#help[open]").wait_for()
    page.keyboard.press("1")  # behind the dialog nothing is judged
    page.keyboard.press("Escape")
    page.locator("#help[open]").wait_for(state="detached")
    page.keyboard.press("f")
    page.keyboard.type("terminal")
    page.locator("#rows h3", has_text="found in").wait_for()
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.locator("#editing .edit").first.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator("#editing .edit").count() == 0
    assert page.evaluate("document.activeElement.id") == "edit"
    page.keyboard.press("0")
    confirmed(page, 6)
    assert waiting(page) == page.locator("#side > .groups > li").count()


def test_rows_are_sorted_found_turned_and_judged(watch: Watch, shared: Command) -> None:
    page = watch.open(shared.address)
    ready(page)
    page.locator(".item").first.click()
    on(page, "country")
    page.locator(".sort", has_text="amount").click()
    page.locator("th[aria-sort=ascending]").wait_for()
    page.locator(".sort", has_text="amount").click()
    page.locator("th[aria-sort=descending]").wait_for()
    amounts = [float(text) for text in page.locator("table.rows td.own.n").all_inner_texts()]
    assert amounts == sorted(amounts, reverse=True)
    assert len(amounts) == 50
    page.locator("#rows-after").click()
    page.locator("#rows h3", has_text="Rows 51 to").wait_for()
    page.locator("#rows-before").click()
    page.locator("#rows h3", has_text="Rows 1 to 50").wait_for()
    page.locator("#find").fill("nothing of that kind")
    page.locator("#rows h3", has_text="No row found").wait_for()
    page.locator("#find").fill("")
    page.locator("#rows h3", has_text="Rows 1 to 50").wait_for()
    mark = page.locator("td.mark").first
    mark.get_by_role("button", name="False alarm").click()
    mark.locator(".marks.inlier .hand").wait_for()
    page.locator(".effort", has_text="one by one").wait_for()
    mark.get_by_role("button", name="False alarm").click()
    mark.locator(".hand").wait_for(state="detached")


# --- accessibility and space ------------------------------------------------------------------


def faults(page: Any) -> list[str]:
    """What axe-core calls serious or worse, light and dark, wide and narrow; nothing overflows."""
    from axe_playwright_python.base import AXE_FILE_PATH

    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_FILE_PATH.read_text("utf-8"))
    found = []
    for scheme, width in (("dark", 400), ("light", 400), ("dark", 1400), ("light", 1400)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        fits(page)
        # What does not depend on colours and widths is looked at once.
        rules = None if (scheme, width) == ("light", 1400) else VISIBLE
        found.extend(f"{scheme} {width}: {each}" for each in page.evaluate(AXE, rules))
    return found


# Rows after the first few are as the first ones are.
AXE = """async (only) => {
    const many = [...document.querySelectorAll('table.rows tbody tr')].slice(3);
    const options = { resultTypes: ['violations'], ...(only ? { runOnly: only } : {}) };
    const found = await axe.run({ exclude: many }, options);
    if (!found.passes.length) return ['axe looked at nothing'];
    return found.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
        .map((v) => v.id + ' ' + v.nodes.map((n) => n.html.slice(0, 150) + n.failureSummary));
}"""
VISIBLE = ["color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block"]


def test_axe_finds_no_serious_fault_in_any_state_of_a_review(watch: Watch, shared: Command) -> None:
    page = watch.open(shared.address)
    ready(page)
    found: dict[str, list[str]] = {}
    page.locator(".item").first.click()
    on(page, "country")
    found["a rule"] = faults(page)
    page.keyboard.press("1")
    confirmed(page, 1)
    page.locator(".item").first.click()
    on(page, "country")
    page.keyboard.press("e")
    page.locator("#editing .edit").first.wait_for()
    page.locator("#edit-0 input[name=low]").fill("5000")
    page.locator("#preview-0 b").wait_for()
    ready(page)
    found["editing a judged rule"] = faults(page)
    page.locator("#edit-0 input[name=high]").fill("1")
    page.locator("#preview-0 .wrong").wait_for()
    found["a wrong bound"] = faults(page)
    page.locator(".item", has_text="no rule covers").click()
    on(page, "Outliers that no rule covers")
    ready(page)
    found["uncovered"] = faults(page)
    page.locator("#inner summary").click()
    page.locator("#inner .item").first.click()
    page.locator(".where", has_text="Inlier rule").wait_for()
    ready(page)
    assert page.locator("#inner[open]").count() == 1  # it stays open when the list is new
    found["an inlier rule"] = faults(page)
    page.keyboard.press("?")
    found["help"] = faults(page)
    page.keyboard.press("Escape")
    page.locator("#take").click()
    page.locator(".taking").wait_for()
    found["taking away"] = faults(page)
    page.keyboard.press("t")
    page.locator("#tuning").wait_for()
    found["tuning"] = faults(page)
    # The slowest way to find rules, so that there is something to see while it works.
    page.evaluate("document.getElementById('method').value = 'distilled'")
    page.locator("#find-frontier").click()
    page.locator("#job .job").wait_for()
    points = "document.querySelectorAll('#frontier button.floor').length"
    page.wait_for_function(f"() => {points} >= 1 && {points} < 8")  # point by point
    found["working"] = faults(page)
    job_done(page)
    page.locator("#frontier button.floor").nth(7).wait_for()
    found["frontier"] = faults(page)
    page.keyboard.press("u")
    page.locator("#toast", has_text="Undone").wait_for()
    assert {state: some for state, some in found.items() if some} == {}


# --- names that nobody should give -------------------------------------------------------------

EVIL = "<script>window.hacked = 1</script>"
IMAGE = "\"><img src=x onerror='window.hacked = 1'>{{7*7}}${7*7}"


def evil_payments() -> dict[str, Any]:
    table = {name: values[:1500] for name, values in payments().items()}
    country = table.pop("country")
    country[country == "DE"] = EVIL
    country[country == "US"] = IMAGE
    note = table.pop("note")
    note[:] = [f"{text} {EVIL}{IMAGE}" if text else text for text in note]
    return {
        f"amount {EVIL}": table.pop("amount"),
        IMAGE: country,
        "'); t}}{{ 7*7": table.pop("hour"),
        "note": note,
    } | table


def test_names_values_and_notes_are_shown_and_never_run(
    watch: Watch, tmp_path: Path, start: Callable[..., Command]
) -> None:
    """Markup and templates in the file's name, columns, categories, texts and notes."""
    path = write(tmp_path / (IMAGE.replace("/", "") + ".csv"), evil_payments())
    command = start(path.name, "--label", "flagged", "--max-rule-length", "3", folder=tmp_path)
    page = watch.open(command.address, accept_downloads=True)
    ready(page)
    assert path.name in page.title()
    assert path.name in page.locator("h1").inner_text()
    shown = page.locator("body").inner_text()
    assert EVIL in shown
    assert "{{7*7}}" in shown
    n = 0
    while waiting(page):
        page.keyboard.press("n")
        page.keyboard.type(f"{EVIL} {IMAGE}")
        page.keyboard.press("Enter")
        page.keyboard.press("1")
        n += 1
        confirmed(page, n)
        ready(page)
    page.locator(".item").first.click()
    page.locator(".groups li:first-child .item.now").wait_for()
    assert page.locator("#note").input_value() == f"{EVIL} {IMAGE}"
    page.keyboard.press("e")
    page.locator("#editing .edit").first.wait_for()
    page.locator("#find").fill(IMAGE)
    page.locator("#rows h3", has_text=re.compile("found|Rows")).wait_for()
    for name in page.locator(".sort").all_inner_texts()[:4]:
        page.locator(".sort", has_text=name).first.click()
        page.locator("th[aria-sort]", has_text=name).wait_for()
    page.locator("#tune").click()
    page.locator("#tuning").wait_for()
    page.locator("#take").click()
    page.locator(".taking").wait_for()
    with page.expect_download() as got:
        page.get_by_role("link", name="HTML").click()
    report = tmp_path / "report.html"
    got.value.save_as(report)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    written = watch.open(report.as_uri())
    assert path.name in written.locator(".source").inner_text()
    assert written.locator(".said-note").first.inner_text() == f"{EVIL} {IMAGE}"
    assert written.evaluate("window.hacked") is None
    assert written.locator("img, script").count() == 0


# --- from nothing -----------------------------------------------------------------------------


def test_it_starts_empty(
    watch: Watch, tmp_path: Path, small: Path, start: Callable[..., Command]
) -> None:
    """Upload, choose, see it work, judge; then a file of the folder and a detector."""
    table = payments()
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "two.csv", {name: table[name][:1500] for name in ("amount", "hour")})
    (folder / "broken.csv").write_bytes(b"\x00\x01\x02")
    command = start(folder=folder)
    page = watch.open(command.address, allowed=REFUSED)
    page.get_by_role("heading", name="Which table?").wait_for()
    assert faults(page) == []
    page.get_by_role("button", name="broken.csv").click()
    page.locator("#problem p").wait_for()
    assert "broken.csv" in page.locator("#problem p").inner_text()
    page.get_by_role("button", name="Close").click()

    page.locator("#file").set_input_files(small)
    page.locator(".setup h2", has_text="small.csv").wait_for()
    assert page.locator("select[name=label]").input_value() == "flagged"
    assert page.locator("input[name=by][value=label]").is_checked()
    assert faults(page) == []
    for box in page.locator("input[name=use]").all():
        box.uncheck()
    page.get_by_role("button", name="Show the rules").click()
    page.locator("#problem p", has_text="no column is ticked").wait_for()
    for name in ("amount", "hour", "country", "merchant"):
        page.locator(f"input[name=use][value={name}]").check()
    page.locator("input[name=floor]").fill("0.7")
    page.locator("input[name=longest]").fill("3")
    assert page.locator(".setup output").all_inner_texts() == ["0.70", "3"]
    page.locator("select[name=method]").select_option("distilled")
    page.get_by_role("button", name="Show the rules").click()
    page.get_by_role("heading", name="One moment").wait_for()
    ready(page)
    texts = listed(page)
    assert texts
    assert not any("refund" in text or "device" in text for text in texts)

    # Other floors and lengths give other rules; the page stays where the sliders are.
    page.keyboard.press("t")
    page.locator("#panel .sentence", has_text="total length 4").wait_for()
    page.locator("#floor").focus()
    page.keyboard.press("Home")
    page.locator("#job .job").wait_for()
    job_done(page)
    page.locator("#panel .sentence", has_text="total length 3").wait_for()
    assert page.evaluate("document.activeElement.id") == "floor"
    page.locator("#method").select_option("stair")
    page.locator("#longest").focus()
    page.keyboard.press("Home")  # the newest wish wins
    page.wait_for_function(
        """() => document.querySelector('#longest')?.value === '1' &&
            !/ and /.test(document.querySelector('.now-rules').textContent)"""
    )
    job_done(page)
    assert (page.locator("#longest").input_value(), page.locator("#floor").input_value()) == (
        "1",
        "0.5",
    )

    page.get_by_role("link", name="Another file").click()
    page.get_by_role("button", name="two.csv").click()
    page.locator(".setup h2", has_text="two.csv").wait_for()
    page.locator("input[name=by][value=detector]").check()
    page.locator("select[name=detector]").select_option("iforest")
    page.locator("input[name=contamination]").fill("90")
    page.evaluate("document.querySelector('form.setup').noValidate = true")
    page.get_by_role("button", name="Show the rules").click()
    page.locator("#problem p", has_text="expected up to 50").wait_for()
    page.locator("input[name=contamination]").fill("3")
    page.get_by_role("button", name="Show the rules").click()
    page.locator("h1", has_text="two.csv").wait_for()
    ready(page)
    assert "45 outliers" in page.locator("h1").inner_text()


# --- wishes -----------------------------------------------------------------------------------

PICTURES = os.environ.get("STAIR_TEST_PICTURES")


def picture(page: Any, name: str) -> None:
    """Kept for a person to look at, where somebody names a folder."""
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def test_wishes_set_by_hand_are_learned_and_told(
    watch: Watch,
    tmp_path: Path,
    small: Path,
    start: Callable[..., Command],
) -> None:
    """Floors, a budget and three columns, each in its own way; the report names them all."""
    command = start(small.name, "--label", "flagged", "--max-rule-length", "3", folder=tmp_path)
    page = watch.open(command.address, allowed="422")
    ready(page)
    page.keyboard.press("t")
    page.locator("#tuning").wait_for()
    assert page.locator("#floored").is_checked()
    page.locator("#floored").uncheck()
    page.locator("#min_precision").fill("85")
    page.locator("#max_alerts").fill("60")
    page.locator("#max_rules").fill("2")
    for name, open_it in (("amount", "direction"), ("country", "cost"), ("merchant", "never")):
        menu = page.locator(".column-menu", has=page.locator(f'input[name=column][value="{name}"]'))
        menu.locator("summary").click()
        if open_it == "direction":
            menu.locator("select").select_option("up")
        elif open_it == "cost":
            menu.locator("input[name=cost]").fill("3")
        else:
            menu.locator("input[name=never]").check()
    assert faults(page) == []
    fits(page)
    picture(page, "wishes-form")
    page.locator("#learn-again").click()
    page.locator("#panel .told", has_text="As wished").wait_for()
    job_done(page)
    told = page.locator("#panel .told").inner_text()
    assert "at most 60" in told
    assert "at most 2" in told
    assert "merchant (never)" in told
    rules = page.locator(".now-rules").inner_text()
    assert "merchant" not in rules
    assert "amount ≤" not in rules
    assert page.locator("#min_precision").input_value() == "85"
    assert not page.locator("#floored").is_checked()
    assert "cost 3" in page.locator(".columns-known").inner_text()
    picture(page, "wishes-learned")

    page.locator("#take").click()
    with page.expect_download() as got:
        page.get_by_role("link", name="HTML").click()
    report = tmp_path / "report.html"
    got.value.save_as(report)
    written = watch.open(report.as_uri())
    said = written.locator(".told").first.inner_text()
    for words in ("at least 85%", "at most 60", "at most 2", "amount (only large values",
                  "country (costs 3)", "merchant (never)"):  # fmt: skip
        assert words in said
    picture(written, "wishes-report")

    page.locator("#tune").click()
    page.locator("#max_alerts").fill("many")
    page.locator("#learn-again").click()
    page.locator("#problem p", has_text="expected a whole number").wait_for()
