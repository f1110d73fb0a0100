#!/bin/sh
# Builds the image from the Dockerfile with the first of buildah, podman and docker that works here.
#
#   BUILDER   which of them to use, instead of the first
#   IMAGE     the image's name, `ruleop` by default
#   BASE      an image to build on, instead of the one in the Dockerfile: one with `python` and `pip`, 3.11 or later
#
# All arguments are passed on to the builder's `build`.
set -eu
cd "$(dirname "$0")/.."

# An installed program may still not work: docker without its engine, podman or buildah without user namespaces.
works() {
  command -v "$1" >/dev/null && "$1" info >/dev/null 2>&1
}

if [ -n "${BUILDER:-}" ]; then
  works "$BUILDER" || { echo "$BUILDER does not work here; see: $BUILDER info" >&2; exit 2; }
else
  for each in buildah podman docker; do
    if works "$each"; then BUILDER=$each; break; fi
  done
fi
if [ -z "${BUILDER:-}" ]; then
  echo "Building the image needs buildah, podman or docker, and none of them works here." >&2
  for each in buildah podman docker; do
    if command -v "$each" >/dev/null; then
      echo "  $each is installed, but \`$each info\` fails." >&2
    fi
  done
  echo "On Debian and Ubuntu, as root: apt-get update && apt-get install buildah" >&2
  exit 2
fi

image=${IMAGE:-ruleop}
echo "building $image with $BUILDER"
"$BUILDER" build ${BASE:+--build-arg "PYTHON=$BASE"} --tag "$image" "$@" .
echo "built $image with $BUILDER:"
"$BUILDER" images "$image"
