"""Settings of all property tests, and which tests `make quick` leaves out.

A developer's run looks for new examples each time; where CI is set, the same ones are tried on
every run, so that a change is judged by itself.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from browser import browser
from by_threads import by_threads
from databases import database, postgres
from spark_session import spark
from strategies import examples

# Fixtures, for the tests of pages, of kernels, of databases and of Spark.
__all__ = ["browser", "by_threads", "database", "postgres", "spark"]

# A shell that starts something in the background has it ignore Ctrl-C, and so would every command
# that the tests start and end that way: they waited for their time limits, and failed.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start many Pythons, of this project and of other tools: what they import is compiled for the
# first one and kept, also where nobody wants files beside the sources.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile(
    "ci", parent=settings.get_profile("here"), derandomize=True, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# What takes more than about a second of a processor: all of a file, or some of its tests. Browsers,
# clusters, databases, commands in processes of their own, and long properties.
ALL = ("",)
LONG = {
    "rules/test_alone": ALL,
    "learn/test_trees": ("test_total_lengths_of_the_paper",),
    "scale/test_matching": ALL,
    "report/test_report_kinds": ALL,
    "rules/test_rule_set_exceptions": ("test_explain_says",),
    "test_summary": ("test_the_demo_names",),
    "data/test_reading_hostile": ("test_an_excel_file",),
    "test_errors": (
        "test_no_message",
        "test_every_option",
    ),
    "verdict/test_detectors": ("test_the_same_seed",),
    "export/test_onnx": ("test_the_reference",),
    "learn/test_identifiers": (
        "test_random_tokens",
        "test_rare_values",
    ),
    "learn/distill/test_further": ALL,
    "export/test_json_reader_damage": ALL,
    "learn/test_kinds": ALL,
    "operation/test_check": ALL,
    "operation/test_page": ALL,
    "export/test_answers": ALL,
    "test_cli": ALL,
    "learn/distill/test_distill": (
        "test_refined_rules_are_a_partition_and_no_longer",
        "test_equal_rows_are_one_row_with_a_weight",
        "test_more_time_never_gives_longer_rules",
    ),
    "checkout/test_docs": ALL,
    "checkout/test_fuzz_files": ALL,
    "checkout/test_release": ALL,
    "checkout/test_walks": ALL,
    "apply/test_apply": ALL,
    "data/test_csv": ("test_a_large_file", "test_gzip"),
    "data/test_many": ("test_a_pattern_gives_the_rules",),
    "data/test_weights": ALL,
    "data/test_zones": ("test_no_method_gives", "test_the_demo_has_no"),
    "evidence/test_suspects": ("test_a_series_of_labels",),
    "learn/test_exceptions": ALL,
    "learn/test_methods": (
        "test_the_order_of_",
        "test_partitions_do_not",
    ),
    "learn/test_validation": ("test_rules_for_labels_without_any_meaning",),
    "learn/test_wishes": (
        "test_a_budget",
        "test_wishes_that_cannot",
        "test_no_wish_gives",
    ),
    "operation/test_compare": ALL,
    "operation/test_update": ALL,
    "review/test_kept": ALL,
    "review/test_kept_browser": ALL,
    "review/test_session": ("test_stop_ends_every_method",),
    "rules/test_figures": ("test_infinite_values_are_learned",),
    "test_plot": ("test_every_method_has_a_frontier",),
    "review/test_rows": ("test_columns_of_many", "test_a_page_is_a_piece"),
    "learn/distill/test_distill_limits": ("test_the_floor_is_strict",),
    "rules/test_reasons": ("test_an_exception_is_the_reason",),
    "scale/test_scale": ALL,
    "checkout/test_docs_browser": ALL,
    "estimators/test_estimators": ("test_scikit_learn_checks",),
    "estimators/test_estimators_frames": ("test_a_frame_of_any_library",),
    "checkout/test_examples": ALL,
    "export/test_code": ("test_pandas_labels", "test_polars_labels"),
    "export/test_dbt": ("test_dbt_labels", "test_a_build_passes"),
    "export/test_great_expectations": ("test_unexpected_are",),
    "export/test_sigma": ("test_what_is_selected",),
    "export/test_soda": ("test_what_fails",),
    "export/test_sql": ALL,
    "checkout/test_fuzz": ALL,
    "test_gate": ALL,
    "learn/test_partition": ALL,
    "test_paper": ALL,
    "test_gate_piped": ALL,
    "report/test_report": ("test_every_count_is_that", "test_a_thousand_rules"),
    "report/test_report_browser": ALL,
    "checkout/test_reproduce": ALL,
    "review/test_review_browser": ALL,
    "review/test_store_damage": ALL,
    "review/test_app": ALL,
    "review/test_session_sequences": ALL,
    "review/test_store": (
        "TestLog",
        "test_killed_in_the_middle",
        "test_two_programs_at_once",
        "test_threads_share_one_store",
    ),
    "gpu/test_kernels": ALL,
    "scale/test_cuda": ALL,
    "scale/test_dask": ALL,
    "scale/test_distilled": ALL,
    "scale/test_scale_failures": ALL,
    "scale/test_scale_kinds": ALL,
    "scale/test_spark": ALL,
    "scale/test_scale_truth": ALL,
    "scale/test_work": ALL,
}


# What needs environments of its own, which are made while other tests run.
LAST = ("export/test_dbt", "export/test_great_expectations", "export/test_sigma",
        "export/test_soda")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out by `make quick`")


def _name(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).with_suffix("").as_posix()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which everything is left out is not even read: what it imports takes its time."""
    if config.option.markexpr == "not long" and LONG.get(_name(collection_path)) == ALL:
        return True
    return None


def pytest_collection_finish() -> None:
    """What all tests need stays to the end, and nobody looks again and again whether it does: that
    took a tenth of the time of tests."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _name(item.path) in LAST or "howto-" in item.nodeid)
    for item in items:
        within = item.nodeid.partition("::")[2]
        if within.startswith(LONG.get(_name(item.path), ())):
            item.add_marker("long")
