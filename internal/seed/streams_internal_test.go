package seed

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestStreamsOfASiteAreBounded: each keeps requests open at the origin. One that finds no place is followed when another is left.
func TestStreamsOfASiteAreBounded(t *testing.T) {
	shelves := newShelves(t, 1<<20, 10)
	shelves.site.followed = newStreamPlaces(1)
	manifest := shelves.put(1, guest(1, "a"), 0)
	ix := shelves.peek(manifestID{"demo", manifest})
	var ids []segment.ID
	for _, path := range []string{"/films/low.m3u8", "/films/high.m3u8"} {
		ix.take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2, Blocks: true}}, shelves.now)
		ids = append(ids, segment.NewID("demo", segment.WholeName(path)))
	}
	ix.take("/films/slow.m3u8", &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2}}, shelves.now)
	ids = append(ids, segment.NewID("demo", "/films/slow.m3u8"))

	work := newTasks()
	t.Cleanup(work.wait)
	silent := slog.New(slog.DiscardHandler)
	all := newStreams(signal.ID{9}, &supply{}, work, metric.Discard, silent, time.Now)
	v := &viewerLink{caller: caller{title: newTitle(shelves.catalog, shelves.site, signal.ID{7}, manifest), from: guest(1, "a")}}
	all.linked(v)
	s := v.sharing.Load()
	for _, id := range ids {
		s.heard(v, peer.Follow{Stream: id, On: true})
	}
	if n := s.review(); n != 1 {
		t.Fatalf("%d streams are followed", n)
	}
	for id := range s.followed {
		s.heard(v, peer.Follow{Stream: id})
		if s.followed[id] != nil {
			t.Error("a stream is followed that no viewer follows")
		}
	}
	for free := false; !free; runtime.Gosched() { // until the one before has gone
		var payer party
		if payer, free = shelves.site.followed.take([]party{{}}); free {
			shelves.site.followed.leave(payer)
		}
	}
	if n := s.review(); n != 1 || s.followed[ids[2]] != nil {
		t.Errorf("%d streams are followed; one whose origin does not let requests wait: %v", n, s.followed[ids[2]] != nil)
	}
	all.gone(v)
	if len(all.all) > 0 || len(s.followed) > 0 {
		t.Error("streams are followed without viewers")
	}
}

// TestAViewerThatComesAndGoesEndsNoOthersLinks: each time that a stream is followed or left, all links of its title are told. A viewer that
// says more than 200 messages a second for long loses its link, and the seed must not say as many to others because of it.
func TestAViewerThatComesAndGoesEndsNoOthersLinks(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		other := newDesk(d.t, 1<<20)
		other.title, other.from.session = d.title, signal.ID{5}
		d.all.streams.linked(other.viewerLink)
		other.wire.take()
		d.serves(func(ctx context.Context, _ int, _ func([]byte) error) error { return silentUntil(ctx) })
		const seconds, flips = 10, 100
		for i := range seconds * flips {
			d.s.heard(d.viewerLink, peer.Follow{Stream: d.id})
			synctest.Wait() // the stream's place is given back
			d.s.heard(d.viewerLink, peer.Follow{Stream: d.id, On: true})
			if d.until(float64(i+1) / flips); i%flips == 0 {
				d.s.review()
			}
		}
		d.until(seconds + 1)
		if n := d.s.review(); n != 1 {
			t.Errorf("%d streams are followed once it has stayed", n)
		}
		d.until(seconds + 3) // the next segment has come
		told := 0
		for _, m := range other.wire.take() {
			if _, is := m.(peer.Follow); is {
				told++
			}
		}
		if told == 0 || told > 2*seconds+2 {
			t.Errorf("in %d s another viewer was told %d times what the seed follows", seconds+3, told)
		}
		d.s.heard(d.viewerLink, peer.Follow{Stream: d.id})
	})
}

// TestAnMPDIsFollowedThroughAGap: what comes behind it is in an MPD that is not read yet.
func TestAnMPDIsFollowedThroughAGap(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.serves(func(_ context.Context, _ int, take func([]byte) error) error { return take(smallChunk(1)) })
		ix, ended := d.title.index(), playlist.Chunked{}
		ix.listings.mu.Lock()
		ix.order[chunkedPath+".low"].chunked = &ended
		ix.listings.mu.Unlock()
		c := d.title.catalog
		wanted := func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.of(ix).wanted
		}
		c.mu.Lock()
		c.of(ix).wanted = time.Time{}
		c.mu.Unlock()
		if d.until(9); wanted().IsZero() {
			t.Error("the MPD is not wanted")
		}
		d.lists(0)
		d.until(12.05)
		d.wants("behind the gap", "2.0 2.255 3.0 3.255")
		d.s.heard(d.viewerLink, peer.Follow{Stream: d.id})
	})
}

