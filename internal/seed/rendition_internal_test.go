package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// numbered is an origin of a low-latency playlist of one segment, whose number is given, and a part. It keeps a request for the part that
// comes next, and refuses one for what comes much later (RFC 8216bis, section 6.2.5.2).
type numbered struct {
	mu       sync.Mutex
	sequence int           // guarded by mu
	asked    []string      // guarded by mu
	anew     chan struct{} // guarded by mu; closed when other numbers begin
}

func (o *numbered) begin(sequence int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.anew != nil {
		close(o.anew)
	}
	o.sequence, o.anew = sequence, make(chan struct{})
}

func (o *numbered) Get(ctx context.Context, f Fetch) (*Fetched, error) {
	_, query, waits := strings.Cut(f.Path, "?_HLS_msn=")
	o.mu.Lock()
	o.asked = append(o.asked, f.Path)
	sequence, anew := o.sequence, o.anew
	o.mu.Unlock()
	if waits && query == fmt.Sprintf("%d&_HLS_part=1", sequence+1) {
		select {
		case <-ctx.Done():
		case <-anew:
		}
	}
	if waits {
		return nil, &FetchError{Outcome: OutcomeClient, Path: f.Path, Cause: errors.New("400 Bad Request")}
	}
	return &Fetched{Data: fmt.Appendf(nil, "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n"+
		"#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXTINF:2,\n%d.m4s\n"+
		"#EXT-X-PART:DURATION=0.5,URI=\"%d.0.m4s\"\n", sequence, sequence, sequence+1)}, nil
}

func (o *numbered) Flow(context.Context, Fetch, func([]byte) error) (*Fetched, error) {
	panic("nothing flows")
}

func (o *numbered) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[len(o.asked)-1]
}

func newRendition(s *sharing, id segment.ID, path string, payer party) *rendition {
	return &rendition{openStream: newOpenStream(s, id, s.title.manifest, path, payer)}
}

// followed is a stream that the desk's viewer follows.
func (d *desk) followed(t *testing.T, path string) *rendition {
	d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
	s, id := newSharing(d.all.streams, d.title), segment.ID{1}
	s.linked(d.viewerLink)
	s.node.Heard(0, d.from.session, peer.Follow{Stream: id, On: true})
	r := newRendition(s, id, path, party{})
	t.Cleanup(r.cancel)
	return r
}

// TestAStreamThatBeginsAnewIsFollowedAnew: its packager has started again, with lower numbers, while viewers follow it all the time.
func TestAStreamThatBeginsAnewIsFollowedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/film/live.m3u8"
		d, o := newDesk(t, 1<<20), &numbered{}
		o.begin(1000)
		site := d.title.site
		site.origin, site.followed = o, newStreamPlaces(1)
		d.title.index().take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2, Blocks: true}}, *d.now)
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
		d.all.streams.linked(d.viewerLink)
		s := d.viewerLink.sharing.Load()
		s.heard(d.viewerLink, peer.Follow{Stream: segment.NewID("demo", segment.WholeName(path)), On: true})
		for _, sequence := range []int{1000, 3} {
			o.begin(sequence)
			for range 10 {
				sleep.For(t.Context(), time.Second)
				s.review()
			}
			if want := fmt.Sprintf("%s?_HLS_msn=%d&_HLS_part=1", path, sequence+1); o.last() != want {
				t.Errorf("the origin was asked for %s last, not for %s: %q", o.last(), want, o.asked)
			}
		}
	})
}

