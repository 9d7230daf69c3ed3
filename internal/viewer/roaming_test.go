package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// socket of a viewer to the tracker.
func (s *scene) socket(a *actor) *simSocket { return s.tracker.sessions[a.title.welcomed.Session] }

// moves takes a viewer to another network: its links, and its socket, carry nothing any more, and no peer is told.
func (s *scene) moves(a *actor) {
	a.node.net++
	s.socket(a).mute = true
	s.tracker.from += "'"
}

// linked counts a viewer's links that carry something.
func (a *actor) linked() (n int) {
	for _, id := range a.title.links.order {
		e := a.title.links.entries[id]
		if l, ok := e.conn.(*simLink); ok && e.state == linkOpen && l.other != nil && !l.cut() {
			n++
		}
	}
	return n
}

// avoids counts the peers that a viewer does not link for a while.
func (a *actor) avoids() (n int) {
	for _, until := range a.title.links.avoided.until {
		if until.Sub(a.title.loop.Now()) > offersTime {
			n++
		}
	}
	return n
}

// roaming is a scene with a real swarm at the tracker, and three viewers that are linked with each other and the seed.
func roaming(t *testing.T) *scene {
	s := newScene(t, fourSeconds(60, 500_000))
	s.drowsy = true
	s.tracker.home, s.tracker.from = swarm.New(), "home"
	for range 3 {
		s.viewer(fast, nil)
		s.w.run(8 * time.Second)
	}
	for i, a := range s.viewers {
		if a.linked() != 3 {
			t.Fatalf("viewer %d has %d links", i, a.linked())
		}
	}
	return s
}

func TestAViewerThatMovesIsLinkedAgainWithinFiveSeconds(t *testing.T) {
	for i, name := range []string{"the first", "the second", "the last"} {
		t.Run(name, func(t *testing.T) {
			s := roaming(t)
			mover := s.viewers[i]
			before := mover.now()
			s.w.run(1500 * time.Millisecond) // it is a viewer that asks for something that notices
			s.moves(mover)
			s.w.run(5 * time.Second)
			if n := mover.linked(); n != 3 {
				t.Errorf("five seconds later it has %d links that work", n)
			}
			s.w.run(30 * time.Second)
			after := mover.now()
			if after.Session != before.Session || after.Reconnects != before.Reconnects+1 || s.tracker.next != 3 {
				t.Errorf("%d reconnects, %d sessions", after.Reconnects-before.Reconnects, s.tracker.next)
			}
			if after.Stats.Bytes["peer"]+after.Stats.Bytes["seed"] <= before.Stats.Bytes["peer"]+before.Stats.Bytes["seed"] {
				t.Error("no peer serves it any more")
			}
			for j, a := range s.viewers {
				if sum := a.now(); a.avoids() > 0 || sum.LinksClosed[peer.CloseStalled] > 0 || sum.Stats.Stalls > 0 || a.linked() != 3 {
					t.Errorf("viewer %d avoids %d, closed %v, %d stalls, has %d links", j, a.avoids(), sum.LinksClosed, sum.Stats.Stalls, a.linked())
				}
			}
		})
	}
}

// A viewer that its machine tells of the move does not wait for silence.
func TestAViewerToldThatItMovedIsLinkedAgainAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene, a *actor)
		opened int // anew
	}{
		"to another network":            {func(s *scene, a *actor) { s.moves(a) }, 3},
		"to where its links still work": {func(s *scene, a *actor) { s.tracker.from += "'" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := roaming(t)
			mover := s.viewers[1]
			before := mover.now()
			c.change(s, mover)
			mover.Moved()
			s.w.run(1500 * time.Millisecond)
			after := mover.now()
			if mover.linked() != 3 || after.LinksOpened-before.LinksOpened != c.opened || after.Reconnects != before.Reconnects+1 {
				t.Errorf("%d links work, %d were opened, %d reconnects", mover.linked(), after.LinksOpened-before.LinksOpened, after.Reconnects-before.Reconnects)
			}
			s.w.run(20 * time.Second)
			if n := mover.now().Reconnects - before.Reconnects; n != 1 {
				t.Errorf("%d reconnects for one move", n)
			}
		})
	}
}

// The machine may tell before anything has begun.
func TestAViewerThatMovesAsItBeginsPlays(t *testing.T) {
	s := newScene(t, fourSeconds(5, 750_000))
	s.viewer(fast, nil).Moved()
	s.w.run(30 * time.Second)
	s.check()
}

