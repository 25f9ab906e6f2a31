#!/usr/bin/env bash
# What takes too long for every change: fuzzing, many random histories, faults, attacks, loads, and the tests again and
# again. Every part runs, whatever the others did; the end lists those that failed, and is 1 then. Each fuzz target runs
# FUZZTIME (default 60s). ONLY=faults runs the parts whose names contain that.
set -euo pipefail
cd "$(dirname "$0")/.."

# Some tests look for the recorded conversations nowhere else.
if [ -z "${VARVE_DATA:-}" ] && [ -d ../shared/data ]; then
	VARVE_DATA=$(cd ../shared/data && pwd)
	export VARVE_DATA
fi

failed=()

# part runs the rest of its arguments under a name, and says how long it took.
part() {
	local name=$1 began=$SECONDS
	shift
	[[ $name == *"${ONLY:-}"* ]] || return 0
	echo "== $(date +%T) $name"
	if "$@"; then
		echo "== $(date +%T) $name: passed in $((SECONDS - began)) s"
	else
		echo "== $(date +%T) $name: FAILED after $((SECONDS - began)) s"
		failed+=("$name")
	fi
}

fuzz() {
	local package target
	for package in $(go list ./...); do
		for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
			echo "-- $package $target"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-60s}" -fuzzminimizetime 1x "$package" || return 1
		done
	done
}

# fair measures a varve that was built like any other.
fair() {
	local varve status=0
	varve=$(mktemp)
	go build -o "$varve" ./cmd/varve && FAIR_VARVE=$varve go run ./test/fair || status=1
	rm "$varve"
	return $status
}

# everything has users who fork, archive, upload, recompact and erase while faults come.
everything() {
	local programs
	programs=$(scripts/postgres.sh 18) || return 1
	go run ./test/chaos -seed "${SEED:-7}" -users 6 -for 10m -patience 30s -restore-on "$programs"
}

# program runs one of the programs in test, where it is there.
program() {
	if [ -d "$1" ]; then go run "./$1" "${@:2}"; else echo "skipped: there is no $1"; fi
}

# versions runs the tests of what speaks SQL on another major version of PostgreSQL.
versions() {
	local programs
	programs=$(scripts/postgres.sh "$1") || return 1
	VARVE_PG_BIN=$programs go test -short -count=1 -timeout 60m ./internal/postgres ./internal/api ./internal/jobs
}

# alerts and chart are modules of their own, so that Varve depends on neither Prometheus nor Helm.
alerts() { (cd test/alerts && go test -count=1 -timeout 60m -v .); }
chart() { (cd test/helm && go test -count=1 .); }

# release makes a release of the last commit in a clone, for this platform, and runs its image.
release() {
	local clone status=0
	clone=$(mktemp -d)
	git clone -q . "$clone" && "$clone/scripts/release.sh" v0.0.0-soak "$(go env GOOS)/$(go env GOARCH)" &&
		scripts/image.sh "$clone/dist/varve-v0.0.0-soak-image.tar" || status=1
	rm -rf "$clone"
	return $status
}

part "faults: ten minutes at random, two at a time" go run ./test/chaos -seed "${SEED:-7}" -for 10m
part "faults: ten minutes of everything at once, and a backup restored on PostgreSQL 18" everything
part "faults: each alone, with the time until compaction is back" go run ./test/chaos -seed "${SEED:-7}" -alone
part "faults: a disk that is full" go run ./test/chaos -seed "${SEED:-7}" -small-disk
part "faults: a clock that jumps" go run ./test/chaos -seed "${SEED:-7}" -clocks
part "faults: every defect that they must find" \
	go test ./test/chaos -count=1 -timeout 60m -v -run TestEveryMutant -args -mutants
part "the five systems: every defect of a stage" \
	go test ./internal/compact/conformance -count=1 -timeout 60m -v -run TestEveryMutantIsFound -args -mutants
part "models: 1,000 compactions, 30 % faults, workers killed" \
	go run ./test/models -compactions 1000 -faults 0.3 -seed "${SEED:-7}"
part "models: every defect that they must find" \
	go test ./test/models -count=1 -timeout 60m -v -run TestEveryMutantIsFound -args -mutants
