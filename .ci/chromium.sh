# Sourced by .ci/run: Chromium for the tests of pages, from the system's packages, and a missing one
# is a failure from here on. Its shell without a window needs half the time; where it has no package
# the browser does.
if ! command -v chromium-headless-shell >/dev/null; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  install() {
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq \
      --no-install-recommends "$@" fonts-liberation >/dev/null
  }
  "${as_root[@]}" apt-get update -qq
  install chromium-headless-shell || command -v chromium chromium-browser || install chromium
fi
export STAIR_TEST_REQUIRE="${STAIR_TEST_REQUIRE:+$STAIR_TEST_REQUIRE,}chromium"