// TestAPartThatCannotBePaidForIsNotTold, and none of its pieces is sent: without its certificate they are of no use.
func TestAPartThatCannotBePaidForIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1<<20)
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
		d.all.streams.linked(d.viewerLink)
		s := d.viewerLink.sharing.Load()
		to := d.from.session
		certificate := make([]byte, 1000)
		s.say(parts.Say{To: to, Message: peer.Part{Push: 1, Raw: certificate}})
		if said := d.wire.take(); len(said) != 1 {
			t.Fatalf("said %v", said)
		}
		d.wire.fill(true)
		s.say(parts.Say{To: to, Message: peer.Part{Push: 3, Raw: certificate}})
		if d.wire.fill(false); len(d.wire.take()) > 0 {
			t.Error("a certificate is sent to a viewer that does not read")
		}
		for d.supply.budgets.maySend(d.conn.payer(), len(certificate)) {
		}
		s.say(parts.Say{To: to, Message: peer.Part{Push: 2, Raw: certificate}})
		_, upload := d.conn.parts()
		s.push(parts.Push{To: to, Request: peer.PushedID(2, 0), Data: certificate})
		if said := d.wire.take(); len(said) > 0 || upload.Len() > 0 {
			t.Errorf("said %v, %d pieces wait", said, upload.Len())
		}
		s.push(parts.Push{To: to, Request: peer.PushedID(1, 0), Data: certificate})
		if upload.Len() != 1 {
			t.Errorf("%d pieces wait of a part that was told", upload.Len())
		}
	})
}

// TestANewLinkOwesNothingOfTheOneBefore: a viewer that does not read is not told parts. It comes back over another link, where pushes are
// counted anew, while the seed still has the old one.
func TestANewLinkOwesNothingOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, again := newDesk(t, 1<<20), newDesk(t, 1<<20)
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
		again.title = d.title
		d.all.streams.linked(d.viewerLink)
		s, to := d.viewerLink.sharing.Load(), d.from.session
		d.wire.fill(true)
		s.say(parts.Say{To: to, Message: peer.Part{Push: 1, Raw: make([]byte, 1000)}})
		d.all.streams.linked(again.viewerLink)
		d.all.streams.gone(d.viewerLink)
		s.say(parts.Say{To: to, Message: peer.Part{Push: 1, Raw: make([]byte, 1000)}})
		s.push(parts.Push{To: to, Request: peer.PushedID(1, 0), Data: make([]byte, 1000)})
		_, upload := again.conn.parts()
		if said := again.wire.take(); len(said) != 1 || upload.Len() != 1 {
			t.Errorf("said %v, %d pieces wait of a part that was told", said, upload.Len())
		}
	})
}

// TestTheClockOfTheTreesIsNotSet: it counts from when the seed began.
func TestTheClockOfTheTreesIsNotSet(t *testing.T) {
	began := time.Now()
	s := newSharing(newStreams(signal.ID{9}, nil, nil, metric.Discard, silent, time.Now), nil)
	if at := s.micros(); at < 0 || at > time.Since(began).Microseconds() {
		t.Errorf("it is at %d µs after %v", at, time.Since(began))
	}
}

// hung is an origin that sends nothing.
type hung struct{}

func (hung) Get(ctx context.Context, _ Fetch) (*Fetched, error) { return nil, silentUntil(ctx) }

func (hung) Flow(ctx context.Context, _ Fetch, _ func([]byte) error) (*Fetched, error) {
	return nil, silentUntil(ctx)
}

// TestWhatIsNotWantedAnyMoreIsNoFailureOfTheOrigin: a stream is left with its last viewer, and the requests that the origin keeps for it
// end. One that outlasts its time is a failure.
func TestWhatIsNotWantedAnyMoreIsNoFailureOfTheOrigin(t *testing.T) {
	counts := &testkit.Recorder{}
	site := &siteState{origin: hung{}, name: "demo", sink: counts}
	left, leave := context.WithCancel(t.Context())
	leave()
	for ends, outcome := range map[context.Context]Outcome{left: OutcomeOK, over(t): OutcomeTimeout} {
		ends, cancel := context.WithTimeout(ends, time.Minute)
		_, err1 := site.keep(ends, Fetch{})
		_, err2 := site.flow(ends, Fetch{}, func([]byte) error { return nil })
		cancel()
		if n := counts.Value(mOriginRequests, "demo", string(outcome)); err1 == nil || err2 == nil || n != 2 {
			t.Errorf("%v of 2 requests are counted as %s", n, outcome)
		}
	}
}

// over is a context whose time is over.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	t.Cleanup(cancel)
	return ctx
}
