package seed_test

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestASessionSpendsOneBudget: neither by coming back nor by making the seed fetch may a viewer cost more than it can play.
func TestASessionSpendsOneBudget(t *testing.T) {
	o := newOrigin(t)
	o.film(3)
	for i := range 3 {
		o.put(fmt.Sprintf("/vod/film/low/%d.m4s", i), noise(8<<20))
	}
	// The least that a session may have at once is 16 MiB, and nearly nothing comes after that.
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.SessionFactor = 1e-6 })
	name := func(i int) segment.Name { return segment.Name(fmt.Sprintf("/film/low/%d.m4s", i)) }
	v := w.connect(1, 1)
	var certs []*certificate.Certificate
	for i := range 2 {
		c, none := v.certificate(name(i))
		if none != nil {
			t.Fatalf("segment %d: no certificate, reason %d", i, none.Reason)
		}
		certs = append(certs, c)
	}
	if c, none := v.certificate(name(2)); c != nil || none.Reason != peer.NoneBudget || o.count(path(name(2))) != 0 {
		t.Errorf("a third fetch from the origin: %+v", none)
	}
	if _, none := v.certificate(name(1)); none != nil {
		t.Errorf("what the seed holds costs the origin nothing: reason %d", none.Reason)
	}
	if _, rejected := v.fetch(certs[0]); len(rejected) != 0 {
		t.Errorf("rejected within the budget: %v", rejected)
	}
	if _, rejected := v.fetch(certs[1]); len(rejected) == 0 {
		t.Error("certificates and pieces together are more than the budget")
	}
	again := w.newViewer(2)
	again.id = v.id // the same session with a new link
	again.offer(w.title(1))
	wait(t, again.ready, "the seed's hello")
	if _, none := again.certificate(name(2)); none == nil || none.Reason != peer.NoneBudget {
		t.Error("a new link may make the seed fetch anew")
	}
	if _, rejected := again.fetch(certs[0]); len(rejected) != len(certs[0].Digests) {
		t.Errorf("a new link has a new budget: %d of %d pieces rejected", len(rejected), len(certs[0].Digests))
	}
	other := w.connect(3, 2)
	if _, none := other.certificate(name(2)); none != nil {
		t.Errorf("another session has its own budget: reason %d", none.Reason)
	}
}
