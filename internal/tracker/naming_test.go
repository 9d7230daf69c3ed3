package tracker

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const wrongManifest = "/media/bbb/wrong.m3u8"

// following is a seed that a tracker knows, and what it is told.
type following struct {
	*node
	seed signal.ID
	told <-chan bus.SeedDelivery
}

func newFollowing(t *testing.T) following {
	t.Helper()
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.BeatEvery = 2 * time.Second })
	seed, told := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return n.roster.serves(seed) })
	return following{n, seed, told}
}

// chosen has the tracker's time go by, in steps of a beat, and collects the manifests that the seed is told to go over to.
func (f following) chosen(during time.Duration) (manifests []string) {
	f.world.t.Helper()
	for _, title := range f.chooses(during) {
		manifests = append(manifests, title.Manifest)
	}
	return manifests
}

// chooses is chosen, with all that the seed is told.
func (f following) chooses(during time.Duration) (titles []bus.Title) {
	t := f.world.t
	t.Helper()
	for range during / f.cfg.BeatEvery {
		f.world.clock.Move(f.cfg.BeatEvery)
		f.home.maintain(f.world.clock.Now())
	}
	last := newID() // what is said before it comes before it
	f.Publish(bus.SubjectSeedDeliver(f.seed), &bus.SeedDelivery{Kind: bus.KindTitle, Title: &bus.Title{Site: "demo", Title: "last", Swarm: last}})
	for {
		switch d := receive(t, f.told); {
		case d.Title == nil:
		case d.Title.Swarm == last:
			return titles
		case d.Title.Chosen:
			titles = append(titles, *d.Title)
		}
	}
}

// TestAMajorityMovesTheManifest: one viewer names a wrong manifest before all others, which name the right one. The seed is told to go
// over to that within ten seconds, and what the first one offers says nothing else.
func TestAMajorityMovesTheManifest(t *testing.T) {
	n := newFollowing(t)
	first := n.viewerFrom("203.0.113.7", "")
	if e := first.joins(testTitle, wrongManifest); e != nil {
		t.Fatalf("%+v", e)
	}
	if d := receive(t, n.told); d.Title.Manifest != wrongManifest || d.Title.Chosen {
		t.Fatalf("at first the seed is told %+v", d.Title)
	}
	if got := n.chosen(8 * time.Second); len(got) == 0 || got[len(got)-1] != wrongManifest {
		t.Fatalf("while no viewer names another, the seed is told %v", got)
	}
	for i := range 30 {
		if e := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "").joins(testTitle, testManifest); e != nil {
			t.Fatalf("%+v", e)
		}
	}
	if got := n.chosen(10 * time.Second); len(got) == 0 || got[len(got)-1] != testManifest {
		t.Errorf("within ten seconds of the majority the seed is told %v", got)
	}
	if got := n.world.metrics.Value(defManifests); got != 1 {
		t.Errorf("%v changes are counted", got)
	}
	swarm := n.swarmID("demo", testTitle)
	first.send(&signal.Update{Swarm: swarm, Want: 8})
	for met := false; !met; {
		for _, p := range expect[*signal.Introduce](first).Peers {
			met = met || p.Peer == n.seed
		}
	}
	first.send(&signal.Signal{Swarm: swarm, To: n.seed, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan})
	for {
		d := receive(t, n.told)
		if d.Kind != bus.KindSignal {
			continue
		}
		if d.Title == nil || d.Title.Manifest != testManifest || d.Title.Chosen {
			t.Errorf("an offer of a viewer that named another manifest says %+v", d.Title)
		}
		return
	}
}

// TestSeedsAreToldOfBothFormats: of the HLS and of the MPD that members name, and again when the MPD is not named any more. What one
// session names beside them moves neither.
func TestSeedsAreToldOfBothFormats(t *testing.T) {
	const mpd = "/media/bbb/manifest.mpd"
	n := newFollowing(t)
	var all []*viewer
	for i, manifest := range []string{testManifest, mpd, testManifest, mpd, wrongManifest, "/media/bbb/wrong.mpd"} {
		v := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "")
		if e := v.joins(testTitle, manifest); e != nil {
			t.Fatalf("%+v", e)
		}
		all = append(all, v)
	}
	told := n.chooses(10 * time.Second)
	if len(told) == 0 {
		t.Fatal("the seed is told of no choice")
	}
	for _, title := range told {
		if title.Manifest != testManifest || title.Beside != mpd {
			t.Errorf("the seed is led to %s, and %q beside it", title.Manifest, title.Beside)
		}
	}
	swarm := n.swarmID("demo", testTitle)
	for i, v := range []*viewer{all[1], all[3], all[5]} { // at last there are as many viewers as the seed is told when the first one leaves
		v.send(&signal.Leave{Swarm: swarm})
		testkit.Eventually(t, "it has left", func() bool { return n.members(swarm) == len(all)-1-min(i, 1) })
		if i > 0 {
			if e := n.viewerFrom(fmt.Sprintf("198.51.%d.1", 100+i), "").joins(testTitle, testManifest); e != nil {
				t.Fatalf("%+v", e)
			}
		}
	}
	if told = n.chooses(n.cfg.BeatEvery); len(told) == 0 || told[len(told)-1].Beside != "" {
		t.Errorf("without viewers of the MPD the seed is told %+v", told)
	}
	if e := n.viewer("").joins(testTitle, "/media/other/manifest.mpd"); e == nil || e.Code != "bad-title" {
		t.Errorf("an MPD that the title is not bound to: %+v", e)
	}
}

