"""Chromium for tests of pages, and a page in it with everything that it complains about.

Where there is the shell of Chromium that has no window, it is taken: it needs half the time.
Without Chromium the tests are skipped with a visible line; where STAIR_TEST_REQUIRE names
"chromium", as CI does, that is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REQUIRED = "chromium" in os.environ.get("STAIR_TEST_REQUIRE", "").split(",")
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


class Opened(NamedTuple):
    """A page, and everything that it complained about or asked the network for."""

    page: Any
    complaints: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if REQUIRED:
            pytest.fail("STAIR_TEST_REQUIRE asks for chromium, and it is not here")
        pytest.skip("Chromium (with Playwright) is not here: no page is tried in a browser")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


def open_file(browser: Any, path: Path, **settings: Any) -> Opened:
    context = browser.new_context(
        viewport={"width": settings.pop("width", 1400), "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
        **settings,
    )
    page = context.new_page()
    opened = Opened(page, [], [])
    page.on("console", lambda message: opened.complaints.append(message.text))
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (opened.complaints.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(path.as_uri())
    return opened
