"""The picture of the README: the demo's report, as Chromium shows it.

    python docs/pictures.py

needs Chromium, Playwright and Pillow (`pip install -e '.[test]'` has both).
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from stair import summarize
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
        payments(), labels="flagged", min_score=0.9, max_rule_length=3, name="payments", validate=5
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        summary.to_html(page)
        shot = _shot(chromium, page)
    IMAGES.mkdir(exist_ok=True)
    path = IMAGES / "report.png"
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


if __name__ == "__main__":
    main()
