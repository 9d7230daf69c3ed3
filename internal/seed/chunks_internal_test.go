package seed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const chunkedPath = "/film/live.mpd"

// mill is an origin that has of each segment what a script says.
type mill struct {
	clock func() time.Duration // since the test began
	sized atomic.Bool          // it says lengths ahead

	mu    sync.Mutex
	has   script   // guarded by mu
	asked []string // guarded by mu: segment and when
}

// script says what an origin does with a request for segment s.
type script func(ctx context.Context, s int, take func([]byte) error) error

func (o *mill) serves(has script) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.has = has
}

func (o *mill) Get(context.Context, Fetch) (*Fetched, error) { panic("a segment is read as it comes") }

func (o *mill) Flow(ctx context.Context, f Fetch, take func([]byte) error) (*Fetched, error) {
	var s, length int
	_, _ = fmt.Sscanf(f.Path, "/film/%d.m4s", &s)
	o.mu.Lock()
	o.asked = append(o.asked, fmt.Sprintf("%d at %.1f", s, o.clock().Seconds()))
	has := o.has
	o.mu.Unlock()
	err := has(ctx, s, bounded(f, &length, take))
	if err != nil {
		return nil, err
	}
	return &Fetched{ObjectLength: int64(length), Sized: o.sized.Load()}, nil
}

var errNotYet = &FetchError{Outcome: OutcomeNotFound, Cause: errors.New("404 Not Found")}

// silentUntil waits as an origin does that sends nothing.
func silentUntil(ctx context.Context) error {
	<-ctx.Done()
	return &FetchError{Outcome: OutcomeTimeout, Cause: ctx.Err()}
}

// smallChunk is one of 17 bytes.
func smallChunk(b byte) []byte {
	return []byte{0, 0, 0, 8, 'm', 'o', 'o', 'f', 0, 0, 0, 9, 'm', 'd', 'a', 't', b}
}

// chunkDesk is a desk of a stream of chunks of 4 s, which can be asked for when they begin, and whose viewer follows it.
type chunkDesk struct {
	*desk
	*mill
	t      *testing.T
	s      *sharing
	id     segment.ID
	counts *testkit.Recorder
	begun  time.Time
	set    atomic.Int64 // the seed's clock, ns since it was right
	log    strings.Builder
}

// onChunks runs f with a clock that goes on by itself. The first segment that is asked for is 1, at 4 s.
func onChunks(t *testing.T, f func(d *chunkDesk)) { onChunksFrom(t, 0, f) }

// onChunksFrom is onChunks of a stream that began so many segments before.
func onChunksFrom(t *testing.T, before int, f func(d *chunkDesk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &chunkDesk{desk: newDesk(t, 1<<20), mill: &mill{}, t: t, counts: &testkit.Recorder{}, begun: time.Now()}
		d.mill.clock = func() time.Duration { return time.Since(d.begun) }
		d.title.site.origin, d.title.site.followed, d.title.site.sink = d.mill, newStreamPlaces(1), d.counts
		d.id = segment.NewID("demo", chunkedPath+".low")
		d.lists(-4 * time.Second * time.Duration(before))
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, d.counts, d.logs(), d.at)
		d.all.streams.linked(d.viewerLink)
		d.s = d.viewerLink.sharing.Load()
		d.s.heard(d.viewerLink, peer.Follow{Stream: d.id, On: true})
		f(d)
	})
}

// at is the seed's clock.
func (d *chunkDesk) at() time.Time {
	return d.now.Add(time.Since(d.begun) + time.Duration(d.set.Load()))
}

// lists has the MPD say that the stream began so long after the test did.
func (d *chunkDesk) lists(begun time.Duration) {
	m, _, err := playlist.List(d.title.site.rules, chunkedPath, nil, []byte(`<MPD type="dynamic" availabilityStartTime="`+d.now.Add(begun).UTC().Format(time.RFC3339Nano)+
		`"><Period start="PT0S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="4" availabilityTimeOffset="4" startNumber="0" media="$Number$.m4s"/>
		<Representation id="low"/></AdaptationSet></Period></MPD>`), d.now.Add(time.Since(d.begun)))
	if err != nil {
		d.t.Fatal(err)
	}
	rep := m.Representations[0]
	d.title.index().take(mpd.Name(chunkedPath, rep.ID), &rep.Listed, *d.now)
}

