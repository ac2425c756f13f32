"""What commands tell programs, read beside the schema that describes it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from stair.export.answers import schema


def described(said: bytes) -> dict[str, Any]:
    """An answer that the schema of its own format describes."""
    found = json.loads(said)
    name = found["format"].removeprefix("stair-")
    jsonschema.validate(found, json.loads(schema(name)))
    return dict(found)