// TestAnObjectIsNotAskedForAsItsFirstRange: where parts are ranges, the hint at the first one of an object names the object alone.
func TestAnObjectIsNotAskedForAsItsFirstRange(t *testing.T) {
	object := func(path string) playlist.Entry { return playlist.Entry{Name: segment.WholeName(path), Path: path} }
	part := func(path string, first, last int64) playlist.Entry {
		return playlist.Entry{Name: segment.RangeName(path, first, last), Path: path, Ranged: true, First: first, Last: last}
	}
	for name, c := range map[string]struct {
		listed, hint playlist.Entry
		want         bool
	}{
		"parts of their own":           {object("/film/1.3.m4s"), object("/film/2.0.m4s"), true},
		"the first range":              {part("/film/1.m4s", 2700, 3599), object("/film/2.m4s"), false},
		"the first range, and its end": {part("/film/1.m4s", 2700, 3599), part("/film/2.m4s", 0, 899), true},
		"another one":                  {part("/film/2.m4s", 0, 899), playlist.Entry{Path: "/film/2.m4s", Ranged: true, First: 900, Last: -1}, false},
		"another one, and its end":     {part("/film/2.m4s", 0, 899), part("/film/2.m4s", 900, 1799), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 1<<20)
			d.title.site.origin = forbidden{}
			d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
			r := newRendition(newSharing(d.all.streams, d.title), segment.ID{1}, "/film/live.m3u8", party{})
			defer r.cancel()
			r.known = &playlist.Parts{Listed: []playlist.PartEntry{{Entry: c.listed}}, Hint: &c.hint}
			if r.hint(d.viewerLink); (r.hinted != nil) != c.want {
				t.Errorf("asked for: %v, want %v", r.hinted != nil, c.want)
			}
		})
	}
}

// unmeasured is an origin of an object that grows: it knows the length of a range, and none of the whole (RFC 9110, section 14.4).
type unmeasured struct{ forbidden }

func (unmeasured) Get(_ context.Context, f Fetch) (*Fetched, error) {
	if !f.AnyLength {
		return nil, &FetchError{Outcome: OutcomeRefused, Path: f.Path, Cause: errors.New("no length")}
	}
	return &Fetched{Data: make([]byte, f.Last-f.First+1)}, nil
}

// TestAPartOfAnObjectThatGrowsIsSigned, though its origin does not say how long the object is: the certificate does not say it either.
func TestAPartOfAnObjectThatGrowsIsSigned(t *testing.T) {
	d := newDesk(t, 1<<20)
	d.title.site.origin, d.title.site.conns = unmeasured{}, make(chan struct{}, 1)
	r := d.followed(t, "/film/live.m3u8")
	e := playlist.Entry{Name: segment.RangeName("/film/1.m4s", 900, 1799), Path: "/film/1.m4s", Ranged: true, First: 900, Last: 1799}
	if h, err := r.sign(e, *d.now); err != nil || h.cert.ObjectLength != 1800 {
		t.Errorf("%+v, %v", h, err)
	}
}

// punctual is an origin of a low-latency playlist that lists a part more each half a second. A part that it is asked for before it is
// listed never comes.
type punctual struct {
	forbidden
	began time.Time
}

const punctualPart = time.Second / 2

func (o *punctual) until(ctx context.Context, part int) error {
	if sleep.For(ctx, time.Until(o.began.Add(time.Duration(part)*punctualPart))); ctx.Err() != nil {
		return &FetchError{Outcome: OutcomeTimeout, Cause: ctx.Err()}
	}
	return nil
}

func (o *punctual) Get(ctx context.Context, f Fetch) (*Fetched, error) {
	var part int
	if n, _ := fmt.Sscanf(f.Path, "/film/1.%d.m4s", &part); n == 1 {
		if o.began.Add(time.Duration(part) * punctualPart).After(time.Now()) {
			return nil, silentUntil(ctx)
		}
		return &Fetched{Data: []byte(f.Path), ObjectLength: int64(len(f.Path))}, nil
	}
	if _, query, waits := strings.Cut(f.Path, "&_HLS_part="); waits {
		fmt.Sscanf(query, "%d", &part)
		if err := o.until(ctx, part); err != nil {
			return nil, err
		}
	}
	listed := int(time.Since(o.began) / punctualPart)
	list := &strings.Builder{}
	list.WriteString("#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:60\n#EXT-X-PART-INF:PART-TARGET=0.5\n" +
		"#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:60,\n0.m4s\n")
	for n := range listed + 1 {
		fmt.Fprintf(list, "#EXT-X-PART:DURATION=0.5,URI=\"1.%d.m4s\"\n", n)
	}
	fmt.Fprintf(list, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"1.%d.m4s\"\n", listed+1)
	return &Fetched{Data: []byte(list.String())}, nil
}