// until sleeps until so many seconds after the beginning.
func (d *chunkDesk) until(seconds float64) {
	sleep.For(d.t.Context(), time.Duration(seconds*float64(time.Second))-time.Since(d.begun))
	synctest.Wait()
}

// told are the turns that the viewer was told since the last call, and other segments' names are checked.
func (d *chunkDesk) told() (turns string) {
	for _, m := range d.wire.take() {
		if p, is := m.(peer.Part); is && p.Stream == d.id {
			turns += fmt.Sprintf(" %d.%d", p.Turn/256, p.Turn%256)
		}
	}
	return strings.TrimSpace(turns)
}

func (d *chunkDesk) wants(what, told string) {
	d.t.Helper()
	if got := d.told(); got != told {
		d.t.Errorf("%s: told %q, want %q", what, got, told)
	}
}

func (d *chunkDesk) counted(outcome string, want float64) {
	d.t.Helper()
	if got := d.counts.Value(mParts, "demo", outcome); got != want {
		d.t.Errorf("%v are counted as %s, want %v", got, outcome, want)
	}
}

// TestASegmentThatIsNotThereYetIsAskedForAgain, ever more seldom, until the next one can be asked for.
func TestASegmentThatIsNotThereYetIsAskedForAgain(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.serves(func(_ context.Context, s int, take func([]byte) error) error {
			if s == 1 {
				return errNotYet
			}
			return take(smallChunk(1))
		})
		d.until(8.05)
		d.mill.mu.Lock()
		defer d.mill.mu.Unlock()
		want := []string{"1 at 4.0", "1 at 4.1", "1 at 4.3", "1 at 4.7", "1 at 5.1", "1 at 5.5"}
		if len(d.asked) < len(want) || !slices.Equal(d.asked[:len(want)], want) || !slices.Equal(d.asked[len(d.asked)-2:], []string{"1 at 7.9", "2 at 8.0"}) {
			t.Errorf("asked for %v", d.asked)
		}
		d.wants("the next one", "2.0 2.255")
		d.counted(partFailed, 1)
	})
}

// TestTheEndOfASegmentIsToldBeforeTheNextOne: it may come later over another connection. One that does not come is waited for no longer than
// a chunk takes, and then not told.
func TestTheEndOfASegmentIsToldBeforeTheNextOne(t *testing.T) {
	for name, c := range map[string]struct {
		ends float64 // segment 1, s
		when float64 // the first chunk of segment 2 is told
		told string
	}{
		"sooner":   {7.9, 8.1, "1.255 2.0"},
		"later":    {8.5, 8.5, "1.255 2.0"},
		"too late": {9.5, 9.1, "2.0"},
		"never":    {99, 9.1, "2.0"},
	} {
		onChunks(t, func(d *chunkDesk) {
			var ended time.Duration
			d.serves(func(ctx context.Context, s int, take func([]byte) error) error {
				if s > 1 {
					sleep.For(ctx, 100*time.Millisecond)
				}
				if err := take(smallChunk(byte(s))); err != nil {
					return err
				}
				defer func() { ended = time.Since(d.begun) }()
				if sleep.For(ctx, time.Duration((c.ends-4)*float64(time.Second))) {
					return nil
				}
				return silentUntil(ctx)
			})
			d.until(4.05)
			d.wants(name, "1.0")
			d.until(c.when - 0.05)
			if before := d.told(); before != "" && before != "1.255" {
				t.Errorf("%s: told %q too early", name, before)
			} else {
				d.until(c.when + 0.05)
				if before != "" {
					before += " "
				}
				if got := before + d.told(); got != c.told {
					t.Errorf("%s: told %q, want %q", name, got, c.told)
				}
			}
			if c.ends > 9 && ended.Round(100*time.Millisecond) != 9100*time.Millisecond {
				t.Errorf("%s: the request ended at %v", name, ended)
			}
			d.s.heard(d.viewerLink, peer.Follow{Stream: d.id})
		})
	}
}