// TestAPeerThatOfferedOnceIsNotRememberedForGood: but a banned peer is, however many come.
func TestAPeerThatOfferedOnceIsNotRememberedForGood(t *testing.T) {
	w := newWorld()
	l := newLinks(w, nil, nil, nil)
	bad := signal.ID{0xff}
	l.avoid(bad, forever)
	most := 0
	for n := range 10_000 {
		l.avoid(signal.ID{byte(n >> 8), byte(n), 1}, offersTime)
		most = max(most, len(l.avoided.until))
		w.run(50 * time.Millisecond)
	}
	if most > 2*manyRemembered || !l.avoided.holds(bad) {
		t.Errorf("%d are remembered at a time, the banned one: %t", most, l.avoided.holds(bad))
	}
}

// A peer that has just offered is not heard again for two seconds, and waits for that.
func TestAViewerThatMovesRightAfterItCameIsLinkedAgain(t *testing.T) {
	s := roaming(t)
	late := s.viewer(fast, nil)
	s.w.run(time.Second)
	if late.linked() != 4 {
		t.Fatalf("%d links", late.linked())
	}
	s.moves(late)
	late.Moved()
	s.w.run(4 * time.Second)
	if sum := late.now(); late.linked() != 4 || len(sum.Stats.LinkFailures) > 0 {
		t.Errorf("%d links work, failures %v", late.linked(), sum.Stats.LinkFailures)
	}
}

// sleeper is the loop of a machine that may sleep: what would run then runs when it wakes.
type sleeper struct {
	*world
	until time.Time
}

func (s *sleeper) awake(f func()) func() {
	return func() {
		if s.now.Before(s.until) {
			s.at(s.until, f)
		} else {
			f()
		}
	}
}

func (s *sleeper) Post(f func()) { s.world.Post(s.awake(f)) }

func (s *sleeper) After(d time.Duration, f func()) (stop func()) {
	stopped := false
	s.world.After(d, s.awake(func() {
		if !stopped {
			f()
		}
	}))
	return func() { stopped = true }
}

func (s *sleeper) Go(work, done func()) { s.Post(func() { work(); s.Post(done) }) }

// One sleeps for a minute. The other leaves it alone, blames it for nothing, and links it again when it wakes.
func TestAViewerThatSleptIsWelcomeAtOnce(t *testing.T) {
	s := roaming(t)
	lazy := s.viewers[0]
	socket := s.socket(lazy)
	lazy.node.net++ // its line is dark
	socket.mute = true
	lazy.sleeper.until = s.w.now.Add(time.Minute)
	s.w.After(30*time.Second, func() {
		s.tracker.gone(socket)
		socket.events.Lost()
	})
	s.w.run(50 * time.Second)
	others := s.viewers[1:]
	for i, a := range others {
		if sum := a.now(); sum.LinksClosed[peer.CloseTimeout] != 1 || sum.Reconnects > 0 || a.linked() != 2 {
			t.Errorf("viewer %d: closed %v, %d reconnects, %d links", i+1, sum.LinksClosed, sum.Reconnects, a.linked())
		}
	}
	s.w.run(15 * time.Second)
	for i, a := range s.viewers {
		if sum := a.now(); a.avoids() > 0 || sum.LinksClosed[peer.CloseStalled] > 0 || sum.Stats.LinkFailures["timeout"] > 0 || a.linked() != 3 {
			t.Errorf("five seconds after it woke viewer %d avoids %d, closed %v, failures %v, has %d links", i, a.avoids(), sum.LinksClosed, sum.Stats.LinkFailures, a.linked())
		}
	}
}

// Three stalls in a row end a link. They count against the peer only if it showed that it is there.
func TestSilenceIsBlamedOnAPeerThatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		served, speaks, adrift bool
		want                   peer.CloseReason
	}{
		"served, and is gone":        {served: true, want: peer.CloseTimeout},
		"served, and says something": {served: true, speaks: true, want: peer.CloseStalled},
		"never served, and is gone":  {want: peer.CloseStalled},
		"never served, while adrift": {adrift: true, want: peer.CloseTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			s := roaming(t)
			a, b := s.viewers[0], s.viewers[2]
			if c.served {
				a, b = b, a
			}
			r := a.title.engine.peers.byID[b.now().Session]
			if came := r.download.Came(); came >= peer.PieceSize != c.served {
				t.Fatalf("%d bytes came", came)
			}
			if c.adrift {
				r.e.silence.driftedAt = s.w.now
			}
			for range mostStalls - 1 {
				r.patience.stalled()
			}
			if c.speaks {
				r.came.Add(1)
			}
			r.patience.stalled()
			s.w.run(0)
			if sum := a.now(); sum.LinksClosed[c.want] != 1 || (a.avoids() == 1) != (c.want == peer.CloseStalled) {
				t.Errorf("closed %v, avoids %d", sum.LinksClosed, a.avoids())
			}
		})
	}
}

