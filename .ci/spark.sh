# Sourced by .ci/run: Java from the system's packages and PySpark, for the tests of the engine spark
# and of its SQL; a missing one is a failure from here on.
if ! command -v java >/dev/null; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    default-jre-headless >/dev/null
fi
make spark
export STAIR_TEST_REQUIRE="${STAIR_TEST_REQUIRE:+$STAIR_TEST_REQUIRE,}spark"
