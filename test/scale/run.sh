#!/usr/bin/env bash
# What lists, dry runs and pruning cost a tenant with 200,000 sessions of 20 messages, a tenth of them with policies of
# their own, beside 1,000 other tenants: pages of the database and milliseconds, for the first page of each list and one
# near its end. It takes minutes, and 5 GB of disk meanwhile. Other load makes the times longer, never the pages more.
set -euo pipefail
cd "$(dirname "$0")/../.."

go test ./internal/postgres -count=1 -v -timeout 60m \
	-run 'TestEveryPageOfAListCostsThePage|TestEveryStatementOfAnAdministrator' \
	-args -plan-rows="${ROWS:-200000}" -plan-messages="${MESSAGES:-20}" |
	grep -E ' pages +[0-9.]+ ms$|^(---|ok|FAIL|panic)| read | sorted|differ' | sed 's/^ *[a-z_]*.go:[0-9]*: //'
