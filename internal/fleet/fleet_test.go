package fleet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var (
	own = sibling.FleetID{7}
	me  = signal.ID{1}
)

// hall is a fleet as one member sees it: the others answer what the test says. It satisfies Siblings and seed.Local.
type hall struct {
	*Member
	now     time.Time
	rec     *testkit.Recorder
	answers map[signal.ID]error // nil: it has the segment
	slow    map[signal.ID]bool  // until the question is given up
	asked   []signal.ID
	held    []bool // whether each question was for what is held
}

func newHall(change func(*Config)) *hall {
	h := &hall{now: time.Unix(1_790_000_000, 0), rec: &testkit.Recorder{}, answers: map[signal.ID]error{}, slow: map[signal.ID]bool{}}
	cfg := Config{ID: own, Address: netip.MustParseAddrPort("10.0.0.1:4602"), Siblings: h, Metrics: h.rec, Now: func() time.Time { return h.now }}
	if change != nil {
		change(&cfg)
	}
	h.Member = New(cfg)
	h.Join(h, 1<<30)
	return h
}

func (*hall) ID() signal.ID                                    { return me }
func (*hall) Title(swarm.ID) (bus.Title, bool)                 { return bus.Title{}, false }
func (*hall) Follow(context.Context, *bus.Title) seed.Followed { return nil }

func (h *hall) Ask(ctx context.Context, from signal.ID, to Sibling, q sibling.Question, accept func([]byte, int) error) (*sibling.Answer, error) {
	h.asked, h.held = append(h.asked, to.ID), append(h.held, q.Held)
	if h.slow[to.ID] {
		<-ctx.Done()
		return nil, &AskError{OutcomeSlow, ctx.Err()}
	}
	if err := h.answers[to.ID]; err != nil {
		return nil, err
	}
	a := &sibling.Answer{Certificate: []byte("certificate"), Data: []byte("data")}
	return a, accept(a.Certificate, len(a.Data))
}

func (h *hall) Wanted(context.Context, signal.ID, Sibling) (sibling.Wanted, error) {
	return sibling.Wanted{}, nil
}

// beat has the member hear a seed; false: it was known.
func (h *hall) beat(n byte, change func(*bus.SeedBeat)) bool {
	m := &bus.SeedBeat{Seed: signal.ID{n}, Fleet: &bus.SeedFleet{ID: own[:], Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 4602).String()}}
	if change != nil {
		change(m)
	}
	return h.Heard(m)
}

// wants is a segment that the others own, in the order of their rank; keep is what becomes of it.
func (h *hall) wants(keep error, seeds ...signal.ID) (w seed.Wanted, rank []signal.ID) {
	w = seed.Wanted{Seeds: seeds, Accept: func([]byte, int) error { return nil }, Keep: func([]byte) error { return keep }}
	for n := range 200 {
		w.Segment = segment.ID{9, byte(n)}
		rank = nil
		for _, one := range h.known.rank(w.Segment, seeds) {
			rank = append(rank, one.ID)
		}
		if len(rank) < 2 || rank[len(rank)-1] == me {
			break
		}
	}
	return w, rank
}

func failure(o Outcome) error { return &AskError{o, errors.New("a test says so")} }

// TestSiblingsAreKnownByTheirBeats: of the own fleet, as long as they beat.
func TestSiblingsAreKnownByTheirBeats(t *testing.T) {
	h := newHall(nil)
	if !h.beat(2, nil) || h.beat(2, nil) || h.beat(1, nil) {
		t.Error("a newcomer is one once, and the seed is none to itself")
	}
	if h.beat(3, func(m *bus.SeedBeat) { m.Fleet = nil }) || h.beat(4, func(m *bus.SeedBeat) { m.Fleet.ID = []byte("anothers") }) || h.Expire() != 2 {
		t.Errorf("%d of the fleet", h.Expire())
	}
	h.beat(5, nil)
	if h.beat(5, func(m *bus.SeedBeat) { m.Gone = true }); h.Expire() != 2 {
		t.Error("one that said goodbye is asked")
	}
	for range (siblingLives + time.Second) / time.Second { // one that slept itself judges no other
		h.now = h.now.Add(time.Second)
		h.Expire()
	}
	if h.Expire() != 1 || len(h.known.all) != 0 {
		t.Error("one that does not beat is asked")
	}
	if a, err := h.Segment(t.Context(), seed.Wanted{Seeds: []signal.ID{me, {2}}}); a != nil || err != nil || len(h.asked) > 0 {
		t.Error("a seed that is alone asks")
	}
}

