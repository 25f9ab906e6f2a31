#!/usr/bin/env bash
# The targets at size, as a table; it ends with 1 if one is missed. Two databases are loaded and removed again: one of a
# tenant with ROWS sessions of MESSAGES messages and lists as long, beside 1,000 other tenants (5 GB), and one with
# SESSIONS sessions of TENANTS tenants, of which 100 are due (8 GB). A time is the longest of all pages of a list, at its
# beginning, in its middle and near its end, under several ANALYZEs, with a warm cache: that of the statements in the
# database. It takes some ten minutes on two quiet processors; other load makes the times longer.
#
# PostgreSQL is the one that the tests start, or the server that TEST_DATABASE_URL names.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT

failed=0
go test ./internal/postgres -count=1 -v -timeout 60m \
	-run 'TestEveryPageOfAListCostsThePage|TestEveryStatementOfAnAdministrator|TestACrossingAppendIsHot' \
	-args -scale -plan-rows="${ROWS:-200000}" -plan-messages="${MESSAGES:-20}" >"$out" 2>&1 || failed=1
go test ./internal/jobs -count=1 -v -timeout 60m -run 'TestASweepCostsWhatIsDue' \
	-args -scale -sweep-sessions="${SESSIONS:-10000000}" -sweep-tenants="${TENANTS:-100000}" >>"$out" 2>&1 || failed=1

awk '
	/ ms$/ && (/ transaction / || !/: [0-9.]+ ms$/) { # not the lines of what missed
		sub(/^ *[a-z_]*\.go:[0-9]*: /, "")
		took = $(NF - 1)
		name = $0
		sub(/ +([0-9]+ pages +)?[0-9.]+ ms$/, "", name)
		sub(/: ([0-9]+ statements,)?$/, "", name)
		sub(/:$/, "", name)
		sub(/, statistics [0-9]+, (first|middle|last) page$/, "", name)
		if (!(name in longest)) names[++n] = name
		if (took > longest[name]) longest[name] = took
	}
	END {
		printf "%-75s %10s %10s\n", "", "target ms", "longest"
		for (i = 1; i <= n; i++) {
			name = names[i]
			target = 20
			if (name ~ /^(a dry run|prune|a sweep|a change of)/) target = 1000
			if (name ~ /^the longest transaction/) target = 500
			missed = longest[name] > target ? "  MISSED" : ""
			printf "%-75s %10d %10.1f%s\n", name, target, longest[name], missed
		}
	}' "$out"
grep -oE 'HOT updates .*' "$out"
grep -E '^ *--- |^(ok|FAIL|panic)' "$out"
[ "$failed" = 0 ] || grep -vE ' ms$' "$out" | grep -E '_test.go' | head -40
exit "$failed"
