package seed_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func short(string) []byte { return longPlaylist(3) }

const film = "/film/index.m3u8"

// TestOffersThatAreNeverTakenUpHoldNoPlaces: hundreds of offers of one network, none of which is gone on with, and then a viewer
// of another network. Links are pion's, over loopback.
func TestOffersThatAreNeverTakenUpHoldNoPlaces(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.MaxLinks = 20 })
	ghost := w.newViewer(250)
	link, offer, err := w.dial.Offer(ghost)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close(peer.CloseClosed, nil)
	for n := range 400 {
		w.toSeed(&bus.SeedDelivery{
			Kind: bus.KindSignal, Title: w.title(1), Subnet: "crowd",
			Signal: &bus.Signal{Tracker: w.tracker, Signal: signal.Signal{
				Swarm: w.swarm, From: number(40, n), To: w.seed.ID(), Role: "viewer", Link: number(41, n), Kind: "offer",
				SDP: offer.SDP, Plan: &signal.Plan{V: 1, Data: offer.Plan.Data, Message: offer.Plan.Message},
			}},
		}).Wait()
	}
	began := time.Now()
	for n := range byte(20) { // as many as there are places
		v := w.newViewer(n + 1)
		v.subnet = fmt.Sprint("home ", n)
		v.offer(w.title(2))
		wait(t, v.ready, "the seed's hello")
		if n == 0 {
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("a viewer of another network is linked after %s", took)
			}
		}
	}
}

// TestALinkHasTenSecondsToOpen, and few are on their way at a time.
func TestALinkHasTenSecondsToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, func(c *seed.Config) { c.MaxLinks = 80 })
		var crowd []*caller
		for n := range 200 {
			crowd = append(crowd, s.call(n, "crowd", film))
		}
		made := 0
		for _, c := range crowd {
			if c.wire() != nil {
				made++
			} else if r := c.refused(); r != "busy" {
				t.Fatalf("refused: %q", r)
			}
		}
		if made != 10 || s.value("leeway_seed_half_open_links") > 10 {
			t.Errorf("%d links of one subnet were on their way", made)
		}
		home := s.call(300, "home", film)
		home.open()
		if _, _, ended := home.ended(); ended {
			t.Error("the link of another subnet ended")
		}
		if s.value("leeway_seed_displaced_links_total", "half-open") != 1 {
			t.Error("it took the place of none")
		}
		<-time.After(12 * time.Second)
		for i, c := range crowd[:10] {
			if reason, _, ended := c.ended(); !ended || reason != peer.CloseTimeout || c.refused() != "busy" {
				t.Errorf("link %d: ended %v for %q, told %q", i, ended, reason, c.refused())
			}
		}
		if open, half := s.value("leeway_seed_links"), s.value("leeway_seed_half_open_links"); open != 1 || half != 0 {
			t.Errorf("%v open, %v on their way", open, half)
		}
		if c := s.call(400, "crowd", film); c.wire() == nil {
			t.Errorf("an honest viewer of the same network does not get in afterwards: %s", c.refused())
		}
	})
}

// TestALinkThatOpensAfterNineSecondsStays: the ten seconds are a viewer's too, on a line that is slow.
func TestALinkThatOpensAfterNineSecondsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, nil)
		slow := s.call(1, "far away", film)
		<-time.After(9 * time.Second)
		if reason, _, ended := slow.ended(); ended || slow.refused() != "" {
			t.Fatalf("after 9 s on its way: ended for %q, told %q", reason, slow.refused())
		}
		slow.open()
		<-time.After(5 * time.Second)
		if reason, _, ended := slow.ended(); ended {
			t.Errorf("it opened in time, and ended for %q", reason)
		}
	})
}

// TestIdleLinksMakeRoomFirst: the longest idle one goes, is told so, and may come back; those that are used stay.
func TestIdleLinksMakeRoomFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, func(c *seed.Config) { c.MaxLinks = 8 })
		var all []*caller
		for n := range 8 {
			c := s.call(n, fmt.Sprint("net ", n), film)
			c.open()
			all = append(all, c)
			<-time.After(time.Second)
		}
		if c := s.call(50, "new", film); c.refused() != "busy" {
			t.Errorf("all are in use, and a ninth is told %q", c.refused())
		}
		// Viewers 0 to 5 go on asking; pings of all keep the links alive.
		for range 8 {
			for n, c := range all {
				c.says(peer.Ping{Nonce: 1})
				if n < 6 {
					c.says(peer.CertificateRequest{Segments: []segment.ID{{1}}})
				}
			}
			<-time.After(5 * time.Second)
		}
		s.call(51, "new", film).open()
		if reason, told, ended := all[6].ended(); !ended || reason != peer.CloseIdle || told != peer.ByeIdle {
			t.Errorf("the longest idle link: ended %v, %q, told %d", ended, reason, told)
		}
		for n, c := range all {
			if _, _, ended := c.ended(); ended && n != 6 {
				t.Errorf("link %d ended", n)
			}
		}
		if s.value("leeway_seed_displaced_links_total", "idle") != 1 {
			t.Error("it is not counted")
		}
		// The one that was sent away wants something again: another idle one goes.
		again := s.callAs(6, 60, "net 6", film, "/title/6", "again")
		again.open()
		if _, _, ended := all[7].ended(); !ended {
			t.Error("what was sent away for being idle does not come back")
		}
		if _, _, ended := again.ended(); ended {
			t.Error("and is sent away again")
		}
	})
}

