// Package archtest holds the repository's import rules as tests, each with its reason.
//
// The layers, top to bottom; imports point down only:
//
//	cmd → app → doctor → headless → extensions → services and adapters → viewer, transfer → wire → domain
//
// The lab (internal/lab) stands beside app: it may import every room of the product but app, and none of them imports it.
//
// Test files are exempt from the layer rules (a test may compose what it needs) but not from the one-owner rule of
// the wire-facing dependencies in packages below the services.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/leeway-video/leeway"

// layers lists the rooms of each layer, lowest first.
var layers = [][]string{
	{"site", "segment", "certificate", "swarm", "mesh", "cluster", "schedule", "ledbat", "access", "experiment", "metric", "netstat"},
	{"wire/peer", "wire/signal", "wire/bus", "wire/webtorrent", "wire/jsonscan", "wire/sibling", "wire/proxy", "wire/sdp", "wire/playlist", "wire/mpd", "wire/quality", "wire/cmcd", "wire/cmaf"},
	{"transfer", "background", "viewer", "parts", "packaging", "stream", "sleep", "buildinfo", "procstat", "webrtcend"},
	{
		"tracker", "seed", "relay", "probe", "cmcd", "fleet",
		"wsconn", "natsbus", "rtclink", "turnd", "originhttp", "siblinghttp", "promreg", "jwtauth", "webdist", "ingest", "tcpinfo", "qualitylink",
	},
	{"webtorrent", "judge"},
	{"headless", "netcheck", "cmdline"},
	{"doctor"},
	{"lab/netlab", "lab/loadgen", "lab/baseline", "lab/turnclient", "lab/armwire", "lab/selfwatch", "lab/proc", "lab/torrentclient", "lab/replay", "lab/natsnode"},
	{"lab/arm", "lab/load"},
	{"lab/bench"},
	{"app", "lab"},
}

// beside are rooms of no layer: tests of the repository itself, and what tests share.
var beside = []string{"archtest", "testkit"}

// services own their logic and meet each other only in app.
var services = []string{"tracker", "seed", "relay", "probe", "cmcd"}

// optional rooms are what not every operator uses of a service: they fill a port of it, and it is whole without them.
var optional = []string{"fleet"}

// adapters wrap one dependency each and meet each other only in app.
var adapters = []string{"wsconn", "natsbus", "rtclink", "turnd", "originhttp", "siblinghttp", "promreg", "jwtauth", "webdist", "tcpinfo", "qualitylink"}

// extensions are rooms beside a service that not every operator uses. The service states a port for each and never imports it.
var extensions = map[string]string{"webtorrent": "tracker", "judge": "tracker"}

// owners says which room alone may import a dependency, and why.
var owners = []struct {
	dependency string
	rooms      []string
	reason     string
}{
	{"github.com/pion/", []string{"webrtcend", "rtclink", "qualitylink", "turnd", "lab/baseline", "lab/turnclient", "lab/arm"}, "pion's types inside a service would make its transport impossible to exchange or to simulate; the lab measures links beside bare pion, relays by its client, and any peer by its arms"},
	{"github.com/gorilla/websocket", []string{"wsconn"}, "socket handling (limits, deadlines, slow readers) has one place to be right in"},
	{"github.com/nats-io/", []string{"natsbus", "lab/natsnode"}, "services know a Bus port; NATS is how it is carried; the lab runs clusters of its servers"},
	{"github.com/pires/go-proxyproto", []string{"wire/proxy", "testkit"}, "what a balancer says is bounded and read to the byte in one place, for whatever a connection carries then"},
	{"github.com/dunglas/httpsfv", []string{"wire/cmcd"}, "what pages write into reports is bounded where it is read"},
	{"github.com/golang-jwt/", []string{"jwtauth"}, "which algorithms and headers are taken has one place to be right in"},
	{"github.com/prometheus/", []string{"promreg"}, "services define metrics as data, so that the page in spec/ can be compared with them"},
	{"github.com/vishvananda/", []string{"lab/netlab"}, "namespaces and devices have one place to be made and removed in"},
	{"github.com/alecthomas/kong", []string{"cmdline", "app"}, "both programs parse alike; flags are known to composition roots only"},
	{"github.com/goccy/go-yaml", []string{"app", "lab"}, "packages own their Config; the file format is known to the composition roots only"},
	{"github.com/mogiioin/hls-m3u8", []string{"wire/playlist"}, "its faults are mended in one place, for seeds and headless viewers"},
}

// domainBans keeps the domain pure: no sockets, no clocks of its own, no processes.
var domainBans = []struct{ path, reason string }{
	{"net", "use net/netip: the domain names addresses and opens none"},
	{"net/http", "the domain does not speak HTTP; originhttp does"},
	{"os", "the domain reads no files or environment; composition hands values in"},
	{"log/slog", "the domain returns errors and decisions; services log"},
	{"context", "nothing in the domain blocks"},
}

type file struct {
	path    string // relative to the module root
	room    string // below internal/, or as "cmd/leeway"
	test    bool
	imports []string
}

