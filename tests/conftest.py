"""Settings of all property tests, and which tests `make quick` leaves out.

A developer's run looks for new examples each time; where CI is set, the same ones are tried on
every run, so that a change is judged by itself.
"""

from __future__ import annotations

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
    "test_cli": ALL,
    "learn/distill/test_distill": (
        "test_refined_rules_are_a_partition_and_no_longer",
        "test_equal_rows_are_one_row_with_a_weight",
        "test_more_time_never_gives_longer_rules",
    ),
    "checkout/test_docs": ("test_every_block_runs_and_prints", "test_the_commands_by_job"),
    "checkout/test_docs_browser": ALL,
    "estimators/test_estimators": ("test_scikit_learn_checks",),
    "estimators/test_estimators_frames": ("test_a_frame_of_any_library",),
    "checkout/test_examples": ("test_a_notebook_prints",),
    "export/test_code": ("test_pandas_labels", "test_polars_labels"),
    "export/test_dbt": ("test_dbt_labels", "test_a_build_passes"),
    "export/test_great_expectations": ("test_unexpected_are",),
    "export/test_sigma": ("test_what_is_selected",),
    "export/test_soda": ("test_what_fails",),
    "export/test_sql": ALL,
    "checkout/test_fuzz": (
        "test_what_was_found_once_holds",
        "test_a_stopped_run",
        "test_nothing_is_found",
    ),
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
    "review/test_store": ("TestLog", "test_killed_in_the_middle", "test_two_programs_at_once"),
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent

    def file_of(item: pytest.Item) -> str:
        return item.path.relative_to(here).with_suffix("").as_posix()

    items.sort(key=lambda item: file_of(item) in LAST or "howto-" in item.nodeid)
    for item in items:
        file = file_of(item)
        within = item.nodeid.partition("::")[2]
        if within.startswith(LONG.get(file, ())):
            item.add_marker("long")
