#!/usr/bin/env bash
# Counts what the size of the project is judged by, as a table: scripts/house.sh [CHECKOUT].
# Lines of programs that only tests, measurements and samples use are counted as tests.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

tests='(_test\.go$)|^(test|bench|samples)/|/(pgtest|llmtest|compacttest|apitest|s3test|fake|fakeprovider|conformance)/'
go_files() { git ls-files '*.go'; }
lines() { xargs -r cat | wc -l; }
row() { printf '| %s | %s |\n' "$1" "$2"; }

exported='^func \(\w+ \*?Store\) [A-Z]'
context_keys=$(git grep -hE 'context\.WithValue\(' -- 'internal/*.go' ':!*_test.go' | wc -l)

echo '| what | count |'
echo '| --- | --- |'
row "product lines (Go)" "$(go_files | grep -vE "$tests" | lines)"
row "test lines (Go)" "$(go_files | grep -E "$tests" | lines)"
row "folders below internal" "$(git ls-files 'internal/*.go' | cut -d/ -f2 | sort -u | wc -l)"
row "packages below internal" "$(git ls-files 'internal/*.go' | xargs -n1 dirname | sort -u | wc -l)"
row "internal/postgres, lines" "$(git ls-files 'internal/postgres/*.go' | grep -vE "$tests" | lines)"
row "internal/postgres, files" "$(git ls-files 'internal/postgres/*.go' | grep -vE "$tests" | wc -l)"
row "internal/postgres, exported methods of Store" \
	"$(git ls-files 'internal/postgres/*.go' | grep -vE "$tests" | xargs grep -hE "$exported" | wc -l)"
row "own tables" "$(grep -c '^CREATE TABLE public\.' migrations/schema.sql) with River's"
row "row policies" "$(grep -c '^CREATE POLICY' migrations/schema.sql)"
row "triggers" "$(grep -cE '^CREATE (CONSTRAINT )?TRIGGER' migrations/schema.sql)"
row "migrations (pairs)" "$(git ls-files 'migrations/*.up.sql' | wc -l)"
row "operations" "$(cat $(git ls-files '*openapi*.yaml') | grep -cE '^      operationId:')"
row "settings (VARVE_…)" "$(git grep -ohE '\bVARVE_[A-Z_]+' -- docs/configuration.md | sort -u | wc -l)"
row "values set in contexts" "$context_keys"
# A border of a table is no word.
row "words of documentation" "$(cat README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/adr/*.md |
	tr -s '[:space:]' '\n' | grep -c '[[:alnum:]]')"
row "decisions" "$(git ls-files 'docs/adr/0*.md' | wc -l)"
if [ -x bin/varve ]; then row "binary, MB" "$(($(stat -c %s bin/varve) / 1000000))"; fi