part "alerts: the fault of each, by Prometheus' engine" alerts
part "the Helm chart, by Helm's engine and the types of Kubernetes" chart
part "a release, built twice, and its image on a root that is read-only" release
part "attacks: what one tenant's do to another's appends" fair
part "memory: sessions of 495 MB in processes of 1 GiB" program test/memory -sessions 4 -bytes 495000000 -limit 1GiB
part "memory: a compaction of a session of 500 MB of screenshots" \
	go test ./internal/jobs -count=1 -v -run TestACompactionOfPictures -args -picture-bytes=500000000
part "scale: 200,000 sessions, and a sweep over 10,000,000 of 100,000 tenants" test/scale/run.sh
part "scale: the plans of all lists at a million rows" \
	go test ./internal/postgres -count=1 -timeout 60m -run TestEveryPageOfAListCostsThePage -args -plan-rows=1000000
part "an API with 200 clients is stopped 50 times" \
	go test ./internal/process -count=1 -run TestNoRequestIsCut -args -drain-rounds=50 -drain-clients=200
part "a recompaction of 1,000 sessions, under load, whose workers are killed" \
	go test ./internal/recompact -count=1 -v -run 'TestARecompactionSurvivesItsWorkers|TestACancelledRecompaction|TestAGroupIsRolledBack' -args -sessions=1000 -group-sessions=48
part "50 random histories after which no session is above its trigger" \
	go test ./internal/jobs -count=1 -timeout 60m -run TestNoSessionStaysAboveItsTrigger -args -histories=50
part "an import of 100,000 messages that is stopped again and again" \
	go test ./internal/imports -count=1 -v -run TestAnImportThatIsStopped -args -import-messages=100000
part "1,000 tenants are provisioned, and what operators do reaches two processes" \
	go test ./internal/api -count=1 -v -run 'TestManyTenantsAre|TestWhatAnOperatorDoes' -args -tenants=1000
part "an upload of a gigabyte" \
	go test ./internal/upload -count=1 -v -run TestAnUploadSurvives -args -upload-bytes=1073741824
part "every result of every recorded conversation leaves in every way and comes back" \
	go test ./internal/api -count=1 -timeout 60m -v -run TestEveryResultComesBack -args -whole-corpus
for major in 16 17 18; do
	part "versions: store, API and jobs on PostgreSQL $major" versions "$major"
done
part "50,000 random histories in five formats under random policies" \
	go test ./internal/wire -count=1 -timeout 60m -run 'TestEveryRandomView|TestAFastValidatorAccepts' -args -views=50000
part "formats: 100,000 turns of each provider go back as they were" \
	env VARVE_TURNS=100000 go test ./internal/wire -count=1 -timeout 60m -v -run 'TestWhatClaude|TestWhatAProvider'
part "100,000 random histories put through the engine" \
	go test ./internal/compact -count=1 -timeout 60m -run 'TestLaws$' -args -histories=100000
part "every recorded conversation under every profile" \
	go test ./internal/compact -count=1 -timeout 60m -run 'TestEveryCompacted|TestCorpusViews' -args -views=50000 -points=10
part "formats: 100,000 messages made from the providers' schemas" \
	env VARVE_PEERS=required go test ./test/peers -count=1 -timeout 60m -v -run TestMessagesMadeFromSchemas -args -generated=100000
part "formats: all views of every recorded conversation, for models of eight providers" \
	env VARVE_PEERS=required go test ./test/peers -count=1 -timeout 120m -v -run TestViewsOfRecorded -args -recorded=1
part "formats: 100,000 messages made from the providers' schemas, appended to the API" \
	env VARVE_PEERS=required go test ./internal/api -count=1 -timeout 60m -v -run TestWhatIsAppended -args -generated=100000
part "formats: every recorded conversation appended, compacted and read over HTTP" \
	env VARVE_PEERS=required go test ./internal/api -count=1 -timeout 60m -v -run TestRecordedConversations -args -whole-corpus
part "the tests, with all that -short leaves out" \
	env VARVE_TEST_S3=gateway go test -shuffle=on -count=1 -timeout 120m ./...
part "fuzzing" fuzz
part "the tests, ten times" go test -short -race -shuffle=on -count=10 -timeout 60m ./...

if [ ${#failed[@]} -gt 0 ]; then
	printf 'FAILED: %s\n' "${failed[@]}"
	exit 1
fi
echo "all passed"
