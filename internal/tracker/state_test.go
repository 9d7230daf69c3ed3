package tracker

import (
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestSessionsAreReplacedAndRefused: the later of two sessions with one ID holds, the earlier one takes nothing out, and a closed part
// takes none in.
func TestSessionsAreReplacedAndRefused(t *testing.T) {
	ss := sessions{all: map[signal.ID]*session{}}
	first, second, late := &session{id: signal.ID{1}}, &session{id: signal.ID{1}}, &session{id: signal.ID{2}}
	if old, ok := ss.enter(first); old != nil || !ok {
		t.Error("the first session was refused, or replaced another")
	}
	if old, ok := ss.enter(second); old != first || !ok {
		t.Error("the second session did not replace the first")
	}
	if ss.leave(first) || ss.session(signal.ID{1}) != second {
		t.Error("the replaced session took the other one out")
	}
	if open := ss.close(); len(open) != 1 || open[0] != second {
		t.Errorf("%d sessions were open", len(open))
	}
	if _, ok := ss.enter(late); ok || ss.count() != 1 {
		t.Error("a closed part took a session in")
	}
	if !ss.leave(second) || ss.count() != 0 {
		t.Error("a session does not leave")
	}
}

// TestEachSessionHasOneTurn: all turns together reach each session once, and some are no more than asked for.
func TestEachSessionHasOneTurn(t *testing.T) {
	ss := sessions{all: map[signal.ID]*session{}}
	for i := range 100 {
		ss.enter(&session{id: signal.ID{byte(i), byte(i)}})
	}
	seen := map[*session]int{}
	for turn := range turns {
		for _, s := range ss.some(math.MaxInt, turn, turns) {
			seen[s]++
		}
	}
	for s, n := range seen {
		if n != 1 {
			t.Errorf("session %s has %d turns", s.id.Hex(), n)
		}
	}
	if len(seen) != 100 || len(ss.snapshot()) != 100 || len(ss.some(7, 0, 1)) != 7 {
		t.Errorf("%d of 100 sessions have a turn", len(seen))
	}
}

// TestAPermitLapsesOnceAndThenEnds: the viewer is told when its token runs out, not again within the grace, and a new token undoes it.
func TestAPermitLapsesOnceAndThenEnds(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	p := permit{cfg: &Config{Tokens: anyKey{}, TokenGrace: 10 * time.Second}, grant: &access.Grant{Subject: "s", Expires: now}}
	step := func(at time.Duration, tell, over bool) {
		t.Helper()
		if gotTell, gotOver := p.lapse("demo", now.Add(at)); gotTell != tell || gotOver != over {
			t.Errorf("after %v: tell %v, over %v", at, gotTell, gotOver)
		}
	}
	step(-time.Second, false, false)
	step(0, true, false)
	step(9*time.Second, false, false)
	refused := errors.New("no")
	if err := p.exchange(&access.Grant{Subject: "s", Expires: now.Add(time.Hour)}, func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("a token that the check refuses: %v", err)
	}
	if err := p.exchange(&access.Grant{Subject: "other"}, func() error { return nil }); !errors.Is(err, errOtherSubject) {
		t.Errorf("another subject's token: %v", err)
	}
	step(10*time.Second, true, true)
	if err := p.exchange(&access.Grant{Subject: "s", Expires: now.Add(time.Hour)}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	step(11*time.Second, false, false)
	step(time.Hour, true, false)
}

// anyKey has every key in force.
type anyKey struct{ noKeys }

func (anyKey) Holds(string, string) bool { return true }

// TestSlackGrowsBackWithTime: what one report has spent the next one has not.
func TestSlackGrowsBackWithTime(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	s := slack{reportSlack, now}
	for _, c := range []struct{ after, want time.Duration }{{0, reportSlack}, {0, 0}, {time.Second, time.Second / 2}, {time.Hour, reportSlack}} {
		now = now.Add(c.after)
		if got := s.take(now); got != c.want {
			t.Errorf("%v later: %v, want %v", c.after, got, c.want)
		}
	}
}

// TestAllowancesAreOfAClockThatIsNotSet: what is noted of what was said is how long the tracker has run, and not what its clock shows.
func TestAllowancesAreOfAClockThatIsNotSet(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	s := n.enters(netip.MustParseAddr("10.0.1.1"))
	t.Cleanup(func() { s.End(nil) })
	peer := newID()
	s.peers.meet(bus.Target{Peer: peer, Role: "viewer", Tracker: n.id})
	said := s.peers.says(peer, 1) + s.peers.hears(&bus.Signal{Tracker: n.id, Signal: signal.Signal{From: peer, Role: "viewer", Kind: "end"}}, 1)
	most := time.Since(n.started) + time.Second // a message of one byte takes less
	for _, of := range []spent{s.peers.said, s.peers.known[peer].said, s.peers.heard.all} {
		if said != "" || of.messages <= 0 || time.Duration(of.messages) > most {
			t.Errorf("refused %q; spent until %s, of a tracker that runs for less than %s", said, time.Duration(of.messages), most)
		}
	}
}

// TestAReportIsNewsOnce: a peer is blamed as often as its viewer likes, and is said in the log once.
func TestAReportIsNewsOnce(t *testing.T) {
	as := acquaintances{known: map[signal.ID]*acquaintance{}}
	seed := signal.ID{1}
	as.meet(bus.Target{Peer: seed, Role: "seed"})
	for _, c := range []struct {
		peer  signal.ID
		blame bool
		role  string
		news  bool
	}{{seed, false, "seed", false}, {seed, true, "seed", true}, {seed, true, "seed", false}, {signal.ID{2}, true, "", false}} {
		if role, news := as.blames(c.peer, c.blame); role != c.role || news != c.news {
			t.Errorf("%+v: role %q, news %v", c, role, news)
		}
	}
}

// TestATrackerWithoutWebTorrentDropsItsMessages: what another tracker says of sockets of the protocol has no effect.
func TestATrackerWithoutWebTorrentDropsItsMessages(t *testing.T) {
	n := newWorld(t).tracker(nil)
	n.handle(&bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{Op: bus.TorrentAnew, Tracker: newID()}})
	n.undelivered(parcel{to: newID(), tracker: &bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{Op: bus.TorrentAnew}}})
	n.viewer("").join()
}
