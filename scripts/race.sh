#!/usr/bin/env bash
# Runs the tests that do several things at once by a command such as go test -race: those of the files that start
# goroutines. A file that begins with "// Not under the race detector" takes minutes there, and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

starts='\bgo func|errgroup\.|WaitGroup|\.Go\('
mapfile -t files < <(git ls-files '*_test.go' | grep -vE '^(cmd|test|bench|samples)/' | xargs grep -lE "$starts" |
	xargs grep -L '^// Not under the race detector')
[ "${#files[@]}" -gt 30 ] || { echo "only ${#files[@]} test files start goroutines: is the pattern right?" >&2; exit 1; }
names=$(grep -ho '^func Test[A-Za-z0-9_]*' "${files[@]}" | sed 's/^func //' | grep -v '^TestMain$' | paste -sd '|')
mapfile -t packages < <(dirname "${files[@]}" | sort -u | sed 's|^|./|')
"$@" -run "^($names)\$" "${packages[@]}"
