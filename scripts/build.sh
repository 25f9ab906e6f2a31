#!/usr/bin/env bash
# Builds programs into bin/: VERSION=v0.2.0 scripts/build.sh ./cmd/... On a terminal it shows how far it is.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
export GOGC=${GOGC:-400} # a compiler lives for seconds: collecting garbage less often saves a sixth of its time
build() {
	"$go" build "$@" -trimpath -ldflags "-s -w -X $("$go" list -m)/internal/config.version=$VERSION" -o bin/ "${programs[@]}"
}
programs=("$@")
mkdir -p bin
if ! [ -t 2 ]; then
	echo "building ${programs[*]}" >&2
	build
	exit
fi
# -v prints each package that is compiled, beside what fails.
all=$("$go" list -deps "${programs[@]}" | wc -l)
build -v 2>&1 | awk -v all="$all" '
	/^[a-z][^ :]*$/ { printf "\rbuilding: %d of at most %d packages", ++n, all; fflush(); next }
	{ print }
	END { if (n) print "" }' >&2
