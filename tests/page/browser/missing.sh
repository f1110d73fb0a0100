#!/bin/sh
# Prints which tools `make test-page` needs and this machine lacks. Exit status 0: none. 2: some.
# With --install, what Debian and Ubuntu have is installed first, where that is permitted.
find_missing() {
  missing=""
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing="$missing chromium"
  command -v npm >/dev/null || missing="$missing npm"
}
find_missing
if [ -n "$missing" ] && [ "${1:-}" = --install ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # shellcheck disable=SC2086 # several names
  { apt-get update && apt-get install --yes --no-install-recommends $missing; } >/dev/null 2>&1
  find_missing
fi
if [ -n "$missing" ]; then
  echo "Testing the page in a browser needs$missing. On Debian and Ubuntu, as root: apt-get update && apt-get install$missing"
  exit 2
fi