// TestTheNextInRankIsAskedWhereAnOwnerIsGone, and where it is not, the origin.
func TestTheNextInRankIsAskedWhereAnOwnerIsGone(t *testing.T) {
	all := []signal.ID{me, {2}, {3}, {4}, {5}}
	for name, c := range map[string]struct {
		first error
		keep  error
		asked int // siblings
		has   bool
		want  error
	}{
		"it has the segment":           {nil, nil, 1, true, nil},
		"it cannot be reached":         {failure(OutcomeUnreachable), nil, 2, true, nil},
		"it is busy":                   {failure(OutcomeRefused), nil, 1, false, failure(OutcomeRefused)},
		"it lies":                      {failure(OutcomeInvalid), nil, 1, false, failure(OutcomeInvalid)},
		"what it has is withdrawn":     {nil, seed.ErrStale, 1, false, seed.ErrStale},
		"what it has differs from own": {nil, seed.ErrDiffers, 1, false, seed.ErrDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(nil)
			for n := range byte(4) {
				h.beat(2+n, nil)
			}
			w, rank := h.wants(c.keep, all...)
			h.answers[rank[0]] = c.first
			a, err := h.Segment(t.Context(), w)
			if (a != nil) != c.has || !slices.Equal(h.asked, rank[:c.asked]) || slices.Contains(h.held, true) {
				t.Errorf("asked %v of %v", h.asked, rank)
			}
			var got, want *AskError
			if errors.As(c.want, &want) {
				if !errors.As(err, &got) || got.Outcome != want.Outcome {
					t.Errorf("%v", err)
				}
			} else if !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAnOwnerAsksForWhatIsHeldAlone: never to fetch, and for nothing that it holds itself.
func TestAnOwnerAsksForWhatIsHeldAlone(t *testing.T) {
	h := newHall(nil)
	for n := range byte(8) {
		h.beat(2+n, nil)
		h.answers[signal.ID{2 + n}] = failure(OutcomeRefused)
	}
	var w seed.Wanted
	for n := byte(0); ; n++ {
		w, _ = h.wants(nil)
		w.Segment, w.Seeds = segment.ID{n}, []signal.ID{me, {2}, {3}}
		if h.known.rank(w.Segment, w.Seeds)[0].ID == me {
			break
		}
	}
	if a, err := h.Segment(t.Context(), w); a != nil || err != nil || len(h.asked) != 2*maxHolders || slices.Contains(h.held, false) {
		t.Errorf("%v were asked, %v for what they hold", h.asked, h.held)
	}
	h.asked = nil
	w.Have = &sibling.Content{}
	if a, _ := h.Segment(t.Context(), w); a != nil || len(h.asked) > 0 {
		t.Error("siblings are asked whether the origin's bytes are still the same")
	}
}

// TestASiblingThatCannotBeReachedOwnsNothing: until it beats, and after more failures in a row for longer.
func TestASiblingThatCannotBeReachedOwnsNothing(t *testing.T) {
	h := newHall(nil)
	h.beat(2, nil)
	seeds := []signal.ID{me, {2}}
	owns := func() bool { return len(h.known.rank(segment.ID{1}, seeds)) == 2 }
	for n, silent := range []time.Duration{0, shunLeast, 2 * shunLeast, 4 * shunLeast} {
		first := h.known.asked(signal.ID{2}, true, h.now)
		if first != (n == 0) || owns() {
			t.Fatalf("failure %d: first %v, owns %v", n, first, owns())
		}
		for began := h.now; ; h.now = h.now.Add(time.Second) {
			h.beat(2, nil)
			if owns() {
				if got := h.now.Sub(began); got < silent || got > silent+time.Second {
					t.Errorf("failure %d: it owns something after %s", n, got)
				}
				break
			}
		}
	}
	if h.known.asked(signal.ID{2}, false, h.now); h.known.asked(signal.ID{2}, true, h.now) != true {
		t.Error("an answer does not end the row of failures")
	}
}

// TestAQuestionEndsInTime: with the owner's patience, or when the seed does not want to wait for the fleet any more.
func TestAQuestionEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(func(c *Config) { c.Now = time.Now })
		h.beat(2, nil)
		h.beat(3, nil)
		w, rank := h.wants(nil, me, signal.ID{2}, signal.ID{3})
		h.slow[rank[0]] = true
		began := time.Now()
		var failed *AskError
		if _, err := h.Segment(t.Context(), w); !errors.As(err, &failed) || failed.Outcome != OutcomeSlow || time.Since(began) != ownerAnswer {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		if _, err := h.Segment(ctx, w); !errors.As(err, &failed) || failed.Outcome != OutcomeSlow || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if h.Expire() != 3 {
			t.Error("a sibling that is slow is taken for gone")
		}
		if h.rec.Value(mSiblingRequests, string(OutcomeSlow)) != 2 {
			t.Error("not counted")
		}
	})
}

// TestASeedLingersForSiblingsAlone.
func TestASeedLingersForSiblingsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(func(c *Config) { c.Linger = 3 * time.Second })
		began := time.Now()
		if h.Linger(); time.Since(began) > 0 {
			t.Error("it waits for no sibling")
		}
		h.beat(2, nil)
		if h.Linger(); time.Since(began) != 3*time.Second {
			t.Error("it does not wait")
		}
		if h.Drain(); len(h.known.rank(segment.ID{1}, []signal.ID{me, {2}})) != 1 {
			t.Error("it owns segments while it drains")
		}
	})
}
