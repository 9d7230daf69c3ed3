package seed_test

import (
	"bytes"
	"testing"
	"time"

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
			v.session.Send(peer.CertificateRequest{Segments: []peer.ID{peer.ID(w.id(name))}})
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

// TestRevokedKeySignsNothing: without the check each request would ask the origin for a certificate that nobody takes.
func TestRevokedKeySignsNothing(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	beat := wait(t, w.keys, "a beat")
	v := w.connect(1, 1)
	const name = "/film/low/0.m4s"
	c, _ := v.certificate(name)
	w.revoke(signal.Revocation{KeyID: beat.VerifyKeys[0].KeyID})
	for range 3 {
		if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneWithdrawn {
			t.Errorf("after the key was revoked: %v, %+v", c, none)
		}
	}
	if n := o.count(path(name)); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	if _, rejected := v.fetch(c); len(rejected) != len(c.Digests) {
		t.Errorf("%d of %d pieces were rejected", len(rejected), len(c.Digests))
	}
}