// TestADrainTakesNoViewersFromATitle: a tracker that goes away and comes back, or hands its viewers over, tells seeds of none that have left: those
// have links still, and seeds would certify nothing for them.
func TestADrainTakesNoViewersFromATitle(t *testing.T) {
	n := newFollowing(t)
	const viewers = 5
	var all []*viewer
	for range viewers {
		v := n.viewer("")
		v.join()
		all = append(all, v)
	}
	n.world.clock.Move(titleEvery)
	n.home.maintain(n.world.clock.Now())
	last := bus.Title{}
	for last.Viewers != viewers {
		last = *receive(t, n.told).Title
	}
	n.world.clock.Move(titleHold)
	n.Drain()
	for _, v := range all {
		v.closed()
	}
	testkit.Eventually(t, "all have left", func() bool { return n.members(last.Swarm) == 0 })
	n.Publish(bus.SubjectSeedDeliver(n.seed), &bus.SeedDelivery{Kind: bus.KindTitle, Title: &bus.Title{Site: "demo", Title: "last", Swarm: newID()}})
	for d := receive(t, n.told); d.Title.Title != "last"; d = receive(t, n.told) {
		if d.Title.Viewers < viewers {
			t.Errorf("the seed is told of %d viewers", d.Title.Viewers)
		}
	}
}

// TestSybilsOfOneSubnetMoveNoSeed: sessions of one network are one vote.
func TestSybilsOfOneSubnetMoveNoSeed(t *testing.T) {
	n := newFollowing(t)
	for i := range 2 {
		if e := n.viewerFrom(fmt.Sprintf("203.0.%d.7", i), "").joins(testTitle, testManifest); e != nil {
			t.Fatalf("%+v", e)
		}
	}
	for i := range 40 {
		if e := n.viewerFrom(fmt.Sprintf("198.51.100.%d", i+1), "").joins(testTitle, wrongManifest); e != nil {
			t.Fatalf("%+v", e)
		}
	}
	for _, got := range n.chosen(20 * time.Second) {
		if got != testManifest {
			t.Errorf("a seed is led to %s", got)
		}
	}
	if got := n.world.metrics.Value(defManifests); got != 0 {
		t.Errorf("%v changes are counted", got)
	}
}

// TestTheFirstAtANewHomeAreNoMajority: when a tracker becomes the home of a swarm its members come one by one, and until they are
// there nothing that it says moves a seed.
func TestTheFirstAtANewHomeAreNoMajority(t *testing.T) {
	n := newFollowing(t)
	if e := n.viewerFrom("203.0.113.7", "").joins(testTitle, wrongManifest); e != nil {
		t.Fatalf("%+v", e)
	}
	if got := n.chosen(4 * time.Second); len(got) != 0 {
		t.Errorf("after four seconds a seed is led to %v", got)
	}
	for i := range 3 {
		if e := n.viewerFrom(fmt.Sprintf("198.51.%d.1", i), "").joins(testTitle, testManifest); e != nil {
			t.Fatalf("%+v", e)
		}
	}
	got := n.chosen(4 * time.Second)
	if len(got) == 0 || got[0] != testManifest {
		t.Errorf("after eight seconds a seed is led to %v", got)
	}
}

// stalled is a bus that takes the first title message when let is closed, and tells by came that it is there.
type stalled struct {
	*natsbus.Bus
	busy      atomic.Bool
	came, let chan struct{}
}

func (b *stalled) Publish(subject string, data []byte) error {
	if strings.HasPrefix(subject, "leeway.v1.seed.") && b.busy.CompareAndSwap(false, true) {
		close(b.came)
		<-b.let
	}
	return b.Bus.Publish(subject, data)
}

// TestTitleMessagesKeepTheirOrder: a second viewer joins while the seed is about to be told of the first. The seed hears of one viewer, and then
// of two.
func TestTitleMessagesKeepTheirOrder(t *testing.T) {
	w := newWorld(t)
	line := &stalled{Bus: w.bus, came: make(chan struct{}), let: make(chan struct{})}
	w.through = line
	n := w.tracker(func(c *Config) { c.BeatEvery = time.Hour })
	seed, told := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return n.roster.serves(seed) })
	first := make(chan *session, 1)
	go func() { first <- n.enters(netip.MustParseAddr("10.0.1.1")) }()
	receive(t, line.came)
	second := n.enters(netip.MustParseAddr("10.0.2.1"))
	close(line.let)
	t.Cleanup(func() {
		second.End(nil)
		receive(t, first).End(nil)
	})
	for want := 1; want <= 2; want++ {
		if d := receive(t, told); d.Title.Viewers != want {
			t.Errorf("message %d says %d viewers", want, d.Title.Viewers)
		}
	}
}
