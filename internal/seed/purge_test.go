package seed_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func purge(at time.Time) signal.Revocation {
	return signal.Revocation{Site: "demo", Prefix: "/film/", MinIssuedAt: at.UnixMilli()}
}

// TestPurgeOvertakesAFetch: bytes that left the origin before a purge must not be certified after it, whatever the seed's
// clock says.
func TestPurgeOvertakesAFetch(t *testing.T) {
	for name, skew := range map[string]time.Duration{"clocks agree": 0, "seed ahead": time.Minute, "seed behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.film(1)
			clock := &jump{}
			clock.forward(skew)
			w := newWorld(t, o, clock.config)
			v := w.connect(1, 1)
			const name = "/film/low/0.m4s"
			release := o.hold(path(name))
			v.session.Send(peer.CertificateRequest{Segments: []segment.ID{w.id(name)}})
			until(t, "the fetch", func() bool { return o.count(path(name)) == 1 })
			o.put(path(name), noise(100_000))
			now := time.Now()
			w.revoke(purge(now))
			release()
			wait(t, v.answers, "the answer")
			c, none := v.certificate(name)
			if c == nil {
				t.Fatalf("no certificate after the purge: %+v", none)
			}
			if c.IssuedAt.UnixMilli() < now.UnixMilli() {
				t.Error("viewers will refuse the certificate: it is as old as the purge")
			}
			if data, rejected := v.fetch(c); !bytes.Equal(data, o.files[path(name)]) {
				t.Errorf("what was purged came back certified, rejected %v", rejected)
			}
		})
	}
}

// TestRevokedKeyIsReplaced: viewers take nothing of the old key, and the seed does not wait for a viewer.
func TestRevokedKeyIsReplaced(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	stolen := certificate.KeyID(wait(t, w.keys, "a beat").VerifyKeys[0].KeyID)
	v := w.connect(1, 1)
	const name = "/film/low/0.m4s"
	old, _ := v.certificate(name)
	w.revoke(signal.Revocation{KeyID: stolen[:]})
	if _, rejected := v.fetch(old); len(rejected) != len(old.Digests) {
		t.Errorf("%d of %d pieces were rejected", len(rejected), len(old.Digests))
	}
	c, none := v.certificate(name)
	if c == nil || c.KeyID == stolen || !c.SameContent(old) {
		t.Fatalf("after the key was revoked: %+v", none)
	}
	until(t, "the new key is told", func() bool { return certificate.KeyID(wait(t, w.keys, "a beat").VerifyKeys[0].KeyID) == c.KeyID })
	// Said again, as trackers do, it is no news; and a restart keeps the new key.
	w.revoke(signal.Revocation{KeyID: stolen[:]})
	w.stop()
	again := newWorld(t, o, func(_ *site.Config, s *seed.Config) { s.DataDir = w.dir })
	if id := certificate.KeyID(wait(t, again.keys, "a beat").VerifyKeys[0].KeyID); id != c.KeyID {
		t.Errorf("key %s after the restart, not %s", id, c.KeyID)
	}
}

