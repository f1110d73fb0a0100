#!/bin/sh
# Prints which tools `make test-image` needs and this machine lacks. Exit status 0: none. 2: some.
programs="buildah runc"
[ -n "${BASE:-}" ] || programs="$programs debootstrap" # for a base image in place of one that cannot be pulled
missing=""
for each in $programs; do
  command -v "$each" >/dev/null || missing="$missing $each"
done
if [ -n "$missing" ]; then
  echo "Testing the image needs$missing. On Debian and Ubuntu, as root: apt-get update && apt-get install$missing"
  status=2
fi
if [ "$(id -u)" != 0 ]; then
  echo "Testing the image needs root, because it runs a container with runc."
  status=2
fi
exit "${status:-0}"
