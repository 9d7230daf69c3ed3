# Every target has a line of explanation after two hashes; `make help` prints them.

# Further arguments of `leeway up`, e.g. make demo ARGS="--media holiday.mp4"
ARGS ?=
# Executions of one fuzz target; the decoders that strangers reach first get six times as many.
FUZZEXECS ?= 200000
# How long a soak takes; 3 is the shortest.
MINUTES ?= 30
# How many hours of a live stream `make live-hours` plays; 2 is the shortest.
HOURS ?= 12

# Of binary and script; a test compares the two.
VERSION := $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' internal/app/app.go)

# What both images are packed with.
packed = -binary build/image/leeway -version $(VERSION) -commit "$$(git rev-parse HEAD 2>/dev/null)" $(if $(PUSH),-push)

npm_installed := web/node_modules/.package-lock.json

# Builds, tests and vet with the same flags compile each package once, whatever flags the machine has beside.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

.DEFAULT_GOAL := help
netlab := netlab-nat netlab-swarm netlab-transport
internal_targets := test-still test-timed go-race go-race-build go-race-others go-race-viewer go-race-app go-race-app-too go-long go-long-viewer go-long-others go-tools web-types web-unit web-pack $(netlab)
.PHONY: $(internal_targets) help dashboards dashboards-preview demo test test-alerts test-go test-web test-interop test-netlab e2e e2e-players firstday conformance race fuzz bench bench-transfer bench-idle bench-join bench-swarm bench-netlab bench-tracker bench-cluster bench-turn bench-nat bench-transport bench-peers bench-probe bench-load soak live-hours lint format build image load-image image-check release image-digests kube-test film clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## sets up, prepares the film once, starts everything, prints the page's address
	@build/leeway up $(ARGS)

test: web-types test-still test-timed ## every test, real browsers included

# These compare nothing with a clock of the machine: continuous integration runs them beside its soak, and web-types with lint. Two at a
# time where Vitest is done: what is first takes longest, and go-tools is behind a lint that compiles the same.
test-still: web-unit go-long web-pack test-interop test-alerts go-tools

# These need the machine: sockets, browsers and networks in real time.
test-timed: go-race e2e test-netlab

# Parts of their own, since `make --keep-going` says then what each of them has found.
test-go: go-race go-long go-tools ## Go tests with the race detector (as root also those in network namespaces)

# The tests of internal/app wait in turn, for longer than all others take: two halves of them run beside the rest. Those that look for
# another program's streams are in one half. Decision 107.
go-race: go-race-build
	@[ "$$(id -u)" != 0 ] || scripts/need ip iptables
	@$(MAKE) --no-print-directory --keep-going --jobs=4 go-race-viewer go-race-others go-race-app go-race-app-too

go-race-others:
	scripts/gotest "$$(go list ./... | grep -vE '/internal/(app|archtest|viewer)$$')" -race -vet=off -p $$(nproc) # make lint has vet

# It computes in virtual time, longer than any other, and gives way to what waits for a clock. After others it would end alone.
go-race-viewer:
	nice scripts/gotest ./internal/viewer -race -vet=off -timeout 20m

go-race-app: half = ^(Test|Fuzz)[A-O]
go-race-app-too: half = ^(Test|Fuzz)[^A-O]|^[^TF]
go-race-app go-race-app-too:
	scripts/gotest ./internal/app -race -vet=off -run '$(half)'

go-race-build: # what its packages have in common
	@scripts/need go gcc
	go build -race ./internal/...

# What is left out with the race detector: long plays in one goroutine, rules of the sources, and what a link takes of the memory. Most tests
# of internal/viewer run with it, and are not played twice.
go-long: go-long-viewer go-long-others
go-long-viewer:
	@scripts/need go
	scripts/gotest ./internal/viewer -vet=off -run "$$(scripts/left-out internal/viewer)"
go-long-others:
	@scripts/need go
	scripts/gotest './internal/ledbat ./internal/archtest' -vet=off
	scripts/gotest ./internal/rtclink -vet=off -run "$$(scripts/left-out internal/rtclink)"

go-tools: # they read files above their modules, which the cache does not look at
	@scripts/need go
	go -C tools test -count=1 ./...
	go -C tools/grafana test -count=1 ./...

test-web: web-types web-unit web-pack ## tests of the browser library, types

web-types web-unit web-pack: $(npm_installed)

web-types:
	cd web && npm run --silent typecheck

web-unit:
	cd web && npm run --silent test

web-pack:
	cd web && npm run --silent pack-check

test-interop: ## the vectors, read by a peer in Python that shares no code with the others, and a media server for load tests
	@scripts/need python3 go
	cd test/interop && PYTHONDONTWRITEBYTECODE=1 $$(./setup) -m unittest discover -s tests -t .

