#!/usr/bin/env bash
# Lists functions that no program calls. Those in scripts/deadcode.txt are allowed, each with its reason; a function that
# is listed there and is called, or is gone, is a mistake, too.
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=$(grep -vE '^(#|$)' scripts/deadcode.txt || true)
if grep -vE '^[^ ]+  +[^ ]' <<<"$allowed" | grep .; then
	echo "scripts/deadcode.txt: these lines have no reason" >&2
	exit 1
fi
found=$(GOGC=400 go tool deadcode -f '{{range .Funcs}}{{$.Path}}.{{.Name}}
{{end}}' ./cmd/... ./bench | grep -vE "/([a-z]+test|test/harness)\." || true) # kits of tests
names() { grep . | sed 's|^github.com/varve-dev/varve/||; s/ .*//' | sort || true; }
dead=$(comm -23 <(names <<<"$found") <(names <<<"$allowed"))
alive=$(comm -13 <(names <<<"$found") <(names <<<"$allowed"))
[ -z "$dead" ] || printf 'no program calls these functions: remove them\n%s\n' "$dead" >&2
[ -z "$alive" ] || printf 'remove these from scripts/deadcode.txt: they are called, or gone\n%s\n' "$alive" >&2
[ -z "$dead$alive" ]
