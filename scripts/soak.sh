#!/usr/bin/env bash
# What takes too long for every change: fuzzing, many random histories, and the tests again and again.
# Each fuzz target runs FUZZTIME (default 60s).
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-60s}
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target for $fuzztime"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 1x "$package"
	done
done

echo "== 50,000 random histories in five formats under random policies, and every recorded conversation under every profile"
go test ./internal/wire -count=1 -timeout 60m -run 'TestEveryRandomView|TestAWalk' -args -views=50000
go test ./internal/compact -count=1 -timeout 60m -run 'TestEveryCompacted|TestCorpusViews' -args -views=50000 -points=10

echo "== a recompaction of 1,000 sessions, under load, whose workers are killed"
go test ./internal/jobs -count=1 -v -run 'TestARecompactionSurvivesItsWorkers|TestACancelledRecompaction' -args -sessions=1000

echo "== an import of 100,000 messages that is stopped again and again"
go test ./internal/api -count=1 -v -run TestAnImportThatIsStopped -args -import-messages=100000
go test ./cmd/varve -count=1 -v -run TestAnUploadSurvives -args -upload-bytes=1073741824

echo "== every result of every recorded conversation leaves in every way and comes back"
go test ./internal/api -count=1 -timeout 60m -v -run TestEveryResultComesBack -args -whole-corpus

echo "== a compaction of a session of 500 MB of screenshots, and the memory that it takes"
go test ./internal/jobs -count=1 -v -run TestACompactionOfPictures -args -picture-bytes=500000000

echo "== the plans of all lists at a million rows"
go test ./internal/postgres -count=1 -timeout 60m -run TestEveryPageOfAListCostsThePage -args -plan-rows=1000000

echo "== what one tenant's attacks do to another's appends"
fair=$(mktemp)
go build -o "$fair" ./cmd/varve
FAIR_VARVE=$fair go run ./test/fair
rm "$fair"

echo "== an API with 200 clients is stopped 50 times"
go test ./internal/process -count=1 -run TestNoRequestIsCut -args -drain-rounds=50 -drain-clients=200
echo "== faults: ten minutes at random and each alone, and every defect that they must find"
go run ./test/chaos -seed "${SEED:-7}" -for 6m -alone
go test ./test/chaos -count=1 -timeout 60m -v -run TestEveryMutant -args -mutants

echo "== the tests, ten times"
go test -race -shuffle=on -count=10 -timeout 60m ./...
