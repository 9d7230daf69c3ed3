package app

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/viewer"
)

// replicas are two trackers and a seed on one bus, each a run of its command, and an origin.
type replicas struct {
	t        *testing.T
	film     string // URL of the manifest
	trackers [2]struct{ public, admin string }
	seed     string // its admin port
	seedDir  string
	tokens   map[string]string // files, by admin port
	stops    []func() error
}

func startReplicas(t *testing.T, film string) *replicas {
	t.Helper()
	origin := httptest.NewServer(http.FileServer(http.Dir(film)))
	t.Cleanup(origin.Close)
	f := &replicas{t: t, film: origin.URL + "/master.m3u8", seed: freeAddress(t), seedDir: filepath.Join(t.TempDir(), "seed"), tokens: map[string]string{}}
	dir, bus := t.TempDir(), freeAddress(t)
	config := func(name string, sections map[string]any) string {
		return writeSite(t, filepath.Join(dir, name), origin.URL, "", 1, sections)
	}
	for i := range f.trackers {
		at := &f.trackers[i]
		at.public, at.admin = freeAddress(t), freeAddress(t)
		f.tokens[at.admin] = filepath.Join(dir, "secret", tokenFile)
		nats := map[string]string{"listen": bus}
		if i > 0 {
			nats = map[string]string{"url": "nats://" + bus}
		}
		file := config(string(rune('a'+i))+".yaml", map[string]any{
			"tracker": map[string]any{"listen": at.public, "admin": at.admin, "data_dir": filepath.Join(dir, "secret"), "drain_spread": "100ms"}, "nats": nats,
		})
		f.stops = append(f.stops, startService(t, at.admin, "tracker", "--config", file))
	}
	file := config("seed.yaml", map[string]any{
		"seed": map[string]any{"listen": "127.0.0.1:0", "admin": f.seed, "data_dir": f.seedDir}, "nats": map[string]string{"url": "nats://" + bus},
	})
	f.stops = append(f.stops, startService(t, f.seed, "seed", "--config", file))
	f.tokens[f.seed] = filepath.Join(f.seedDir, tokenFile)
	t.Cleanup(f.stop)
	return f
}

// stop ends the processes, the one with the bus last.
func (f *replicas) stop() {
	for i := len(f.stops) - 1; i >= 0; i-- {
		if err := f.stops[i](); err != nil {
			f.t.Error(err)
		}
	}
	f.stops = nil
}

func (f *replicas) viewer(tracker int) *headless.Viewer {
	f.t.Helper()
	v, err := headless.Start(viewer.Config{
		URL: f.film, Tracker: "ws://" + f.trackers[tracker].public + "/", Origin: strings.TrimSuffix(f.film, "/master.m3u8"), JoinAfter: -1, Speed: 2, Buffer: 3 * time.Second,
	}, headless.Network{Listen: "127.0.0.1:0"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(v.Close)
	return v
}

// does runs a command against an admin port.
func (f *replicas) does(admin string, args ...string) {
	f.t.Helper()
	if _, errs, code := leeway(f.t, nil, append(args, "--admin", admin, "--admin-token-file", f.tokens[admin])...); code != 0 {
		f.t.Fatalf("%v: %d %s", args, code, errs)
	}
}

// until waits for what others bring about.
func (f *replicas) until(what string, ok func() bool) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			f.t.Fatal("never: " + what)
		}
	}
}

// key is the seed's, by its folder.
func (f *replicas) key() string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.seedDir, "seed-key.pem"))
	if err != nil {
		f.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		f.t.Fatal(err)
	}
	return certificate.KeyIDOf(&key.(*ecdsa.PrivateKey).PublicKey).String()
}

// fromOthers is what a viewer had from the seed and other viewers.
func fromOthers(v *headless.Viewer) int64 {
	b := v.Summary().Stats.Bytes
	return b["seed"] + b["peer"]
}

// TestWhatIsWithdrawnIsWithdrawnEverywhere takes away a signing key, then the site's peer delivery, then the film, from
// viewers of two trackers that go on watching: each command goes to another process of the cluster.
func TestWhatIsWithdrawnIsWithdrawnEverywhere(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f := startReplicas(t, noisyFilm(t, 240, 20_000))
	one := f.viewer(0)
	f.until("the first viewer has something from the seed", func() bool { return fromOthers(one) > 0 })
	two := f.viewer(1)
	both := []*headless.Viewer{one, two}
	f.until("the second has, too", func() bool { return fromOthers(two) > 0 && one.Summary().Links > 1 })

	stolen := f.key()
	f.does(f.trackers[1].admin, "purge", "--key", stolen)
	f.until("the seed has another key", func() bool { return f.key() != stolen })
	for _, v := range both {
		before := fromOthers(v)
		f.until("what the new key signs counts", func() bool { return fromOthers(v) > before+100_000 })
	}

	f.does(f.seed, "switch", "demo", "off")
	f.until("no viewer has a link", func() bool { return one.Summary().Links+two.Summary().Links == 0 })
	late := f.viewer(0)
	for _, at := range f.trackers {
		f.until("both trackers say so", func() bool {
			_, text := fetch(t, "GET", "http://"+at.admin+"/metrics")
			return strings.Contains(text, `leeway_tracker_delivery_off{reason="operator",site="demo"} 1`)
		})
	}
	f.until("all play from the origin", func() bool {
		s := late.Summary()
		return s.Off == "policy" && s.PositionMs > 2000 && one.Summary().Off == "policy" && two.Summary().Off == "policy"
	})
	if got := fromOthers(late); got != 0 {
		t.Errorf("a newcomer had %d bytes of others", got)
	}
	f.does(f.trackers[0].admin, "switch", "demo", "on")
	f.until("the newcomer is one of the swarm", func() bool { return fromOthers(late) > 0 })

	f.does(f.trackers[1].admin, "purge", "demo", "/a/", "--for", "1h")
	for _, v := range append(both, late) {
		f.until("nothing is held", func() bool { return v.Summary().StoreBytes == 0 })
	}
	have, at := fromOthers(late), late.Summary().PositionMs
	f.until("the film plays on", func() bool { return late.Summary().PositionMs > at+3000 })
	last := f.viewer(1)
	f.until("a new viewer plays", func() bool { return last.Summary().PositionMs > 3000 })
	if got := fromOthers(last); got != 0 || fromOthers(late) != have || last.Summary().Stats.Reasons["no-cert"] == 0 {
		t.Errorf("of what is down a newcomer had %d bytes, another %d more; %v", got, fromOthers(late)-have, last.Summary().Stats.Reasons)
	}
	for _, v := range append(both, late, last) {
		if s := v.Summary(); s.Errors > 0 || s.StoreBytes > 0 || s.Banned > 0 {
			t.Errorf("%d errors (%s), %d bytes held, %d banned", s.Errors, s.LastError, s.StoreBytes, s.Banned)
		}
		v.Close()
	}
	f.stop()
}
