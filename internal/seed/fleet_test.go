package seed_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestAFleetFetchesASegmentOnce: whichever seed is asked, the origin is asked by one, and all hand out that one's certificate.
func TestAFleetFetchesASegmentOnce(t *testing.T) {
	o := newOrigin(t)
	o.film(6)
	c := newSeedFleet(t, o, 3)
	var viewers []*viewer
	for i, m := range c.seeds {
		viewers = append(viewers, m.connect(byte(1+i), 2))
	}
	keys := c.keySet()
	owned := map[*member]int{}
	for _, name := range names(6) {
		var first *certificate.Certificate
		for i, v := range viewers {
			got, none := v.certificate(name)
			if none != nil {
				t.Fatalf("%s of seed %d: reason %d", name, i, none.Reason)
			}
			if err := keys.Verify(got, "demo", name, time.Now(), nil); err != nil {
				t.Errorf("%s of seed %d: %v", name, i, err)
			}
			if data, rejected := v.fetch(got); !bytes.Equal(data, o.files[path(name)]) || rejected != nil {
				t.Errorf("%s of seed %d: %d bytes, rejected %v", name, i, len(data), rejected)
			}
			if first == nil {
				first = got
			}
			if !bytes.Equal(first.Bytes(), got.Bytes()) {
				t.Errorf("%s: seed %d has a certificate of its own", name, i)
			}
		}
		if n := o.count(path(name)); n != 1 {
			t.Errorf("%s: the origin was asked %d times", name, n)
		}
		owner, _ := c.owner(name)
		owned[owner]++
	}
	for i, m := range c.seeds {
		fetched, had := m.count(t, "leeway_seed_fetches_total", "demo", "origin"), m.count(t, "leeway_seed_fetches_total", "demo", "sibling")
		if fetched != float64(owned[m]) || had != float64(12-owned[m]) {
			t.Errorf("seed %d fetched %v and had %v from siblings; it owns %d of 12", i, fetched, had, owned[m])
		}
		if m.metrics.Dropped() != 0 {
			t.Error("observations were outside their definitions")
		}
	}
}

// TestRequestsForOneSegmentShareOneFetch holds the origin's answer back until every seed wants it.
func TestRequestsForOneSegmentShareOneFetch(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	c := newSeedFleet(t, o, 3)
	const name = "/film/low/0.m4s"
	release := o.hold(path(name))
	got := make(chan *certificate.Certificate, 3)
	var all sync.WaitGroup
	for i, m := range c.seeds {
		v := m.connect(byte(1+i), 2)
		all.Go(func() {
			cert, _ := v.certificate(name)
			got <- cert
		})
	}
	until(t, "the owner to ask", func() bool { return o.count(path(name)) == 1 })
	release()
	all.Wait()
	first := <-got
	for range 2 {
		if next := <-got; first == nil || next == nil || !bytes.Equal(first.Bytes(), next.Bytes()) {
			t.Error("not all have the one certificate")
		}
	}
	if n := o.count(path(name)); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
}

// TestAnOwnerThatDiesCostsOneMoreFetch cuts the owner off while it waits for the origin: the seed that asked goes on with the next in
// rank, and what that one fetched the others have from it.
func TestAnOwnerThatDiesCostsOneMoreFetch(t *testing.T) {
	o := newOrigin(t)
	o.film(4)
	c := newSeedFleet(t, o, 3)
	const name = "/film/low/0.m4s"
	owner, others := c.owner(name)
	a, b := others[0].connect(1, 2), others[1].connect(2, 2)
	release := o.hold(path(name))
	b.session.Send(peer.CertificateRequest{Segments: []segment.ID{owner.id(name)}})
	until(t, "the owner to ask", func() bool { return o.count(path(name)) == 1 })
	owner.server.CloseClientConnections()
	owner.server.Listener.Close()
	until(t, "the next to ask", func() bool { return o.count(path(name)) == 2 })
	release()
	if m, ok := wait(t, b.answers, "a certificate").(peer.Certificate); !ok {
		t.Errorf("after the owner's end: %+v", m)
	}
	for _, v := range []*viewer{a, b} {
		if got, none := v.certificate(name); got == nil {
			t.Errorf("after the owner's end: reason %d", none.Reason)
		}
	}
	if n := o.count(path(name)); n != 2 {
		t.Errorf("the origin was asked %d times", n)
	}
	for _, name := range names(4)[1:] {
		for _, v := range []*viewer{a, b} {
			if _, none := v.certificate(name); none != nil {
				t.Errorf("%s: reason %d", name, none.Reason)
			}
		}
		if n := o.count(path(name)); n != 1 {
			t.Errorf("%s: the origin was asked %d times by those that are left", name, n)
		}
	}
	if n := others[1].count(t, "leeway_seed_sibling_requests_total", "unreachable"); n == 0 {
		t.Error("no seed noticed")
	}
}

