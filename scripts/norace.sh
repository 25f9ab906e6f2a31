#!/usr/bin/env bash
# Runs the tests of files that are built without the race detector only (//go:build !race) by a command such as go test.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(grep -rl --include='*_test.go' '^//go:build !race' ./*/ | sort)
[ "${#files[@]}" -gt 0 ] || { echo "no test file is built without the race detector" >&2; exit 1; }
names=$(grep -ho '^func Test[A-Za-z0-9_]*' "${files[@]}" | sed 's/^func //' | paste -sd '|')
mapfile -t packages < <(dirname "${files[@]}" | sort -u)
"$@" -run "^($names)\$" "${packages[@]}"