// A peer may be named while there is a link to it that only later shows to be dead. It is offered to then.
func TestAnIntroductionCountsWhenTheLinkTurnsOutDead(t *testing.T) {
	for name, named := range map[string]bool{"named": true, "not named": false} {
		t.Run(name, func(t *testing.T) {
			s := roaming(t)
			a, b := s.viewers[2], s.viewers[0]
			id := b.title.welcomed.Session
			if named {
				s.socket(a).push(&signal.Introduce{Swarm: swarmID, Peers: []signal.Peer{{Peer: id, Role: "viewer"}}})
			}
			s.w.run(time.Second)
			if a.linked() != 3 {
				t.Fatal("a link that works was given up")
			}
			a.title.links.find(id).conn.Close(peer.CloseFailed, nil)
			s.w.run(time.Second)
			if now := a.linked() == 3; now != named {
				t.Errorf("linked again: %v", now)
			}
		})
	}
}

// An offer that no peer answers says nothing of the way there.
func TestAnOfferWithoutAnAnswerIsNoFailedPair(t *testing.T) {
	s := roaming(t)
	a := s.viewers[0]
	s.socket(a).push(&signal.Introduce{Swarm: swarmID, Peers: []signal.Peer{{Peer: signal.ID{9}, Role: "viewer"}}})
	s.w.run(establishTime + time.Second)
	if f := a.now().Stats.LinkFailures; f["gone"] != 1 || len(f) != 1 {
		t.Errorf("failures %v", f)
	}
}

// A peer that closes a link which has not opened yet could be reached: that says nothing of the way there.
func TestAPeerThatLeavesWhileALinkOpensIsNoFailedPair(t *testing.T) {
	for reason, want := range map[peer.CloseReason]string{peer.CloseClosed: "gone", peer.CloseFailed: "timeout"} {
		s := roaming(t)
		l := s.viewers[0].title.links
		said := &refusals{linkEvents: l.events}
		l.events = said
		a := l.newLink(signal.ID{1}, signal.ID{9}, "viewer", false)
		l.add(a)
		a.closed(reason)
		a.closed(reason)
		if f := s.viewers[0].now().Stats.LinkFailures; len(said.reasons) != 1 || said.reasons[0] != want || f[want] != 1 || len(f) != 1 {
			t.Errorf("%s: %v is said, and counted is %v", reason, said.reasons, f)
		}
	}
}

// refusals notes with which reasons offers are turned down.
type refusals struct {
	linkEvents
	reasons []string
}

func (r *refusals) signalTo(to, link signal.ID, m signal.Signal) {
	if m.Kind == "fail" {
		r.reasons = append(r.reasons, m.Reason)
	}
	r.linkEvents.signalTo(to, link, m)
}

// Trackers do not introduce a pair again of which one has refused the other. A peer that may come later is only busy.
func TestOnlyABannedPeerIsRefused(t *testing.T) {
	s := roaming(t)
	l := s.viewers[0].title.links
	for i, c := range []struct {
		want, role string
		avoid      time.Duration
	}{{"busy", "full", silentTime}, {"refused", "full", forever}, {"busy", "off", 0}} {
		said := &refusals{linkEvents: l.events}
		l.events = said
		from := signal.ID{9, byte(i)}
		l.terms.role = c.role
		l.avoid(from, c.avoid)
		l.signal(&signal.Signal{Swarm: swarmID, From: from, Link: signal.ID{1}, Kind: "offer", SDP: "v=0", Plan: &signal.Plan{V: 1, Data: 1, Message: 16384}})
		if len(said.reasons) != 1 || said.reasons[0] != c.want {
			t.Errorf("%v for a peer that is left alone for %v, by a viewer that is %s", said.reasons, c.avoid, c.role)
		}
	}
}

// After an outage a pong comes late, and with it what was asked and taken back meanwhile: that proves nothing.
func TestALatePongIsNoProofOfMuteness(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			s := roaming(t)
			a := s.viewers[0]
			r := a.title.engine.peers.byID[s.viewers[2].now().Session]
			r.patience.stalled()
			for range 2 { // the ping with the stall, and the one after
				took := 50 * time.Millisecond
				if late {
					took = latePong + time.Millisecond
				}
				r.patience.pong(r.patience.mute.nonce, took)
				if r.patience.stopMute(); !r.gone {
					r.patience.probe()
				}
			}
			if r.gone == late {
				t.Errorf("left: %v", r.gone)
			}
		})
	}
}