// TestANewcomerIsGivenWhatItOwnsNow: segments move to a seed that comes, and the origin does not notice.
func TestANewcomerIsGivenWhatItOwnsNow(t *testing.T) {
	o := newOrigin(t)
	o.film(8)
	c := newSeedFleet(t, o, 2)
	a := c.seeds[0].connect(1, 2)
	for _, name := range names(8) {
		if _, none := a.certificate(name); none != nil {
			t.Fatalf("%s: reason %d", name, none.Reason)
		}
	}
	c.add(nil)
	c.meet()
	v, moved := c.seeds[2].connect(3, 2), 0
	for _, name := range names(8) {
		if owner, _ := c.owner(name); owner == c.seeds[2] {
			moved++
		}
		if _, none := v.certificate(name); none != nil {
			t.Errorf("%s: reason %d", name, none.Reason)
		}
		if n := o.count(path(name)); n != 1 {
			t.Errorf("%s: the origin was asked %d times", name, n)
		}
	}
	t.Logf("%d of 16 segments moved", moved)
}

// TestWhatSiblingsCertifiedOutlivesARestart: the store has certificates of other seeds, whose keys come with their beats.
func TestWhatSiblingsCertifiedOutlivesARestart(t *testing.T) {
	o := newOrigin(t)
	o.film(4)
	c := newSeedFleet(t, o, 2)
	v := c.seeds[1].connect(1, 2)
	want := map[segment.Name]*certificate.Certificate{}
	for _, name := range names(4) {
		want[name], _ = v.certificate(name)
	}
	dir := c.seeds[1].dir
	c.seeds[1].stop()
	c.seeds[1].server.Close()
	c.seeds = c.seeds[:1]
	again := c.add(func(_ *site.Config, cfg *seed.Config) { cfg.DataDir = dir })
	c.meet()
	v = again.connect(2, 2)
	c.seeds[0].server.CloseClientConnections()
	c.seeds[0].server.Listener.Close() // it has to have all by itself
	for _, name := range names(4) {
		if got, _ := v.certificate(name); got == nil || want[name] == nil || !bytes.Equal(got.Bytes(), want[name].Bytes()) || o.count(path(name)) != 1 {
			t.Errorf("%s did not survive; the origin was asked %d times", name, o.count(path(name)))
		}
	}
}

// TestAPurgeReachesAllSeeds: what is withdrawn is fetched once more, by one.
func TestAPurgeReachesAllSeeds(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	c := newSeedFleet(t, o, 2)
	const name = "/film/low/0.m4s"
	a, b := c.seeds[0].connect(1, 2), c.seeds[1].connect(2, 2)
	old, _ := a.certificate(name)
	if _, none := b.certificate(name); none != nil {
		t.Fatalf("reason %d", none.Reason)
	}
	o.put(path(name), noise(150_000))
	c.seeds[0].revoke(signal.Revocation{Site: "demo", Prefix: "/film/", MinIssuedAt: time.Now().Add(time.Millisecond).UnixMilli()})
	for _, v := range []*viewer{a, b} {
		got, none := v.certificate(name)
		if got == nil || got.SameContent(old) {
			t.Fatalf("no new certificate after the purge: %+v", none)
		}
		if data, rejected := v.fetch(got); !bytes.Equal(data, o.files[path(name)]) {
			t.Errorf("the new bytes do not come, rejected %v", rejected)
		}
	}
	if n := o.count(path(name)); n != 2 {
		t.Errorf("the origin was asked %d times", n)
	}
}

// TestANewCertificateComesWithoutTheBytes: a seed that holds a segment asks the owner for a newer certificate of it alone.
func TestANewCertificateComesWithoutTheBytes(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	clock := &jump{}
	c := newSeedFleet(t, o, 0)
	c.add(clock.config)
	c.add(clock.config)
	c.meet()
	const name = "/film/low/0.m4s"
	_, others := c.owner(name)
	v := others[0].connect(1, 2)
	old, none := v.certificate(name)
	if old == nil {
		t.Fatalf("reason %d", none.Reason)
	}
	bytesIn := func() float64 { return others[0].count(t, "leeway_seed_sibling_bytes_total", "in") }
	before := bytesIn()
	clock.forward(5 * time.Hour)
	c.meet() // a jump ends the life of a seed that has not beaten since
	until(t, "a new certificate", func() bool {
		got, _ := v.certificate(name)
		return got != nil && got.IssuedAt.After(old.IssuedAt) && got.SameContent(old)
	})
	until(t, "it to be counted", func() bool { return bytesIn() > before })
	if n := bytesIn() - before; n > 20_000 {
		t.Errorf("%v bytes came for a certificate", n)
	}
	if n := o.count(path(name)); n != 2 {
		t.Errorf("the origin was asked %d times: once for the bytes, once whether they are the same", n)
	}
}
