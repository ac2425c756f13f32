"""Rules from a file on new rows."""

from stair.apply.batches import Place, Truth, apply_to
from stair.apply.explaining import Explained, as_json, explain_rows, row_numbers
from stair.apply.outcome import Applied, Outcome, apply_rules
from stair.apply.tables import agreement_table, coverage_table, to_json

__all__ = [
    "Applied",
    "Explained",
    "Outcome",
    "Place",
    "Truth",
    "agreement_table",
    "apply_rules",
    "apply_to",
    "as_json",
    "coverage_table",
    "explain_rows",
    "row_numbers",
    "to_json",
]