func TestLayers(t *testing.T) {
	rank := map[string]int{}
	for i, layer := range layers {
		for _, room := range layer {
			rank[room] = i
		}
	}
	for _, f := range sources(t) {
		from, known := rank[f.room]
		if f.test || slices.Contains(beside, f.room) || strings.HasPrefix(f.room, "cmd/") {
			continue
		}
		if !known {
			t.Errorf("%s: room %q has no layer; give it one in archtest, or put the file where it belongs", f.path, f.room)
			continue
		}
		for _, imp := range f.imports {
			to := roomOf(strings.TrimPrefix(imp, module+"/internal/"))
			if !strings.HasPrefix(imp, module+"/internal/") || to == f.room {
				continue
			}
			if r, ok := rank[to]; !ok || r > from {
				t.Errorf("%s imports %s: imports point down only (cmd → app → doctor → headless → services, adapters → viewer, transfer → wire → domain; extensions are above services)", f.path, to)
			}
			if ofLab(to) && !ofLab(f.room) || ofLab(f.room) && to == "app" {
				t.Errorf("%s imports %s: the product imports nothing of the lab, and the lab runs the program instead of importing app", f.path, to)
			}
			if slices.Contains(services, f.room) && (slices.Contains(services, to) || slices.Contains(adapters, to) || slices.Contains(optional, to)) {
				t.Errorf("%s imports %s: a service states a port and never imports another service, an adapter or what fills its port; app joins them", f.path, to)
			}
			if slices.Contains(adapters, f.room) && slices.Contains(adapters, to) {
				t.Errorf("%s imports %s: adapters meet only in app", f.path, to)
			}
			if of, extends := extensions[f.room]; extends && to != of && (slices.Contains(services, to) || slices.Contains(adapters, to) || extensions[to] != "") {
				t.Errorf("%s imports %s: an extension knows the service that it extends (%s), and no other and no adapter; app joins them", f.path, to, of)
			}
		}
	}
}

func TestDependenciesHaveOneOwner(t *testing.T) {
	for _, f := range sources(t) {
		for _, imp := range f.imports {
			for _, o := range owners {
				if strings.HasPrefix(imp, o.dependency) && !slices.Contains(o.rooms, f.room) && !f.test {
					t.Errorf("%s imports %s, which belongs to %v: %s", f.path, imp, o.rooms, o.reason)
				}
			}
		}
	}
}

func TestDomainIsPure(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !slices.Contains(layers[0], f.room) && !strings.HasPrefix(f.room, "wire/") {
			continue
		}
		for _, imp := range f.imports {
			for _, ban := range domainBans {
				if imp == ban.path {
					t.Errorf("%s imports %s: %s", f.path, imp, ban.reason)
				}
			}
		}
		body, err := os.ReadFile(filepath.Join(root(t), f.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"time.Now(", "time.Since(", "time.Sleep(", "\tgo func"} {
			if strings.Contains(string(body), call) {
				t.Errorf("%s uses %s: time is an argument here and nothing runs beside the caller", f.path, strings.TrimSpace(call))
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test || f.room == "archtest" {
			continue
		}
		body, err := os.ReadFile(filepath.Join(root(t), f.path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "time.Sleep(") {
			t.Errorf("%s sleeps: wait for the event itself, or use an injected clock", f.path)
		}
	}
}

func TestMainOnlyDecidesTheExitCode(t *testing.T) {
	roots := map[string]string{"cmd/leeway": module + "/internal/app", "cmd/leeway-lab": module + "/internal/lab"}
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.room, "cmd/") || f.test {
			continue
		}
		seen[f.room] = true
		for _, imp := range f.imports {
			if strings.HasPrefix(imp, module) && imp != roots[f.room] {
				t.Errorf("%s imports %s: main calls its composition root and exits; everything else must be callable from a test", f.path, imp)
			}
		}
	}
	if len(seen) != len(roots) {
		t.Errorf("programs are %v; their roots are given for %v", seen, roots)
	}
}

// ofLab says whether a room belongs to the lab.
func ofLab(room string) bool { return room == "lab" || strings.HasPrefix(room, "lab/") }

// roomOf names the room of an import path below internal/: two elements for wire codecs and in the lab, one otherwise.
func roomOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if (parts[0] == "wire" || parts[0] == "lab") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}

// sources parses the imports of every Go file of the module's own packages.
func sources(t *testing.T) []file {
	t.Helper()
	var files []file
	base := root(t)
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(base, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(base, path)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			f := file{path: rel, test: strings.HasSuffix(rel, "_test.go"), room: filepath.ToSlash(filepath.Dir(rel))}
			if below, ok := strings.CutPrefix(rel, "internal/"); ok {
				f.room = roomOf(filepath.ToSlash(filepath.Dir(below)))
			}
			for _, spec := range parsed.Imports {
				imp, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				f.imports = append(f.imports, imp)
			}
			files = append(files, f)
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatal("no Go files found: the rules would hold of nothing")
	}
	return files
}
