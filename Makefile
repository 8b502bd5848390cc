# `make` alone lists the targets. None is needed to use the library, which is plain Go.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory

GO        ?= go
OUT       := out
FUZZTIME  ?= 30s
MINUTES   ?= 30
BENCH     ?= .
BENCHTIME ?= 1s
COUNT     ?= 6
BASE      ?=

# Pinned in tools/go.mod and built by Go itself: nothing to install.
tool := $(GO) tool -modfile=tools/go.mod
step := @printf '==> %s\n'

.PHONY: help
help: ## list the targets
	@printf 'usage: make TARGET [NAME=value …]\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Before a commit.

.PHONY: check tracked pinned format vet lint layers generated tidy docs
check: tracked pinned format vet lint layers generated tidy docs ## everything but the tests: format, linters, layers, generated files, modules, docs

tracked:
	$(step) 'tracked files: none over 1 MB, no programs'
	@scripts/tracked

pinned:
	$(step) 'tools of tools/go.mod (the first build takes minutes)'
	@$(tool) golangci-lint version --short

format:
	$(step) 'format: gofumpt and goimports (make fmt fixes it)'
	@$(tool) golangci-lint fmt --diff

vet:
	$(step) 'go vet of every module, and a 32-bit build'
	@scripts/modules | while read -r dir; do $(GO) -C "$$dir" vet ./...; done
	@GOARCH=386 $(GO) build ./...

lint:
	$(step) 'golangci-lint'
	@$(tool) golangci-lint run ./...

layers:
	$(step) 'layers: who may import what'
	@$(GO) test -run '^(TestLayers|TestModules|TestProviderNames)$$' .

generated:
	$(step) 'generated files are up to date'
	@scripts/generated $(MAKE) -s generate

tidy:
	$(step) 'modules are tidy (go mod tidy fixes them)'
	@scripts/modules | while read -r dir; do $(GO) -C "$$dir" mod tidy -diff; done

docs:
	$(step) 'docs: links, package comments, README'
	@$(GO) test -run '^(TestLinks|TestPackageDocs|TestReadme)$$' .

.PHONY: fmt
fmt: ## format all Go files
	@$(tool) golangci-lint fmt

.PHONY: generate
generate: ## regenerate the generated files (go generate)
	@$(GO) generate ./...

# Tests.

# RACE=1 runs everything with the race detector, which needs a C compiler, such as the one in scripts/apt.txt.
race := $(if $(RACE),-race)
ifdef RACE
export CGO_ENABLED := 1
endif

# go test prints no output of packages that pass: skipped tests are counted from this file.
export IBID_LEFT_OUT ?= $(CURDIR)/$(OUT)/left-out.txt

# -count=1: the test cache does not notice changes of programs outside the module.
.PHONY: test
test: | $(OUT) ## go test ./... and what needs other programs; IBID_INSTALL=1 installs them, RACE=1 adds the race detector
	@rm -f "$(IBID_LEFT_OUT)"
	$(step) 'programs that tests use'
	@scripts/tools
	$(step) "PyPI's packages that tests use"
	@scripts/python
	$(step) 'go test $(race) ./...'
	@$(GO) test $(race) -count=1 -timeout 30m ./...
	@$(MAKE) interop
	@$(MAKE) examples
	@$(MAKE) world
	@scripts/left-out "$(IBID_LEFT_OUT)"

LISTEN ?= 127.0.0.1:0
.PHONY: page
page: build ## a page with answers that real providers and programs gave, until Ctrl-C; needs IBID_SHARED; LISTEN=127.0.0.1:8090
	@$(GO) -C tools run ./realpage "$(CURDIR)/$(OUT)/ibid" "$${IBID_SHARED:-$(CURDIR)/../shared}" $(LISTEN)

.PHONY: world
world: ## scores on answers, agents, claims, marks and pages as they are in the world; needs IBID_SHARED with world/
	$(step) 'world'
	@scripts/world

# A separate module. Tests skip themselves if their SDKs for JavaScript are unavailable.
.PHONY: interop
interop: ## the providers' official SDKs, for Go and JavaScript, against ibid serve
	$(step) "interop: the providers' SDKs"
	@if command -v npm >/dev/null; then $(MAKE) -s $(packages); fi
	@scripts/python
	@$(GO) -C interop test $(race) -count=1 -timeout 30m ./...

# EXAMPLES limits the requests per operation, once with valid and once with invalid ones.
EXAMPLES ?= 220
.PHONY: openapi
openapi: ## the API conforms to its description: about 10,000 requests of schemathesis, EXAMPLES=220 of each operation at most
	@scripts/python
	@IBID_EXAMPLES=$(EXAMPLES) $(GO) -C interop test -count=1 -timeout 0 -run '^TestOpenAPI$$' -v .