// TestAHintThatHangsHoldsNoOtherPart: some origins let the request hang for a part that is not there yet, also once it is.
func TestAHintThatHangsHoldsNoOtherPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/film/live.m3u8"
		d, counts := newDesk(t, 1<<20), &testkit.Recorder{}
		site := d.title.site
		site.origin, site.followed, site.conns = &punctual{began: time.Now()}, newStreamPlaces(1), make(chan struct{}, 1)
		d.title.index().take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: punctualPart, Blocks: true}}, *d.now)
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, counts, silent, time.Now)
		d.all.streams.linked(d.viewerLink)
		s := d.viewerLink.sharing.Load()
		s.heard(d.viewerLink, peer.Follow{Stream: segment.NewID("demo", segment.WholeName(path)), On: true})
		sleep.For(t.Context(), 40*punctualPart+punctualPart*3/4)
		synctest.Wait()
		if got := counts.Value(mParts, "demo", partSigned); got < 39 {
			t.Errorf("%v of 40 parts are signed, %v failed and %v came too late", got, counts.Value(mParts, "demo", partFailed), counts.Value(mParts, "demo", partLate))
		}
		s.heard(d.viewerLink, peer.Follow{Stream: segment.NewID("demo", segment.WholeName(path))})
	})
}

// TestAStreamWhoseNumbersLeapIsFollowedAnew: its packager has started again, and numbers segments by the clock. The turns of its parts
// seem to be of before, so none of them would be told.
func TestAStreamWhoseNumbersLeapIsFollowedAnew(t *testing.T) {
	for more, anew := range map[int]bool{1: false, leap - 1: false, leap: true, 1_790_000_000: true} {
		d, o := newDesk(t, 1<<20), &numbered{}
		d.title.site.origin = o
		d.title.name(0, nil) // parts are counted, and not certified
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
		s, id := newSharing(d.all.streams, d.title), segment.ID{1}
		s.linked(d.viewerLink)
		s.node.Heard(0, d.from.session, peer.Follow{Stream: id, On: true})
		r := newRendition(s, id, "/film/live.m3u8", party{})
		r.stream = s.node.Follow(0, id, parts.Settings{Part: 500_000})
		s.followed[id] = r.openStream
		told := func(sequence int) bool {
			turn, _ := parts.Turn(int64(sequence), 0)
			r.stream.Listed(0, turn, segment.ID{2, byte(sequence)}, 1000)
			return r.stream.Length(turn) > 0
		}
		o.begin(10)
		if err := r.load(false); err != nil || !told(11) {
			t.Fatalf("at first: %v", err)
		}
		o.begin(10 + more)
		if err := r.load(false); (err != nil) != anew || (s.followed[id] == nil) != anew {
			t.Errorf("%d segments further: followed anew %v, %v", more, s.followed[id] == nil, err)
		} else if err == nil && !told(11+more) {
			t.Errorf("%d segments further no part is told", more)
		}
		r.cancel()
	}
}

