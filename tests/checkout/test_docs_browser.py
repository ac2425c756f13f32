"""The site in a real browser: it fits, it is quiet, and it asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs.site import PAGES, build

from browser import open_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("site")
    build(path)
    return path


def test_every_page_is_quiet_and_fits(browser: Any, folder: Path) -> None:
    opened = open_file(browser, folder / "index.html")
    for page in PAGES:
        opened.page.goto((folder / f"{page.name}.html").as_uri())
        for width, scheme in ((400, "dark"), (1000, "light"), (1400, "light")):
            opened.page.set_viewport_size({"width": width, "height": 900})
            opened.page.emulate_media(color_scheme=scheme)
            wide = opened.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (page.name, width)
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
    opened.page.context.close()


def test_a_reader_chooses_light_or_dark_and_finds_the_menu(
    browser: Any,
    folder: Path,
) -> None:
    """The choice lasts from page to page; on a phone the menu opens, also without scripts."""
    page = open_file(browser, folder / "index.html", width=400, color_scheme="light").page
    menu = page.locator("#the-menu a", has_text="Tutorial")
    assert not menu.is_visible()
    page.click(".to-menu")
    menu.click()
    page.click("#the-theme")
    page.goto((folder / "paper.html").as_uri())
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()
    plain = open_file(browser, folder / "index.html", width=400, java_script_enabled=False).page
    plain.click(".to-menu")
    assert plain.locator("#the-menu a", has_text="Tutorial").is_visible()
    plain.context.close()


def test_nothing_is_found_by_axe(browser: Any, folder: Path) -> None:
    """Contrast, names and order, on a page of each kind and with the search open."""
    from axe_playwright_python.sync_playwright import Axe

    opened = open_file(browser, folder / "index.html", width=1400)
    for name in ("index", "gallery", "fraud", "api", "command", "paper", "q1"):
        opened.page.goto((folder / f"{name}.html").as_uri())
        if name == "index":
            opened.page.fill("#the-words", "routed")
            opened.page.locator("#the-found li").first.wait_for()
        for scheme in ("light", "dark"):
            opened.page.emulate_media(color_scheme=scheme)
            found = (
                Axe()
                .run(opened.page, options={"resultTypes": ["violations"]})
                .response["violations"]
            )
            assert not found, (name, scheme, [(each["id"], each["nodes"][:2]) for each in found])
    opened.page.context.close()


def test_the_search_finds_words_from_a_disk(browser: Any, folder: Path) -> None:
    """By the keyboard alone, with all words of all documents, and still nobody is asked."""
    opened = open_file(browser, folder / "index.html", width=1000, color_scheme="light")
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("routed")
    page.locator("#the-found li").first.wait_for()
    assert page.locator("#the-found mark").first.inner_text().lower().startswith("routed")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('#the-found') !== null")
    target = page.evaluate("document.activeElement.href")
    page.keyboard.press("Enter")
    page.wait_for_url(target)
    assert "routed" in page.locator("main").inner_text().lower()
    page.fill("#the-words", "no-such-word-anywhere")
    page.locator("#the-count", has_text="0 places").wait_for()
    page.keyboard.press("Escape")
    assert not page.locator("#the-found").is_visible()
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
    page.context.close()


def test_every_document_is_found_by_its_title(browser: Any, folder: Path) -> None:
    """A whole title leads to the page that has it, among the first."""
    page = open_file(browser, folder / "index.html", width=1000, color_scheme="light").page
    page.focus("#the-words")
    page.wait_for_function("window.stairWords")
    for each in PAGES:
        asked = "name => window.stairWords.find(place => place[0] === name)[3]"
        title = page.evaluate(asked, each.name)
        page.fill("#the-words", title)
        places = page.locator("#the-found a").evaluate_all("links => links.map(link => link.href)")
        assert any(f"/{each.name}.html" in place for place in places[:5]), (title, places[:5])
    page.context.close()