// TestAnOriginThatHangsIsLeftInTime: a segment is read for twice its duration at most.
func TestAnOriginThatHangsIsLeftInTime(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		under, most := 0, 0
		d.serves(func(ctx context.Context, _ int, _ func([]byte) error) error {
			d.mill.mu.Lock()
			under++
			most = max(most, under)
			d.mill.mu.Unlock()
			defer func() { d.mill.mu.Lock(); defer d.mill.mu.Unlock(); under-- }()
			return silentUntil(ctx)
		})
		d.until(30)
		d.mill.mu.Lock()
		if most > 3 || under > 2 {
			t.Errorf("%d requests at a time, %d are left", most, under)
		}
		d.mill.mu.Unlock()
		d.wants("nothing came", "")
		d.counted(partFailed, 5)
		d.s.heard(d.viewerLink, peer.Follow{Stream: d.id})
		synctest.Wait()
		d.mill.mu.Lock()
		defer d.mill.mu.Unlock()
		if under > 0 {
			t.Errorf("%d requests are left once no viewer follows the stream", under)
		}
		if place, ok := d.title.site.followed.take([]party{{}}); !ok {
			t.Error("the place of the stream is not given back")
		} else {
			d.title.site.followed.leave(place)
		}
	})
}

// TestASegmentOfManyChunksIsToldAsFarAsThereAreTurns, and its end.
func TestASegmentOfManyChunksIsToldAsFarAsThereAreTurns(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.serves(func(ctx context.Context, s int, take func([]byte) error) error {
			for n := range 300 {
				if err := take(smallChunk(byte(n))); err != nil {
					return err
				}
			}
			return nil
		})
		d.until(4.05)
		turns := strings.Fields(d.told())
		if len(turns) != 256 || turns[254] != "1.254" || turns[255] != "1.255" {
			t.Errorf("%d: %v", len(turns), turns)
		}
		if h := d.supply.shelf.cached(segment.NewID("demo", "/film/1.m4s")); h == nil || h.cert.Length != 300*17 {
			t.Errorf("the segment is not kept: %+v", h)
		}
	})
}

// TestAnOriginThatDoesNotWaitHasNoEnd: a server of plain files sends what a packager has written of the segment, with its length, and it ends
// between two chunks. Certified as the segment, it would be all that viewers get of it.
func TestAnOriginThatDoesNotWaitHasNoEnd(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.sized.Store(true)
		d.serves(func(_ context.Context, s int, take func([]byte) error) error {
			if s == 2 && d.clock() < 11500*time.Millisecond {
				return errNotYet
			}
			return take(smallChunk(byte(s)))
		})
		d.until(7)
		d.wants("at once", "1.0")
		d.until(11.95)
		d.wants("just before it is complete", "2.0")
		d.counted(partFailed, 2)
		for _, s := range []string{"1", "2"} {
			if d.supply.shelf.cached(segment.NewID("demo", segment.Name("/film/"+s+".m4s"))) != nil {
				t.Errorf("segment %s is kept", s)
			}
		}
		d.sized.Store(false)
		d.until(12.05)
		d.wants("of an origin that waits", "3.0 3.255")
	})
}