# They use the packages of interop/web. Two of their tests skip themselves if these are unavailable.
.PHONY: examples
examples: ## the examples, run for real
	$(step) 'examples'
	@if command -v npm >/dev/null; then $(MAKE) -s $(packages); fi
	@scripts/python
	@$(GO) -C examples test $(race) -count=1 -timeout 30m ./...

packages := interop/mcp/node_modules/.package-lock.json interop/npm/node_modules/.package-lock.json interop/web/node_modules/.package-lock.json

interop/%/node_modules/.package-lock.json: interop/%/package-lock.json
	@cd interop/$* && npm ci --ignore-scripts --silent || printf 'ibid: npm ci in interop/%s did not work\n' $* >&2

.PHONY: test-go
test-go: | $(OUT) ## go test ./...: no network, nothing to install; says which tests it leaves out
	@rm -f "$(IBID_LEFT_OUT)"
	@$(GO) test $(race) -count=1 ./...
	@scripts/left-out "$(IBID_LEFT_OUT)"

.PHONY: cluster
cluster: ## three gateways, three servers of NATS and PostgreSQL on this machine, until Ctrl-C
	@$(GO) -C interop run ./cluster

.PHONY: soak
soak: ## MINUTES=30 of load with random faults: nothing lost or altered; memory, descriptors and goroutines flat
	@$(GO) -C bench/gateway run . soak -minutes $(MINUTES) $(if $(SEED),-seed $(SEED))

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME=30s, those of SECURITY.md for FUZZTIME_STRANGERS (FUZZ=regexp chooses)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz '$(FUZZ)'

.PHONY: bench
bench: | $(OUT) ## all benchmarks with ratios: COUNT=6, BENCH=regexp, BASE=file of an earlier run to compare with
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) ./... | tee $(OUT)/bench.txt
	$(step) 'medians; side by side where benchmarks differ in /by=…'
	@$(tool) benchstat $(if $(BASE),$(BASE) $(OUT)/bench.txt,-col /by $(OUT)/bench.txt)

.PHONY: eval
eval: ## scores support checking against human judgements (IBID_SHARED/eval; PART=dev), with its cost
	@$(GO) test -count=1 -run '^TestEvalDoubtful' -v ./verify | sed -n 's/^ *[a-z_]*_test.go:[0-9]*: //p; /^\(ok\|FAIL\|--- SKIP\)/p'
	@$(GO) test -count=1 -run '^TestEval' -v ./support $(if $(PART),-args -part $(PART)) | sed -n '/: \(FALSE\|MISS\)\|: possible conflict/d; s/^ *[a-z_]*_test.go:[0-9]*: //p; /^\(ok\|FAIL\|--- SKIP\)/p'
	@$(GO) test -run '^$$' -bench '^Benchmark(Index|Claim|Score|Answer)$$' -benchmem ./support

.PHONY: size
size: ## size of the code: bytes, files, long lines, exported names
	@$(GO) -C tools run ./size ..

.PHONY: walk
walk: ## counts the functions and files behind a Gemini stream to markdown, and ibid verify
	@scripts/walk

.PHONY: cover
cover: | $(OUT) ## test coverage by function, and as out/cover.html
	@$(GO) test -coverpkg=./... -coverprofile=$(OUT)/cover.txt ./...
	@$(GO) tool cover -html=$(OUT)/cover.txt -o $(OUT)/cover.html
	@$(GO) tool cover -func=$(OUT)/cover.txt

# The program.

.PHONY: build
build: | $(OUT) ## out/ibid
	@$(GO) build -trimpath -ldflags '-s -w' -o $(OUT)/ibid ./cmd/ibid

.PHONY: release
release: | $(OUT) ## out/release: static binaries for Linux, macOS and Windows, packed, with SBOMs and hashes
	@scripts/release $(OUT)/release

.PHONY: reproducible
reproducible: ## builds the release twice and compares the bytes (TARGETS='linux/amd64 …')
	@scripts/reproducible

# Needs vuln.go.dev, so no check depends on it.
.PHONY: vuln
vuln: ## known vulnerabilities in what ibid calls (govulncheck; needs vuln.go.dev)
	@check=$$($(GO) tool -n -modfile=tools/supply/go.mod govulncheck); \
	scripts/modules | grep -v tools | while read -r dir; do (cd "$$dir" && "$$check" ./...); done

.PHONY: install
install: ## ibid into Go's bin directory
	@$(GO) install -trimpath ./cmd/ibid

.PHONY: clean
clean: ## remove out/
	@rm -rf $(OUT)

$(OUT):
	@mkdir -p $@