e2e: build film ## end-to-end tests in real Chromium and Firefox (needs root, for a network namespace)
	@scripts/need chromium firefox ip unshare openssl python3
	web/apps/e2e/run

e2e-players: build film ## startup and choice of renditions of every player, with Leeway and without (root; a quarter of an hour; LEEWAY_E2E_BROWSER=firefox for those of Firefox)
	@scripts/need $(or $(LEEWAY_E2E_BROWSER),chromium) ip unshare
	@build/leeway film --cmaf >/dev/null
	LEEWAY_E2E_PLAYERS=all web/apps/e2e/run src/startup.test.ts src/bitrate.test.ts src/headless.test.ts

firstday: ## walks what the documents show an operator on the first day: their commands, their files, nginx and a film of one's own
	@scripts/need nginx nginx-rtmp ffmpeg openssl curl
	LEEWAY_FIRSTDAY=yes go test -count=1 -parallel 8 ./test/firstday ./deploy/host

conformance: build film ## every player in every case, in Chromium and Firefox: build/conformance.md (root; hours; LEEWAY_CONFORMANCE='hls.js 1.7 .* Firefox' picks cells)
	@scripts/need chromium firefox ffmpeg npm ip unshare openssl python3
	LEEWAY_CONFORMANCE="$(or $(LEEWAY_CONFORMANCE),all)" web/apps/e2e/run src/conformance.test.ts

test-netlab: netlab-nat ## four viewers behind emulated access lines; background beside TCP on one; pairs behind NATs (needs root)
	@$(MAKE) --no-print-directory --output-sync --jobs=2 -o build -o film netlab-swarm netlab-transport # both wait more than they work

# NAT asks for no time: continuous integration has it beside what computes.
$(netlab): netlab-%: build film
	@if [ "$$(id -u)" = 0 ]; then scripts/need ip iptables chromium && scripts/again build/leeway-lab bench $* --case smoke --runs 1 --check; \
	else echo "netlab: $* skipped: network namespaces need root (sudo make test-netlab)"; [ "$${CI:-}" != true ]; fi

test-alerts: ## each alert in a case where it fires, and in one where it does not, by Prometheus' own promtool
	@if command -v promtool >/dev/null || [ "$${CI:-}" = true ]; then scripts/need promtool && \
	promtool check rules alerts/leeway.yml && promtool test rules alerts/tests.yml; \
	else echo "alerts: skipped: promtool is missing (apt-get install prometheus)"; fi

dashboards: ## writes dashboards/*.json anew from tools/dashboards
	@scripts/need go
	go -C tools run ./dashboards ../dashboards

dashboards-preview: build film ## plays a swarm under a real Prometheus, asks every panel's query, draws what comes back, with pictures for docs/ (root; 6 minutes)
	@scripts/need ip iptables chromium prometheus
	@scripts/dashboards-preview docs/dashboards

race: ## Go tests with the race detector, five times over
	@scripts/need go gcc
	go test -race -count=5 ./internal/...

fuzz: ## each fuzz target for FUZZEXECS (200,000) executions
	@scripts/need go
	@scripts/fuzz $(FUZZEXECS)

bench: ## Go benchmarks
	@scripts/need go
	go test -run '^$$' -bench . -benchmem ./internal/...

bench-transfer: build ## goodput and CPU time of a link beside bare pion and TCP, every path
	build/leeway-lab bench transfer --check

bench-swarm: build film ## thirty viewers behind access lines, with and without Leeway (root; 10 minutes a run)
	@scripts/need ip iptables chromium
	build/leeway-lab bench swarm --check

bench-transport: build ## what background costs others on the line: TCP, foreground, each other (root; every case: hours)
	@scripts/need ip iptables
	build/leeway-lab bench transport --check

soak: build film ## viewers come and go for MINUTES (30): what servers and a viewer that stays keep of them (root)
	@scripts/need ip iptables
	LEEWAY_SOAK_MINUTES=$(MINUTES) build/leeway-lab bench swarm --case soak --runs 1 --check

live-hours: $(npm_installed) ## HOURS (12) of a live stream in virtual time: what tracker, seed, viewers and pages keep of them
	@scripts/need go node
	LEEWAY_LIVE_HOURS=$(HOURS) go test -count=1 -timeout 2h -v -run TestALongLiveStreamFillsNoMemory ./internal/viewer
	cd web && LEEWAY_LIVE_HOURS=$(HOURS) npx vitest run packages/core/src/simulation/longlive.test.ts

bench-netlab: ## accuracy of the emulated networks, the highest rate that holds (root; 3 minutes)
	@scripts/need go ip iptables
	go test -run '^TestBench' -v -count=1 -timeout 20m ./internal/lab/netlab -netlab.bench

bench-join: build film ## from hello to the first verified piece, leg by leg, headless and in Chromium (root)
	@scripts/need ip iptables chromium
	build/leeway-lab bench join --check

