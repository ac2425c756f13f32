"""The site in a real browser: it fits, it is quiet, and it asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs.site import PAGES, build

from test_report_browser import _open, browser

__all__ = ["browser"]  # the fixture


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("site")
    build(path)
    return path


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1000, "light"), (1400, "light")])
def test_every_page_is_quiet_and_fits(
    browser: Any,
    folder: Path,
    width: int,
    scheme: str,
) -> None:
    opened = _open(browser, folder / "index.html", width=width, color_scheme=scheme)
    for page in PAGES:
        opened.page.goto((folder / f"{page.name}.html").as_uri())
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, page.name
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
    opened.page.context.close()


def test_a_reader_chooses_light_or_dark_and_finds_the_menu(
    browser: Any,
    folder: Path,
) -> None:
    """The choice lasts from page to page; on a phone the menu opens, also without scripts."""
    page = _open(browser, folder / "index.html", width=400, color_scheme="light").page
    menu = page.locator("#menu a", has_text="Tutorial")
    assert not menu.is_visible()
    page.click(".to-menu")
    menu.click()
    page.click("#theme")
    page.goto((folder / "paper.html").as_uri())
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()
    plain = _open(browser, folder / "index.html", width=400, java_script_enabled=False).page
    plain.click(".to-menu")
    assert plain.locator("#menu a", has_text="Tutorial").is_visible()
    plain.context.close()