// TestAStolenKeyThatIsPutBackIsReplaced: a backup of the data folder brings it.
func TestAStolenKeyThatIsPutBackIsReplaced(t *testing.T) {
	o := newOrigin(t)
	w := newWorld(t, o, nil)
	stolen := certificate.KeyID(wait(t, w.keys, "a beat").VerifyKeys[0].KeyID)
	backup, err := os.ReadFile(filepath.Join(w.dir, "seed-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	w.revoke(signal.Revocation{KeyID: stolen[:]})
	w.stop()
	if err := os.WriteFile(filepath.Join(w.dir, "seed-key.pem"), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	again := newWorld(t, o, func(_ *site.Config, s *seed.Config) { s.DataDir = w.dir })
	if id := certificate.KeyID(wait(t, again.keys, "a beat").VerifyKeys[0].KeyID); id == stolen {
		t.Error("the seed signs with a revoked key")
	}
}

// TestARevocationIsKeptOnceTheDiskHasRoom: it came while nothing could be written. Trackers say it again, and it is no news then.
func TestARevocationIsKeptOnceTheDiskHasRoom(t *testing.T) {
	o := newOrigin(t)
	w := newWorld(t, o, nil)
	keyOf := func(w *world) certificate.KeyID {
		return certificate.KeyID(wait(t, w.keys, "a beat").VerifyKeys[0].KeyID)
	}
	stolen, away := keyOf(w), w.dir+".away"
	if err := errors.Join(os.Rename(w.dir, away), os.WriteFile(w.dir, nil, 0o600)); err != nil { // no folder, so nothing can be written
		t.Fatal(err)
	}
	for range 2 {
		w.revoke(signal.Revocation{KeyID: stolen[:]})
	}
	if err := errors.Join(os.Remove(w.dir), os.Rename(away, w.dir)); err != nil {
		t.Fatal(err)
	}
	fresh := stolen
	until(t, "another key is told", func() bool { fresh = keyOf(w); return fresh != stolen })
	until(t, "the revocation is on disk", func() bool {
		text, err := os.ReadFile(filepath.Join(w.dir, "revoked.jsonl"))
		return err == nil && len(text) > 0
	})
	w.stop()
	again := newWorld(t, o, func(_ *site.Config, s *seed.Config) { s.DataDir = w.dir })
	if id := keyOf(again); id != fresh {
		t.Errorf("key %s after the restart, not %s", id, fresh)
	}
}

// TestTombstoneKeepsANameDown, across a restart too, until it ends.
func TestTombstoneKeepsANameDown(t *testing.T) {
	o := newOrigin(t)
	o.film(2)
	clock := &jump{}
	w := newWorld(t, o, clock.config)
	v := w.connect(1, 1)
	const name, other = "/film/low/0.m4s", "/film/high/0.m4s"
	old, _ := v.certificate(name)
	tomb := certificate.Tombstone("demo", "/film/low/", clock.now().Add(time.Hour))
	w.revoke(signal.Revocation{Site: tomb.Site, Prefix: tomb.Prefix, MinIssuedAt: tomb.MinIssuedAt.UnixMilli()})
	down := func(v *viewer, when string) {
		t.Helper()
		if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneWithdrawn {
			t.Errorf("%s: %+v, %+v", when, c, none)
		}
		if _, rejected := v.fetch(old); len(rejected) != len(old.Digests) {
			t.Errorf("%s: %d of %d pieces were rejected", when, len(rejected), len(old.Digests))
		}
		if n := o.count(path(name)); n != 1 {
			t.Errorf("%s: the origin was asked %d times for what may not be shared", when, n)
		}
	}
	down(v, "right away")
	if c, none := v.certificate(other); c == nil {
		t.Errorf("beside the prefix: %+v", none)
	}
	w.stop()
	again := newWorld(t, o, func(s *site.Config, c *seed.Config) {
		clock.config(s, c)
		c.DataDir = w.dir
	})
	v = again.connect(2, 1)
	down(v, "after a restart")
	clock.forward(time.Hour + time.Second)
	v = again.connect(3, 1)
	until(t, "the name is back", func() bool { c, _ := v.certificate(name); return c != nil && c.IssuedAt.After(old.IssuedAt) })
}

// TestACrowdOfNewTrackersLearnsFromSeeds: trackers keep what is revoked in memory alone.
func TestACrowdOfNewTrackersLearnsFromSeeds(t *testing.T) {
	o := newOrigin(t)
	w := newWorld(t, o, nil)
	said := make(chan bus.RevokeMessage, 64)
	w.revoke(purge(time.Now()), signal.Revocation{KeyID: []byte("12345678")})
	w.say(w.seed.Statements("demo", true, cluster.ByOperator, time.Time{})...)
	w.subscribe(bus.SubjectRevokeKept, func(b []byte) {
		var m bus.RevokeMessage
		if err := bus.Decode(b, &m); err != nil {
			t.Errorf("said: %v", err)
		}
		said <- m
	})
	w.beatTracker(signal.ID{9})
	if m := wait(t, said, "what is revoked"); len(m.Revocations) != 2 || len(m.Switches) != 1 || !m.Switches[0].Off {
		t.Errorf("said %+v", m)
	}
	w.beatTracker(signal.ID{9}) // known by now
	w.beatTracker(signal.ID{10})
	wait(t, said, "what is revoked, for another tracker")
	w.stop()
	if n := len(said); n != 0 {
		t.Errorf("said %d times more", n)
	}
}

// TestASiteThatIsOffIsNotServed, whatever viewers do, and is again when it is on: also over a restart.
func TestASiteThatIsOffIsNotServed(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	w.say(w.seed.Statements("demo", true, cluster.ByOperator, time.Time{})...)
	wait(t, v.closed, "the end of the link")
	refused := func(w *world, n byte) {
		t.Helper()
		v := w.newViewer(n)
		v.offer(w.title(1))
		if reason := wait(t, v.failed, "a refusal"); reason != "busy" {
			t.Errorf("refused as %s: the pair would never be tried again", reason)
		}
	}
	refused(w, 2)
	w.stop()
	again := newWorld(t, o, func(_ *site.Config, s *seed.Config) { s.DataDir = w.dir })
	refused(again, 3)
	again.say(again.seed.Statements("demo", false, cluster.ByOperator, time.Time{})...)
	again.connect(4, 1)
	again.seed.Configure("demo", true)
	refused(again, 5)
}

func TestDamagedRevocationsKeepASeedFromStarting(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "revoked.jsonl"), []byte("{\"revocations\":[{}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seed.New(seed.Config{DataDir: dir}, &memoryBus{}, nil); err == nil || !strings.Contains(err.Error(), "revoked.jsonl") {
		t.Errorf("started with %v", err)
	}
}
