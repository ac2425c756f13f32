"""Settings of all property tests.

A developer's run looks for new examples each time; where CI is set, the same ones are tried on
every run, so that a change is judged by itself.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