// TestASubnetHasItsShareOfThePlaces: links that are in use yield only from a subnet that has more than its share, and to subnets
// with fewer; where there is room an office of one address has all that it wants.
func TestASubnetHasItsShareOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, func(c *seed.Config) { c.MaxLinks = 32 })
		var office []*caller
		for n := range 32 {
			c := s.call(n, "office", film)
			c.open()
			office = append(office, c)
		}
		if n := s.value("leeway_seed_links"); n != 32 {
			t.Fatalf("an office has %v links of the 32 that are free", n)
		}
		if c := s.call(40, "office", film); c.refused() != "busy" {
			t.Errorf("one more of the office is told %q", c.refused())
		}
		stayed := func() (n int) {
			for _, c := range office {
				if reason, told, ended := c.ended(); !ended {
					n++
				} else if reason != peer.CloseLimit || told != peer.ByeOverLimit {
					t.Errorf("sent away for %q, told %d", reason, told)
				}
			}
			return n
		}
		for n := range 30 {
			s.call(100+n, fmt.Sprint("net ", n), film).open()
		}
		if n := stayed(); n != 2 {
			t.Errorf("%d links of the office are left, its share is 2", n)
		}
		if c := s.call(200, "late", film); c.refused() != "busy" {
			t.Errorf("every subnet has its share, and a newcomer is told %q", c.refused())
		}
	})
}

// TestAShareIsASixteenthOfThePlaces: a subnet with more yields while it has clearly more than the newcomer's.
func TestAShareIsASixteenthOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, func(c *seed.Config) { c.MaxLinks = 64 })
		n := 0
		links := func(subnet string, count int) (made []*caller) {
			for range count {
				c := s.call(n, subnet, film)
				c.open()
				made, n = append(made, c), n+1
			}
			return made
		}
		office := links("office", 6)
		school := links("school", 5)
		for i := range 53 {
			links(fmt.Sprint("net ", i), 1)
		}
		gone := func(all []*caller) (n int) {
			for _, c := range all {
				if _, _, ended := c.ended(); ended {
					n++
				}
			}
			return n
		}
		if gone(office)+gone(school) != 0 {
			t.Fatal("a link yields while there is room")
		}
		if c := s.call(n, "school", film); c.refused() != "busy" {
			t.Errorf("the school has 5 links and the office 6, and one more of the school is told %q", c.refused())
		}
		for i := range 3 {
			links(fmt.Sprint("late ", i), 1)
		}
		if a, b := gone(office), gone(school); a != 2 || b != 1 {
			t.Errorf("%d links of the office and %d of the school yielded; a share of 64 places is 4", a, b)
		}
		if c := s.call(n, "too late", film); c.refused() != "busy" {
			t.Errorf("every subnet has its share, and a newcomer is told %q", c.refused())
		}
	})
}

// TestASessionHasFewLinks, on their way and open, however many titles it names.
func TestASessionHasFewLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, nil)
		for n := range 12 {
			c := s.callAs(1, n, "net", film, fmt.Sprint("/film?", n), fmt.Sprint("offer ", n))
			if (c.wire() != nil) != (n < 8) {
				t.Errorf("link %d of a session: %q", n, c.refused())
			}
		}
	})
}

// TestASeedThatCanMakeRoomIsIntroduced: a full one says so only where a newcomer would find no place.
func TestASeedThatCanMakeRoomIsIntroduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreet(t, short, func(c *seed.Config) { c.MaxLinks = 4 })
		var load atomic.Int64
		var all []*caller
		undo, err := s.bus.Subscribe(bus.SubjectSeedBeat, func(_ string, b []byte, _ func([]byte) error) {
			var m bus.SeedBeat
			if err := bus.Decode(b, &m); err != nil {
				t.Error(err)
			}
			load.Store(int64(m.LoadPermille))
		})
		if err != nil {
			t.Fatal(err)
		}
		defer undo()
		says := func(want int64, when string) {
			t.Helper()
			for _, c := range all {
				c.says(peer.Ping{Nonce: 1})
			}
			<-time.After(3 * time.Second)
			synctest.Wait()
			if load := load.Load(); load != want {
				t.Errorf("%s: load %d, want %d", when, load, want)
			}
		}
		open := func(n int, subnet string) {
			c := s.call(n, subnet, film)
			c.open()
			all = append(all, c)
		}
		open(1, "a")
		open(2, "a")
		says(500, "half full")
		open(3, "b")
		open(4, "b")
		for range 8 {
			says(1000, "full of links in use")
		}
		<-time.After(3 * time.Second)
		for n := range 50 {
			s.call(100+n, "crowd", film) // on their way for ever
		}
		says(990, "full of idle links")
	})
}
