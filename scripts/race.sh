#!/usr/bin/env bash
# Runs the tests that do several things at once by a command such as go test -race: those that start goroutines
# themselves, of the packages in which requests and jobs share most memory. They run nowhere else: with "names" it prints
# their names, for -skip. A file that begins with "// Not under the race detector" takes minutes there, and is left out.
# make soak runs all tests under the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."

tests() { git ls-files '*_test.go' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }
packages='internal/(admit|api|jobs|llm|postgres)/[^/]*_test\.go'
mapfile -t files < <(tests | grep -E "^$packages" | xargs grep -L '^// Not under the race detector')
# Each line of found is a package and a test.
found=$(awk '
	FNR == 1 { dir = FILENAME; sub(/\/[^\/]*$/, "", dir) }
	/^func / { name = $0; sub(/^func (\([^)]*\) )?/, "", name); sub(/[^A-Za-z0-9_].*/, "", name) }
	name ~ /^Test/ && /go func|errgroup[.]|WaitGroup|[.]Go[(]/ { print dir, name }
	/^}/ || /^func .*}$/ { name = "" }
' "${files[@]}" | grep -v ' TestMain$' | sort -u)
[ "$(wc -l <<<"$found")" -gt 30 ] || { echo "few tests start goroutines: is the pattern right?" >&2; exit 1; }
names=$(cut -d' ' -f2 <<<"$found" | sort)
twice=$(tests | xargs grep -ho '^func Test[A-Za-z0-9_]*' | sed 's/^func //' | sort | uniq -d |
	comm -12 - <(echo "$names"))
[ -z "$twice" ] || { echo "other packages have tests of the same name, which -skip would leave out: $twice" >&2; exit 1; }
names="^($(paste -sd '|' <<<"$names"))\$"
if [ "$1" = names ]; then
	echo "$names"
	exit
fi
mapfile -t dirs < <(cut -d' ' -f1 <<<"$found" | sort -u | sed 's|^|./|')
"$@" -run "$names" "${dirs[@]}"
