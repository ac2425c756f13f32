# Sourced by .ci/run: Chromium for the tests of the report, from the system's packages, and a
# missing one is a failure from here on.
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    chromium fonts-liberation >/dev/null
fi
export STAIR_TEST_REQUIRE="${STAIR_TEST_REQUIRE:+$STAIR_TEST_REQUIRE,}chromium"
