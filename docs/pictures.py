"""The pictures of the README: the demo's report and its review, as Chromium shows them.

    python docs/pictures.py

needs Chromium, Playwright and Pillow (`pip install -e '.[test]'` has both).
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from stair import DistilledStair, Source, summarize
from stair.demo import payments

IMAGES = Path(__file__).resolve().parent / "images"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
WIDTH, HEIGHT = 1200, 1245


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("docs/pictures.py needs Chromium; install it, on Debian with apt-get")
    summary = summarize(
        Source(payments(), name="payments"),
        labels="flagged",
        min_score=0.9,
        validate=5,
        method=DistilledStair(max_rule_length=3),
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        summary.to_html(page)
        shot = _shot(chromium, page)
        review = _review(chromium, Path(folder))
    IMAGES.mkdir(exist_ok=True)
    _write(IMAGES / "report.png", shot)
    _write(IMAGES / "review.png", review)


def _write(path: Path, shot: bytes) -> None:
    # 128 colours are more than the page has, and a third of the bytes.
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
    print(f"wrote {path.relative_to(Path.cwd())}, {path.stat().st_size / 1000:.0f} kB")


def _shot(chromium: str, path: Path) -> bytes:
    """The top of the report with its first rule open."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            device_scale_factor=1.5,
            reduced_motion="reduce",
        )
        page.goto(path.as_uri())
        page.locator("#rule-1 summary").click()
        page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
        page.mouse.move(0, 0)
        shot: bytes = page.screenshot()
        browser.close()
    return shot


def _review(chromium: str, folder: Path) -> bytes:
    """The page of `stair review` with two verdicts given."""
    names = payments()
    with (folder / "payments.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        rows.writerows(zip(*(values.tolist() for values in names.values()), strict=True))
    command = [
        sys.executable, "-m", "stair.cli", "review", "payments.csv", "--label", "flagged",
        "--min-score", "0.9", "--max-rule-length", "3", "--no-browser",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return _two_verdicts(chromium, server.stdout.readline().strip())
        finally:
            server.terminate()


def _two_verdicts(chromium: str, address: str) -> bytes:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(
            viewport={"width": 1400, "height": 860}, device_scale_factor=1.5,
            reduced_motion="reduce",
        )  # fmt: skip
        page.set_default_timeout(120_000)
        page.goto(address)
        page.locator("#rows table").wait_for()
        for n, key in enumerate("12", start=1):
            page.keyboard.press(key)
            page.locator(f'body[data-confirmed="{n}"]').wait_for()
        page.locator("#rows table").wait_for()
        page.evaluate("document.activeElement.blur(), document.getElementById('toast').remove()")
        shot: bytes = page.screenshot()
        browser.close()
    return shot


if __name__ == "__main__":
    main()
