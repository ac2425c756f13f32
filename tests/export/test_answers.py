"""What commands tell programs: JSON that a schema describes, exit codes that stay, no questions."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import run
from described import described
from stair.errors import StairError
from stair.export.answers import answer, schema, schemas


@pytest.mark.parametrize("name", schemas())
def test_every_schema_is_one_and_describes_itself(name: str) -> None:
    found = json.loads(schema(name))
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["title"]
    assert found["properties"]["format"] == {"const": f"stair-{name}"}
    if name != "rules":  # which were there before, and allow what is not known to them
        assert set(found["required"]) >= {"format", "version"}
        assert found["additionalProperties"] is False
    done = run("export", *([] if name == "rules" else [name]), "--schema")
    assert (done.returncode, json.loads(done.stdout)) == (0, found)


def test_a_schema_that_is_not_there_is_refused() -> None:
    with pytest.raises(StairError, match=r'no schema "docter"; there are .*Did you mean "doctor"'):
        schema("docter")


@given(st.floats() | st.integers() | st.text() | st.none() | st.booleans())
def test_what_json_cannot_write_is_said_in_words(value: Any) -> None:
    """NaN is missing, infinities are texts, and numpy's values are what they are in Python."""
    read = json.loads(answer("x", {"value": [value, np.array([1.5]), np.datetime64("NaT", "us")]}))
    assert (read["format"], read["version"]) == ("stair-x", 1)
    found, array, time = read["value"]
    assert (array, time) == ([1.5], None)
    if isinstance(value, float) and not math.isfinite(value):
        value = None if math.isnan(value) else str(value)
    assert found == value
    days = json.loads(answer("x", {"a": date(2024, 5, 1), "b": np.datetime64("2024-05-01")}))
    assert days["a"] == days["b"] == "2024-05-01"


def test_doctor_answers() -> None:
    done = run("doctor", "--json", "-")
    assert (done.returncode, done.stderr) == (0, b"")
    found = described(done.stdout)
    assert found["needs"]["numpy"] == np.__version__
    assert set(found["kernels"]) == {"cuts", "passes", "boxes"}
