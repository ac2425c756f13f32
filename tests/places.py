"""Where things are in the checkout, and beside it."""

from __future__ import annotations

from pathlib import Path

import stair

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SOURCE = Path(stair.__file__).parent  # which may be installed elsewhere
PICTURE = ROOT / "docs" / "architecture.md"
SHARED = ROOT.parent / "shared" / "datasets"
