# Sourced by .ci/run: dbt, Great Expectations, Soda and pySigma, each in an environment of its own.
# They are made beside the other tests, of which theirs are the last; a missing one is a failure.
python3 tests/environments.py dbt great_expectations soda sigma &
tools=$!
export STAIR_TEST_REQUIRE="${STAIR_TEST_REQUIRE:+$STAIR_TEST_REQUIRE,}dbt,great_expectations,soda,sigma"