// TestPartsHaveAnOrderWhateverTheirNumbers: some packagers number segments by the clock, in microseconds.
func TestPartsHaveAnOrderWhateverTheirNumbers(t *testing.T) {
	part := func(sequence int64, n int) playlist.PartEntry { return playlist.PartEntry{Sequence: sequence, Part: n} }
	for _, first := range []int64{0, 1<<47 - 1, 1<<48 - 1, 1<<53 - 1} {
		d, counts := newDesk(t, 1<<20), &testkit.Recorder{}
		d.title.name(0, nil) // parts are counted, and not certified
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, counts, silent, func() time.Time { return *d.now })
		r := newRendition(newSharing(d.all.streams, d.title), segment.ID{1}, "/film/live.m3u8", party{})
		r.known = &playlist.Parts{Listed: []playlist.PartEntry{part(first, 0)}}
		r.take(true)
		r.known.Listed = append(r.known.Listed, part(first, 1), part(first+1, 0))
		for range 2 {
			r.take(false)
		}
		if got := counts.Value(mParts, "demo", partIdle); got != 2 {
			t.Errorf("segment %d: %v parts are new, want 2", first, got)
		}
		r.cancel()
	}
}

// forbidden is an origin that lets the seed have nothing.
type forbidden struct{}

func (forbidden) Get(_ context.Context, f Fetch) (*Fetched, error) {
	return nil, &FetchError{Outcome: OutcomeClient, Path: f.Path, Cause: errors.New("403 Forbidden")}
}

func (forbidden) Flow(_ context.Context, f Fetch, _ func([]byte) error) (*Fetched, error) {
	return nil, &FetchError{Outcome: OutcomeClient, Path: f.Path, Cause: errors.New("403 Forbidden")}
}

// TestWarningsOfAStreamSayWhatToDo, and there are none of what viewers have no budget for.
func TestWarningsOfAStreamSayWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/film/live.m3u8"
		d, text := newDesk(t, 1<<20), &strings.Builder{}
		d.title.site.origin, d.title.site.followed = forbidden{}, newStreamPlaces(1)
		d.title.index().take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2, Blocks: true}}, *d.now)
		log := slog.New(slog.NewTextHandler(text, nil))
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, log, func() time.Time { return *d.now })
		d.all.streams.linked(d.viewerLink)
		s := d.viewerLink.sharing.Load()
		s.heard(d.viewerLink, peer.Follow{Stream: segment.NewID("demo", segment.WholeName(path)), On: true})
		said := func() string {
			sleep.For(t.Context(), 2*retryAtMost)
			synctest.Wait()
			defer text.Reset()
			return text.String()
		}
		if got := said(); !strings.Contains(got, "playlist="+path) || !strings.Contains(got, "fetch_auth") {
			t.Errorf("the origin lets the seed have nothing, and the log says %q", got)
		}
		for d.supply.budgets.mayFetch(d.conn.payer()) {
			d.supply.budgets.charge(d.conn.payer(), 1<<20)
		}
		if said(); said() != "" {
			t.Error("the log has what viewers have no budget for")
		}
	})
}

// TestReloadsAreChargedToFollowers: a viewer of the title that follows no stream pays for none, whatever those have left that do.
func TestReloadsAreChargedToFollowers(t *testing.T) {
	d, other := newDesk(t, 1<<20), party{session: signal.ID{5}, subnet: "other"}
	d.title.site.origin = forbidden{}
	r := d.followed(t, "/film/index.m3u8")
	d.title.want(other)
	tolls := d.title.catalog.tolls
	var unpaid *unpaidError
	if err := r.load(false); errors.As(err, &unpaid) {
		t.Fatalf("a follower that has paid for nothing: %v", err)
	}
	for refused := ""; refused == ""; {
		_, refused = tolls.pay("demo", []party{d.from})
	}
	if err := r.load(false); !errors.As(err, &unpaid) || !tolls.covers(other) {
		t.Errorf("the follower has nothing left: %v", err)
	}
	tolls.mu.Lock()
	defer tolls.mu.Unlock()
	if purse := tolls.of(tollID{tollSession, string(other.session[:])}); purse.TokensAt(*d.now) != float64(purse.Burst()) {
		t.Errorf("another viewer has paid: it has %v of %d left", purse.TokensAt(*d.now), purse.Burst())
	}
}
