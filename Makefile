# The targets, each with what it does; `make` lists them.
SHELL := /bin/bash
export CGO_ENABLED := 0
BIN := bin

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: go
go:
	@build/scripts/need-go

# All that calls the go command, but for what does after build.
build test race differential test-vm test-vm-all test-packages test-fresh test-containerd test-dropin test-cluster soak lint mutate stress \
reliability attacks reproducible fuzz bench-check dist: | go

.PHONY: build
build: ## build all programs into bin/
	build/scripts/build $(BIN) -trimpath

.PHONY: run
run: build ## run a command in a container, made from nothing but this machine
	@build/scripts/first-run

.PHONY: test
test: ## install what the tests need (saying so) and run them all (TESTS="-short ./engine/plan" for some)
	@build/scripts/install-for tests
	@build/scripts/fetch-criu
	@test/containerd2/build > /dev/null || echo "containerd 2 can't be built here; what needs it is skipped"
	@test/differential/peers
	build/scripts/test $$TESTS

.PHONY: race
race: ## run the tests of all packages that start goroutines under the race detector
	build/scripts/race

.PHONY: differential
differential: ## compare all that can be seen of containers, and all commands, with today's runc and crun, here, and a 24th of it in a guest (two hours)
	@build/scripts/install-for tests
	@test/differential/peers
	test/differential/whole

.PHONY: test-vm
test-vm: ## run what needs systemd or cgroup v2 in a guest with both, as root and as an ordinary user
	test/guests/test --quick --timeout 2400

.PHONY: test-vm-all
test-vm-all: ## the same in every guest: v2 with old and new systemd, hybrid and legacy; and test-packages
	test/guests/test --quick --all
	$(MAKE) test-packages

.PHONY: test-packages
test-packages: ## install the .deb in every guest, use it, and purge it
	test/guests/test -v --all --as root -- './test/packages InGuest$$'

.PHONY: test-fresh
test-fresh: ## follow the README and the tutorial in a fresh Debian 13 that has nothing but its own Go and the repository
	test/guests/fresh

.PHONY: test-containerd
test-containerd: ## run the shim's tests under other releases of containerd, built from their source (VERSIONS="v1.7.35 v2.3.7")
	@build/scripts/install-for tests
	test/containerd2/matrix $(VERSIONS)

.PHONY: test-dropin
test-dropin: ## run Docker, Podman (as root and as an ordinary user) and CRI-O on top of the engine
	@build/scripts/install-for tests
	@test/crio/build > /dev/null || echo "CRI-O can't be built here; what needs it is skipped"
	@test/dropin/fetch-docker > /dev/null || echo "a later Docker can't be fetched here; what needs it is skipped"
	BERTH_DROPIN=1 go test -count=1 -v -timeout 60m ./test/dropin
	BERTH_DROPIN=1 go test -count=1 -v -timeout 60m -run 'Docker|Podman|CRIO' ./test/docs

.PHONY: test-cluster
test-cluster: ## run a Kubernetes cluster of real parts, with two guests as its nodes (an hour, and the first time another to build it; PARTS="Drain|Probes" for some)
	@build/scripts/install-for tests
	test/cluster/run $(if $(PARTS),-test.run 'TestCluster/(Install|$(PARTS))')

.PHONY: soak
soak: ## the long versions: of the shim's tests 200 containers at once, 2,000 rounds, 300 kills, ten minutes of kills and upgrades under keepers; 10,000 rounds of the engine
	@build/scripts/install-for tests
	test/containerd2/build
	BERTH_SOAK=1 go test -count=1 -v -timeout 2h -run 'TestManyAtOnce|TestNoGrowth|TestShimIsKilled|TestKilledLive' ./shim/test/integration
	BERTH_SOAK=1 go test -count=1 -v -timeout 2h -run 'TestOnceWhereverKilled' ./shim/test/server
	cd test/containerd2 && GOWORK=off BERTH_SOAK=1 go test -count=1 -v -timeout 2h -run 'TestKilledShimsOfPods' .
	BERTH_ROUNDS=$${ROUNDS:-10000} go test -count=1 -v -timeout 5h -run '^TestSoak$$' ./test/reliability

.PHONY: demo
demo: ## run docs/one-node.md in a guest: reservations, containers, an OOM kill, an upgrade, all undone
	build/scripts/demo

.PHONY: demo-node
demo-node: ## show berth-node in a guest: a node before, during and after
	build/scripts/demo-node

.PHONY: lint
lint: ## gofmt, vet, staticcheck, govulncheck
	build/scripts/lint

.PHONY: docs
docs: build ## make the generated pages anew
	build/scripts/docs

.PHONY: mutate
mutate: ## damage the code, place by place, and see the tests of the conformance page fail (ROWS="pids resctrl" for some, ROWS=new for those not tried yet)
	@build/scripts/install-for tests
	go run ./test/conformance/mutate $(ROWS)

.PHONY: stress
stress: ## start 500 containers at once, use and remove them, and print the numbers (STRESS=N for others)
	@build/scripts/install-for tests
	BERTH_STRESS=$${STRESS:-500} build/scripts/with-progress stress go test ./test/reliability -run '^TestStress$$' -count=1 -v -timeout 60m

.PHONY: reliability
reliability: ## run the tests of faults, attacks and load, and make docs/reliability.md of what they report (PARTS="attacks shim" for some)
	@build/scripts/install-for tests
	@build/scripts/fetch-criu
	build/scripts/reliability $(PARTS)

.PHONY: attacks
attacks: ## try to get out of containers: every attack on record, and acts of hostile neighbours at steps by chance (SEED=N, BUDGET=16m)
	@build/scripts/install-for tests
	BERTH_BUDGET=$${BUDGET:-16m} BERTH_SEED=$$SEED build/scripts/with-progress attacks go test -p 1 ./test/attacks/... -count=1 -v -timeout 60m
	go test ./shim/test/server -run '^TestHostileClient' -count=1 -v

.PHONY: sbom
sbom: build ## write the software bill of materials of all programs to dist/
	build/scripts/sbom dist

.PHONY: reproducible
reproducible: ## build all programs and packages twice, in different directories, and compare them
	build/scripts/check-reproducible

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (default 10m)
	build/scripts/fuzz $${FUZZTIME:-10m}

.PHONY: bench
bench: build ## measure beside runc, crun and containerd (BENCH_ROUNDS=30, BENCH_ROWS=run,commands,…)
	@build/scripts/install-for bench
	build/scripts/with-progress bench build/scripts/bench

.PHONY: bench-check
bench-check: ## fail where a run takes more system calls, or the pure parts more allocations, than bench/limits.txt allows
	go test -count=1 -v ./test/bench

.PHONY: dist
dist: ## make archives, .deb and .rpm, SBOMs and checksums in dist/, the same for the same commit
	build/scripts/dist

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) dist
