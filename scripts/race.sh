#!/usr/bin/env bash
# Runs the tests that do several things at once by a command such as go test -race: those that start goroutines, or call
# a function of their package's tests that does, of the packages in which requests and jobs share most memory. They run
# nowhere else: with "names" it prints their names, for -skip. A file that begins with "// Not under the race detector"
# takes minutes there, and is left out; one that begins with "// All under the race detector" has tests of a worker, whose
# goroutines are River's. make soak runs all tests under the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."

tests() { git ls-files '*_test.go' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done; }
packages='internal/(admit|api|jobs|llm|postgres)/[^/]*_test\.go'
mapfile -t files < <(tests | grep -E "^$packages" | xargs grep -L '^// Not under the race detector')
# Each line of found is a package and a test.
found=$(awk '
	FNR == 1 { dir = FILENAME; sub(/\/[^\/]*$/, "", dir) }
	FNR == 1 { all[dir] = /^\/\/ All under the race detector/ }
	/^func / { name = $0; sub(/^func (\([^)]*\) )?/, "", name); sub(/[^A-Za-z0-9_].*/, "", name) }
	name != "" { body[dir, name] = body[dir, name] "\n" $0; whole[dir, name] = all[dir] }
	/^}/ || /^func .*}$/ { name = "" }
	END {
		starts = "go func|errgroup[.]|WaitGroup|[.]Go[(]"
		for (key in body) {
			split(key, at, SUBSEP)
			if (at[2] !~ /^Test/ && body[key] ~ starts) helpers[at[1]] = helpers[at[1]] "|" at[2]
		}
		for (key in body) {
			split(key, at, SUBSEP)
			if (at[2] !~ /^Test/) continue
			calls = at[1] in helpers ? "[^A-Za-z0-9_](" substr(helpers[at[1]], 2) ")[(]" : starts
			if (whole[key] || body[key] ~ starts || body[key] ~ calls) print at[1], at[2]
		}
	}' "${files[@]}" | grep -v ' TestMain$' | sort)
[ "$(wc -l <<<"$found")" -gt 60 ] || { echo "few tests start goroutines: is the pattern right?" >&2; exit 1; }
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
