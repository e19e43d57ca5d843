# The version that checks this repository; a newer one may find more.
GOLANGCI_VERSION := 2.15.0
GOLANGCI := $(shell go env GOPATH)/bin/golangci-lint

# Every folder with a go.mod is a module of its own.
MODULES := $(sort $(patsubst %/,%,$(dir $(wildcard go.mod */go.mod cmd/*/go.mod))))
UNIT_MODULES := $(filter-out systemtest,$(MODULES))

FUZZTIME ?= 20s
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

.PHONY: test
test: unit race systemtest ## Run all tests: unit, race detector, system tests on a fake and on real Kafka.

.PHONY: unit
unit: ## Run the unit tests of all modules, without brokers.
	@for m in $(UNIT_MODULES); do echo "unit tests: $$m"; (cd $$m && go test -timeout 5m ./...); done

.PHONY: race
race: ## Run the unit tests of the core module under the race detector.
	go test -race -short -timeout 10m ./...

.PHONY: systemtest
systemtest: ## Run the system tests, all but the comparison under the race detector; real Kafka needs Java and Maven.
	cd systemtest && go test -race -p 1 -timeout 20m $$(go list ./... | grep -v /differential)
	cd systemtest && go test -timeout 20m ./differential

.PHONY: lint
lint: $(GOLANGCI) ## Run all linters over all modules.
	@for m in $(MODULES); do echo "lint: $$m"; (cd $$m && $(GOLANGCI) run ./...); done

# A binary of another version is replaced.
ifeq ($(findstring version $(GOLANGCI_VERSION) ,$(shell $(GOLANGCI) version 2>/dev/null)),)
.PHONY: $(GOLANGCI)
endif
$(GOLANGCI):
	go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_VERSION)

.PHONY: demo
demo: ## Show the main job: counts clicks on an embedded broker, crashes, and checks every count.
	@cd examples && go run ./clickcount $(ARGS)

.PHONY: bench
bench: ## Compare with raw loops on real Kafka; prints a table with ratios.
	@cd benchmarks && go run . $(ARGS)

.PHONY: bench-heap
bench-heap: ## Watch the heap over eight minutes of load.
	@cd benchmarks && go run . -heap $(ARGS)

.PHONY: bench-flat
bench-flat: ## Play an hour of event time through windows in a minute; watch heap and live rows.
	@cd benchmarks && go run . -flat $(ARGS)

# A soak of three real Kafka nodes: kills, pauses, full disks and broken
# connections for MINUTES, after a schedule that SEED makes. The last line is
# the verdict. FAULTS chooses kinds of faults by commas, DIR keeps the logs.
SEED ?= 1
MINUTES ?= 10
GUARANTEE ?= exactly-once
PROCESSES ?= 3
RATE ?= 300
KEYS ?= 120
GAP ?= 2500ms
FAULTS ?=
DIR ?=

.PHONY: soak
soak: ## Soak the engine on three Kafka nodes under faults: SEED=7 MINUTES=10 GUARANTEE=exactly-once|at-least-once|none.
	@(cd systemtest && go build -o ../bin/soak ./soak/run) && bin/soak -seed '$(SEED)' -minutes '$(MINUTES)' -guarantee '$(GUARANTEE)' \
		-processes '$(PROCESSES)' -rate '$(RATE)' -keys '$(KEYS)' -gap '$(GAP)' -faults '$(FAULTS)' -dir '$(DIR)'

# Random cases through Kafka Streams, Reka and a model, beyond the 25 a topology
# that the system tests run: RECORDS a case, from SEED on, of the topologies
# that contain ONLY.
CASES ?= 500
RECORDS ?= 24
ONLY ?=

.PHONY: differential
differential: ## Compare with Kafka Streams at length: CASES=500 RECORDS=24 SEED=1 ONLY='window=session'; needs Java and Maven.
	cd systemtest && go test -timeout 6h ./differential \
		-differential.cases '$(CASES)' -differential.records '$(RECORDS)' -differential.seed '$(SEED)' -differential.only '$(ONLY)'

.PHONY: fuzz
fuzz: ## Fuzz every decoder for FUZZTIME (20s) each.
	@grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' $$dir/*_test.go | while read -r f; do \
			echo "fuzz: $$dir $$f"; (cd $$dir && go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) .); \
		done; \
	done

.PHONY: tidy
tidy: ## Tidy the go.mod of all modules.
	@for m in $(MODULES); do (cd $$m && go mod tidy); done
