.DEFAULT_GOAL := help
.PHONY: help demo up test check bench lint vuln fmt schema samples soak build release

GO ?= go
ifdef PG # the major version of PostgreSQL that the tests run on: make test PG=18
export VARVE_PG_BIN := $(or $(shell scripts/postgres.sh $(PG)),$(error there is no PostgreSQL $(PG)))
endif
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: program ## Show the main job on a private database; FILES="a.jsonl b.json" uses your own conversations, CONSOLE=1 stays up
	@bin/varve demo $(if $(CONSOLE),--console) $(FILES)

up: program ## Run everything in one process on a private database in .varve/
	@bin/varve up

# The race detector takes five to twenty times the processor time: it gets the tests that do several things at once. What
# vet finds, lint tells. -short leaves out what takes minutes and what is the same rule in one more case: make soak has
# it. Tests wait more than they compute: four run at once on any machine. Compilers live for seconds: with less garbage
# collection they take a sixth less of the processor. Tests collect as little as the servers do (internal/process).
COMPILE = env GOGC=400 $(GO)
TEST = $(COMPILE) test -exec 'env GOGC=300' -short -parallel 4 -vet=off -shuffle=on -timeout 30m

test: postgres ## Run the tests, and those with goroutines under the race detector, on a private database; PG=18 chooses its version
	$(TEST) -skip "$$(scripts/race.sh names)" ./...
	scripts/race.sh $(TEST) -race

check: lint test ## What CI runs

bench: build ## Measure append, view and compaction beside their floors; ONLY=engine,replay measures some groups
	@$(GO) run ./bench -only "$(ONLY)"

soak: postgres ## Faults, attacks, loads, fuzzing, the tests ten times; takes hours; ONLY=faults runs some parts
	scripts/soak.sh

lint: ## gofmt, vet and staticcheck, unparam, misspell, dead code, go.mod
	@test -z "$$(gofmt -l .)" || { echo "gofmt these:"; gofmt -l .; exit 1; }
	$(COMPILE) run ./scripts/lint ./...
	$(COMPILE) tool unparam ./...
	@$(GO) tool misspell -error -i preceeding,modificato,shoudl $$(git ls-files '*.go' '*.md' '*.sql' '*.sh' '*.yaml')
	scripts/deadcode.sh
	$(GO) mod verify >/dev/null
	$(GO) mod tidy -diff

release: ## Write archives, image, clients, SBOMs and checksums of the last commit into dist/; VERSION=v0.2.0
	scripts/release.sh $(VERSION)

vuln: ## Look for known vulnerabilities in what the programs call; needs the internet
	$(GO) tool govulncheck ./...

fmt: ## Format the code
	gofmt -w .

schema: postgres ## Write migrations/schema.sql and rights.txt from the migrations
	$(GO) test ./internal/postgres -run 'TestSchemaDump|TestTheRights' -update

samples: ## Record the sample conversations anew
	$(GO) test ./samples -run TestRecord -update -v -timeout 30m

build:
	@scripts/postgres.sh
	@VERSION=$(VERSION) scripts/build.sh ./cmd/...

program: # varve has all that demo and up need
	@scripts/postgres.sh
	@VERSION=$(VERSION) scripts/build.sh ./cmd/varve
.PHONY: program

postgres:
	@scripts/postgres.sh
.PHONY: postgres