bench-tracker: build ## responses a second of one core, beside bittorrent-tracker (npm fetches it once)
	@scripts/need node npm
	build/leeway-lab bench tracker --check

bench-cluster: build ## three trackers and three NATS servers: one is killed, or drained; what viewers notice
	build/leeway-lab bench cluster --check

bench-turn: build ## what a relay costs beside coturn
	@scripts/need turnserver
	build/leeway-lab bench turn --check

bench-nat: build film ## pairs of viewers behind every combination of NATs: which pairs meet, and how (root; 15 minutes)
	@scripts/need ip iptables chromium
	build/leeway-lab bench nat --runs 1 --check

bench-peers: build ## links between peers beside Heikkinen et al.: to establish them, and files over channels and connections (root)
	@scripts/need ip iptables
	build/leeway-lab bench peers --check

bench-probe: build ## how true the network check is, on lines that are known, beside Klang's thesis; beside iperf3 where it is (root; 7 minutes a run)
	@scripts/need ip iptables
	build/leeway-lab bench probe --check

bench-load: build ## how many sessions an arm of a load test holds, and the experiments of Jattack (7 minutes a run)
	build/leeway-lab bench load --case arm,J1,J2 --check

bench-idle: ## memory, goroutines and traffic of links that do nothing, up to 1000
	@scripts/need go
	go run ./cmd/leeway-lab bench idle --check

lint: $(npm_installed) ## formatting, vet, staticcheck, Biome, types
	@scripts/need go
	@scripts/lint

format: $(npm_installed) ## formats Go and TypeScript in place
	gofmt -w cmd internal test tools
	cd web && npm run --silent format

build: $(npm_installed) ## browser bundle, build/leeway, and build/leeway-lab, which measures it
	@scripts/need go
	cd web && npm run --silent build
	node scripts/bundle.mjs
	go build -trimpath -o build/ ./cmd/leeway ./cmd/leeway-lab

image: film ## container images: build/leeway-image.tar, and with the film build/leeway-film-image.tar (PUSH=yes sends them where IMAGE says)
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w' -o build/image/leeway ./cmd/leeway
	@go -C tools build -o ../build/image/pack ./image
	@build/image/pack $(packed) -out build/leeway-image.tar -tag $(or $(IMAGE),leewayvideo/leeway):$(VERSION)
	@build/image/pack $(packed) -out build/leeway-film-image.tar -tag $(or $(IMAGE),leewayvideo/leeway)-film:$(VERSION) -film "$$(build/leeway film)"

load-image: ## container image of leeway-lab, for load tests from pods: build/leeway-lab-image.tar (PUSH=yes sends it where IMAGE says)
	@scripts/need go
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w' -o build/image/leeway-lab ./cmd/leeway-lab
	@go -C tools build -o ../build/image/pack ./image
	@build/image/pack $(subst image/leeway ,image/leeway-lab ,$(packed)) -out build/leeway-lab-image.tar -tag $(or $(IMAGE),leewayvideo/leeway)-lab:$(VERSION)

image-check: $(npm_installed) ## builds the images of this commit in two folders and compares their digests
	scripts/reproducible

release: $(npm_installed) ## what a release is, of this commit, in build/release/VERSION, and tries it: archives, SBOMs, images, npm packages, chart, sums; nothing is uploaded
	scripts/release

image-digests: ## NATS, Prometheus and Grafana by the digests that their registries have now: lines for settings.env of the production overlay
	@scripts/need go
	@go -C tools build -o ../build/image/pack ./image
	@for c in nats prometheus grafana; do \
	  ref=$$(sed -n 's/^  - {name: \([^,]*\), newTag: \([^}]*\)}.*/\1:\2/p' deploy/k8s/components/$$c/kustomization.yaml) && \
	  digest=$$(build/image/pack -resolve "$$ref") && echo "$$(echo $$c | tr a-z A-Z)_IMAGE=$$digest" || exit 1; done

kube-test: image load-image ## two nodes, the dev overlay, viewers behind NATs while pods are killed and a node is drained (root; 20 minutes the first time, then 4; KUBECONFIG=F: your cluster)
	test/kube/test || [ $$? = 75 ] # 75: VOID, the machine was too slow to tell

film: build
	@echo "film: $$(build/leeway film)"

clean: ## removes what build made; the film stays in the cache
	rm -rf build web/packages/*/dist web/apps/*/dist
	find internal/webdist/files internal/lab/bench/demopage/files -mindepth 1 ! -name .gitignore -delete

# Install scripts stay off: nothing here needs one.
$(npm_installed): web/package-lock.json
	@scripts/need node npm
	@echo "npm: installing what the lockfile names"
	cd web && npm ci --ignore-scripts --silent
	@touch $@