// TestAnOldSegmentIsNotTold: the stream has begun anew where its numbers go back by more than one, and goes on where they go back by one, as
// where a period does not fit to the one before.
func TestAnOldSegmentIsNotTold(t *testing.T) {
	for later, want := range map[float64]string{
		1: "1005.0 1005.255 1006.0 1006.255", 3.5: "1005.0 1005.255", 4: "1005.0 1005.255", 3001: "255.0 255.255 256.0 256.255",
	} {
		onChunksFrom(t, 1000, func(d *chunkDesk) {
			d.serves(func(_ context.Context, _ int, take func([]byte) error) error { return take(smallChunk(1)) })
			d.until(16.05)
			d.wants("at first", "1001.0 1001.255 1002.0 1002.255 1003.0 1003.255 1004.0 1004.255")
			d.lists(time.Duration(later*float64(time.Second)) - 4000*time.Second)
			for d.until(16.5); time.Since(d.begun) < 26*time.Second; d.until(time.Since(d.begun).Seconds() + 0.5) {
				d.s.review()
			}
			d.wants(fmt.Sprintf("%v s later", later), want)
		})
	}
}

// TestAClockThatIsSetDoesNotEndAStream.
func TestAClockThatIsSetDoesNotEndAStream(t *testing.T) {
	for by, want := range map[time.Duration]string{
		-time.Hour:             "103.0 103.255 104.0 104.255",
		-5 * time.Second:       "1002.0 1002.255 1003.0 1003.255",
		-50 * time.Millisecond: "1002.0 1002.255 1003.0 1003.255 1004.0 1004.255",
		5 * time.Second:        "1002.0 1002.255 1003.0 1003.255 1004.0 1004.255 1005.0 1005.255",
		time.Hour:              "1901.0 1901.255 1902.0 1902.255 1903.0 1903.255 1904.0 1904.255",
	} {
		onChunksFrom(t, 1000, func(d *chunkDesk) {
			d.serves(func(_ context.Context, _ int, take func([]byte) error) error { return take(smallChunk(1)) })
			d.until(4.02)
			d.wants("at first", "1001.0 1001.255")
			d.set.Store(int64(by))
			for d.until(4.5); time.Since(d.begun) < 17*time.Second; d.until(time.Since(d.begun).Seconds() + 0.5) {
				d.s.review()
			}
			d.wants(by.String(), want)
		})
	}
}

// TestOfATitleThatIsNotCertifiedNothingIsRead: it has too few viewers, or its viewers' budgets are spent.
func TestOfATitleThatIsNotCertifiedNothingIsRead(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.serves(func(_ context.Context, _ int, take func([]byte) error) error { return take(smallChunk(1)) })
		d.title.name(0, nil)
		d.until(4.05)
		d.counted(partIdle, 1)
		d.title.name(5, nil)
		d.until(8.05)
		d.wants("with viewers", "2.0 2.255")
		for d.supply.budgets.mayFetch(d.conn.payer()) {
			d.supply.budgets.charge(d.conn.payer(), 1<<20)
		}
		d.until(12.05)
		d.counted(partUnpaid, 1)
		d.wants("without a budget", "")
		if want := []string{"2 at 8.0"}; !slices.Equal(d.asked, want) {
			t.Errorf("asked for %v, want %v", d.asked, want)
		}
	})
}

// TestASegmentIsReadAsFarAsItIsPaidFor, by bytes as they come.
func TestASegmentIsReadAsFarAsItIsPaidFor(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		came := 0
		d.serves(func(ctx context.Context, s int, take func([]byte) error) error {
			for n := range 100 {
				b := append(make([]byte, 1<<16), smallChunk(byte(n))...)
				binary.BigEndian.PutUint32(b, 1<<16)
				copy(b[4:], "free")
				if err := take(b); err != nil {
					return err
				}
				if came++; n == 1 { // another fetch has taken the rest
					for d.supply.budgets.mayFetch(d.conn.payer()) {
						d.supply.budgets.charge(d.conn.payer(), 1<<20)
					}
				}
			}
			return nil
		})
		d.until(4.05)
		d.wants("as far as it was paid for", "1.0 1.1 1.2")
		d.counted(partUnpaid, 1)
		d.counted(partSigned, 3)
		if came != 2 || d.counts.Value(mOriginRequests, "demo", string(OutcomeOK)) != 1 || d.counts.Value(mOriginBytes, "demo") != 3*(1<<16+17) {
			t.Errorf("%d came", came)
		}
	})
}
