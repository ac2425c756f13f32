"""Settings of all property tests, and which tests `make quick` leaves out.

A developer's run looks for new examples each time; where CI is set, the same ones are tried on
every run, so that a change is judged by itself.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# What takes more than about a second of a processor: all of a file, or some of its tests. Browsers,
# clusters, databases, commands in processes of their own, and long properties.
ALL = ("",)
LONG = {
    "test_cli": ALL,
    "test_distill": (
        "test_refined_rules_are_a_partition_and_no_longer",
        "test_equal_rows_are_one_row_with_a_weight",
        "test_more_time_never_gives_longer_rules",
    ),
    "test_docs": ("test_every_block_runs_and_prints", "test_the_commands_by_job"),
    "test_docs_browser": ALL,
    "test_estimators": ("test_scikit_learn_checks",),
    "test_estimators_frames": ("test_a_frame_of_any_library",),
    "test_examples": ("test_a_notebook_prints",),
    "test_export_code": ("test_pandas_labels", "test_polars_labels"),
    "test_export_dbt": ("test_dbt_labels", "test_a_build_passes"),
    "test_export_great_expectations": ("test_unexpected_are",),
    "test_export_sigma": ("test_what_is_selected",),
    "test_export_soda": ("test_what_fails",),
    "test_export_sql": ALL,
    "test_fuzz": ("test_what_was_found_once_holds", "test_a_stopped_run", "test_nothing_is_found"),
    "test_gate": ALL,
    "test_local": ALL,
    "test_paper": ALL,
    "test_piped": ALL,
    "test_report": ("test_every_count_is_that", "test_a_thousand_rules"),
    "test_report_browser": ALL,
    "test_reproduce": ALL,
    "test_review_browser": ALL,
    "test_review_damage": ALL,
    "test_review_page": ALL,
    "test_review_sequences": ALL,
    "test_review_store": ("TestLog", "test_killed_in_the_middle", "test_two_programs_at_once"),
    "test_scale_dask": ALL,
    "test_scale_distilled": ALL,
    "test_scale_failures": ALL,
    "test_scale_kinds": ALL,
    "test_scale_spark": ALL,
    "test_scale_truth": ALL,
    "test_scale_work": ALL,
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out by `make quick`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        within = item.nodeid.partition("::")[2]
        if within.startswith(LONG.get(item.path.stem, ())):
            item.add_marker("long")
