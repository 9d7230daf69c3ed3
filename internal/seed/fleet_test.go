package seed_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/siblinghttp"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// crew is a fleet of seeds with one origin, on one bus, that ask each other over HTTP on loopback.
type crew struct {
	t      *testing.T
	bus    *memoryBus
	origin *origin
	secret *sibling.Secret
	seeds  []*member
}

// member is a seed of the fleet, with a tracker's place and viewers of its own.
type member struct {
	*world
	server *httptest.Server
}

func newCrew(t *testing.T, o *origin, n int) *crew {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	secret, err := sibling.NewSecret(strings.Repeat("fleet", 8))
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{t: t, bus: &memoryBus{}, origin: o, secret: secret}
	for range n {
		c.add(nil)
	}
	if n > 0 {
		c.meet()
	}
	return c
}

// add starts one more seed.
func (c *crew) add(change func(*site.Config, *seed.Config)) *member {
	c.t.Helper()
	m := &member{server: httptest.NewUnstartedServer(nil)}
	client := siblinghttp.NewClient(siblinghttp.Config{Secret: c.secret, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Silence: patience})
	c.t.Cleanup(client.Close)
	m.world = newWorldOn(c.t, c.bus, signal.ID{1, byte(len(c.seeds))}, c.origin, func(s *site.Config, cfg *seed.Config) {
		cfg.Fleet = &seed.Fleet{
			ID: c.secret.Fleet(), Address: netip.MustParseAddrPort(m.server.Listener.Addr().String()), Siblings: client, Patience: patience,
		}
		if change != nil {
			change(s, cfg)
		}
	})
	m.server.Config.Handler = siblinghttp.NewHandler(c.secret, m.seed.ID(), m.seed, time.Now, slog.New(slog.DiscardHandler))
	m.server.Start()
	c.t.Cleanup(m.server.Close)
	c.seeds = append(c.seeds, m)
	return m
}

// meet returns when every seed has heard every other, and knows who serves the title.
func (c *crew) meet() {
	c.t.Helper()
	var beats [][]byte
	for _, m := range c.seeds { // who has said its own listens
		for {
			if b := wait(c.t, m.keys, "a beat"); b.Seed == m.seed.ID() && !b.Gone {
				raw, err := bus.Encode(&b)
				if err != nil {
					c.t.Fatal(err)
				}
				beats = append(beats, raw)
				break
			}
		}
	}
	for _, raw := range beats {
		c.bus.send(bus.SubjectSeedBeat, raw).Wait()
	}
	c.name(2)
}

// name says to all that they serve the title.
func (c *crew) name(viewers int) {
	title := c.seeds[0].title(viewers)
	for _, m := range c.seeds {
		title.Seeds = append(title.Seeds, m.seed.ID())
	}
	for _, m := range c.seeds {
		m.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
	}
}

// owner is who fetches a segment; others is everybody else, in the order in which they would.
func (c *crew) owner(name segment.Name) (owner *member, others []*member) {
	byID := map[swarm.ID]*member{}
	var ids []swarm.ID
	for _, m := range c.seeds {
		byID[swarm.ID(m.seed.ID())] = m
		ids = append(ids, swarm.ID(m.seed.ID()))
	}
	for _, id := range swarm.Order(ids, swarm.ID(c.seeds[0].id(name))) {
		others = append(others, byID[id])
	}
	return others[0], others[1:]
}

func (m *member) count(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	for _, d := range seed.Metrics() {
		if d.Name == name {
			return m.metrics.Value(d, labels...)
		}
	}
	t.Fatalf("no metric is called %s", name)
	return 0
}

func names(n int) (all []segment.Name) {
	for _, r := range []string{"low", "high"} {
		for i := range n {
			all = append(all, segment.Name(fmt.Sprintf("/film/%s/%d.m4s", r, i)))
		}
	}
	return all
}

// TestAFleetFetchesASegmentOnce: whichever seed is asked, the origin is asked by one, and all hand out that one's certificate.
func TestAFleetFetchesASegmentOnce(t *testing.T) {
	o := newOrigin(t)
	o.film(6)
	c := newCrew(t, o, 3)
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

// keySet is of the keys of all seeds.
func (c *crew) keySet() *certificate.KeySet {
	var keys []certificate.VerifyKey
	seen := map[signal.ID]bool{}
	for len(seen) < len(c.seeds) {
		b := wait(c.t, c.seeds[0].keys, "beats of all seeds")
		if !seen[b.Seed] {
			for _, k := range b.VerifyKeys {
				keys = append(keys, certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: k.Sites})
			}
		}
		seen[b.Seed] = true
	}
	set, err := certificate.NewKeySet(keys...)
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}

// TestAllWhoWantASegmentAtOnceWaitForOneFetch holds the origin's answer back until every seed wants it.
func TestAllWhoWantASegmentAtOnceWaitForOneFetch(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	c := newCrew(t, o, 3)
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

// TestAnOwnerThatDiesCostsOneMoreFetch cuts the owner off while it waits for the origin: who asked it goes on with the next in
// rank, and what that one fetched the others have from it.
func TestAnOwnerThatDiesCostsOneMoreFetch(t *testing.T) {
	o := newOrigin(t)
	o.film(4)
	c := newCrew(t, o, 3)
	const name = "/film/low/0.m4s"
	owner, others := c.owner(name)
	a, b := others[0].connect(1, 2), others[1].connect(2, 2)
	release := o.hold(path(name))
	b.session.Send(peer.CertificateRequest{Segments: []peer.ID{peer.ID(owner.id(name))}})
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
		t.Error("nobody noticed")
	}
}

// TestANewcomerIsGivenWhatItOwnsNow: segments move to a seed that comes, and the origin does not notice.
func TestANewcomerIsGivenWhatItOwnsNow(t *testing.T) {
	o := newOrigin(t)
	o.film(8)
	c := newCrew(t, o, 2)
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
	c := newCrew(t, o, 2)
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
	c := newCrew(t, o, 2)
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
	c := newCrew(t, o, 0)
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
	c.meet() // a jump ends whoever has not beaten since
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
