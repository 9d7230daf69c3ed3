package seed

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// shelves is a catalog whose indexes are filled by the test: nothing is followed.
type shelves struct {
	*catalog
	now  time.Time
	site *siteState
	rec  *testkit.Recorder
}

func newShelves(t testing.TB, limit int64, most int) *shelves {
	s := &shelves{now: time.Unix(1000, 0), rec: &testkit.Recorder{}}
	s.catalog = newCatalog(&tasks{ctx: t.Context()}, limit, most, s.rec, slog.New(slog.DiscardHandler), func() time.Time { return s.now })
	s.site = &siteState{rules: testSite(t), name: "demo", sink: s.rec}
	return s
}

// put has a party want a manifest that takes so many bytes.
func (s *shelves) put(n int, p party, bytes int64) string {
	s.now = s.now.Add(time.Second)
	manifest := fmt.Sprintf("/films/%d.m3u8", n)
	if !s.has(manifest) {
		s.mu.Lock()
		s.add(newIndex(s.tasks.ctx, s.catalog, s.site, manifest), p, s.now)
		s.mu.Unlock()
	}
	ix := s.want(s.site, manifest, p)
	ix.listings.mu.Lock()
	ix.bytes = bytes
	ix.listings.mu.Unlock()
	s.weigh(ix)
	return manifest
}

func (s *shelves) has(manifest string) bool { return s.peek(manifestID{"demo", manifest}) != nil }

func (s *shelves) check(t *testing.T) {
	t.Helper()
	sum := int64(0)
	for _, e := range s.all {
		sum += e.bytes
	}
	if sum != s.catalog.bytes || sum > s.limit || len(s.all) > s.most {
		t.Errorf("%d indexes of %d bytes, counted as %d", len(s.all), sum, s.catalog.bytes)
	}
}

func guest(session byte, subnet string) party {
	return party{session: signal.ID{session}, subnet: subnet}
}

// TestWhatWasLeftAloneMakesRoomFirst, and then the least recently wanted of the subnet that takes the most.
func TestWhatWasLeftAloneMakesRoomFirst(t *testing.T) {
	s := newShelves(t, 10<<20, 100)
	idle := s.put(1, guest(1, "a"), 1<<20)
	s.now = s.now.Add(2 * leftAlone)
	honest := s.put(2, guest(2, "b"), 1<<20)
	var greedy []string
	for n := range 8 {
		greedy = append(greedy, s.put(10+n, guest(byte(10+n), "c"), 1<<20))
	}
	if s.has(idle) || !s.has(honest) || !s.has(greedy[0]) {
		t.Errorf("idle %v, honest %v, first of many %v", s.has(idle), s.has(honest), s.has(greedy[0]))
	}
	for n := range 40 {
		greedy = append(greedy, s.put(100+n, guest(byte(100+n), "c"), 1<<20))
		s.want(s.site, honest, guest(2, "b"))
	}
	if !s.has(honest) || s.has(greedy[0]) || !s.has(greedy[len(greedy)-1]) {
		t.Error("one subnet has another's index dropped")
	}
	s.check(t)
	if s.rec.Value(mIndexEvictions) == 0 {
		t.Error("it is not counted")
	}
	other := s.put(200, guest(200, "d"), 1<<20)
	if !s.has(other) || !s.has(honest) {
		t.Error("a third subnet finds no room")
	}
	if huge := s.put(201, guest(201, "e"), 6<<20); s.has(huge) || !s.has(honest) || !s.has(other) {
		t.Error("one that takes more than half of the room is kept")
	}
	s.check(t)
}

// TestASessionHasFewIndexes, and a subnet a share: the least recently wanted of its own make room.
func TestASessionHasFewIndexes(t *testing.T) {
	s := newShelves(t, 1<<30, 100)
	var own []string
	for n := range titlesOfSession + 3 {
		own = append(own, s.put(n, guest(1, "a"), 1000))
	}
	for n, m := range own {
		if s.has(m) != (n >= 3) {
			t.Errorf("title %d of the session: %v", n, s.has(m))
		}
	}
	for n := range 60 {
		s.put(100+n, guest(byte(10+n), "a"), 1000)
	}
	if n := len(s.all); n != 100/shareOfSubnet {
		t.Errorf("%d indexes because of one subnet", n)
	}
	s.check(t)
}

// TestAnIndexWeighsWhatItTakes: the bound in bytes is as good as the weight.
func TestAnIndexWeighsWhatItTakes(t *testing.T) {
	s := newShelves(t, 1<<30, 100)
	const segments = 20_000
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + repeat("#EXTINF:4,\nsegment-%06d.m4s\n", segments)
	_, r, err := playlist.List(s.site.rules, "/films/index.m3u8", nil, []byte(list+"#EXT-X-ENDLIST\n"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	ix := newListings("demo")
	runtime.GC()
	runtime.ReadMemStats(&before)
	ix.take("/films/index.m3u8", r, s.now)
	runtime.GC()
	runtime.ReadMemStats(&after)
	took := float64(after.HeapAlloc-before.HeapAlloc) + segments*float64(len("/films/segment-000000.m4s")+len("x"))
	if weight := float64(ix.weight()); weight < took*0.9 || weight > took*2 {
		t.Errorf("an index of %d segments weighs %.0f bytes and takes %.0f", len(ix.refs), weight, took)
	} else {
		t.Logf("%.0f bytes a segment, weighed as %.0f", took/segments, weight/segments)
	}
	runtime.KeepAlive(r)
	if _, _, err := playlist.List(s.site.rules, "/films/index.m3u8", nil, []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n"+repeat("#EXTINF:4,\n%06d\n", playlist.MaxSegments+1)), time.Time{}); err == nil {
		t.Error("a playlist of more segments than there may be is parsed")
	}
	if ix.lookup(segment.NewID("demo", "/films/segment-000000.m4s")) == nil {
		t.Error("not listed")
	}
}

// repeat writes a format n times, with the numbers from 0 on.
func repeat(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestPlaylistLoadsArePaidFor: by the session, its subject, its subnet and the site, and by another party where one has spent its budget.
func TestPlaylistLoadsArePaidFor(t *testing.T) {
	now := time.Unix(1000, 0)
	tolls := newTolls(func() time.Time { return now })
	poor, rich := party{signal.ID{1}, "a", "ada"}, party{signal.ID{2}, "b", ""}
	n := 0
	for {
		if _, refused := tolls.pay("demo", []party{poor}); refused != "" {
			if refused != tollSession {
				t.Errorf("refused for the %s", refused)
			}
			break
		}
		n++
	}
	if n != tariffs[tollSession].burst {
		t.Errorf("a session loaded %d playlists at once", n)
	}
	if payer, refused := tolls.pay("demo", []party{poor, rich}); payer != rich || refused != "" {
		t.Errorf("%v pays, refused %q", payer, refused)
	}
	tolls.charge("demo", rich, 100*tollBytes)
	for n = 0; ; n++ {
		if _, refused := tolls.pay("demo", []party{rich}); refused != "" {
			break
		}
	}
	if n != tariffs[tollSession].burst-101 {
		t.Errorf("a long playlist costs as much as a short one: %d more", n)
	}
	now = now.Add(time.Second)
	if _, refused := tolls.pay("demo", []party{poor}); refused != "" {
		t.Errorf("a second later: %s", refused)
	}
	refusedFor := map[string]int{}
	for i := range 20_000 {
		p := party{session: signal.ID{3, byte(i >> 8), byte(i)}, subnet: "c"}
		if i >= 10_000 {
			p.subnet = fmt.Sprint(i)
		}
		if _, refused := tolls.pay("demo", []party{p}); refused != "" {
			refusedFor[refused]++
		}
	}
	if refusedFor[tollSubnet] != 10_000-tariffs[tollSubnet].burst || refusedFor[tollSite] == 0 {
		t.Errorf("refused: %v", refusedFor)
	}
	for i := range maxTolls {
		tolls.mu.Lock()
		tolls.of(tollID{tollSession, fmt.Sprint(i)}).AllowN(now, 1)
		tolls.mu.Unlock()
	}
	if n := len(tolls.purse); n > maxTolls+4 {
		t.Errorf("%d are remembered", n)
	}
	now = now.Add(time.Hour)
	if tolls.forget(); len(tolls.purse) > 0 {
		t.Errorf("%d are remembered that owe nothing", len(tolls.purse))
	}
}

// TestARefusalOfTheOriginHasAHint: what to do is said of 401 and 403, and of nothing that mends itself.
func TestARefusalOfTheOriginHasAHint(t *testing.T) {
	for _, outcome := range Outcomes {
		hint := hintOf(fmt.Errorf("load: %w", &FetchError{Outcome: outcome, Path: "/a.m3u8"}))
		if refused := outcome == OutcomeClient; refused != (len(hint) == 2) || refused && !strings.Contains(fmt.Sprint(hint...), "fetch_auth") {
			t.Errorf("%s: %v", outcome, hint)
		}
	}
	if hint := hintOf(errors.New("no origin")); hint != nil {
		t.Errorf("%v", hint)
	}
}

// BenchmarkAReloadOfALongLivePlaylist reads a live playlist with segments of 2 s that has gone on by one, and takes in what it lists.
func BenchmarkAReloadOfALongLivePlaylist(b *testing.B) {
	rules, begin := testSite(b), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for _, of := range []struct {
		name     string
		segments int
	}{{"window=30s", 15}, {"window=1h", 1800}, {"window=12h", 21_600}} {
		b.Run(of.name, func(b *testing.B) {
			var texts [2][]byte
			for first := range texts {
				text := fmt.Appendf(nil, "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:%d\n", first)
				for i := range of.segments {
					at := begin.Add(time.Duration(first+i) * 2 * time.Second)
					text = fmt.Appendf(text, "#EXT-X-PROGRAM-DATE-TIME:%s\n#EXTINF:2.000,\nsegment-%06d.ts\n", at.Format("2006-01-02T15:04:05.000Z"), first+i)
				}
				texts[first] = text
			}
			l, now, taking := newListings("demo"), begin, time.Duration(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, r, err := playlist.List(rules, "/live/index.m3u8", nil, texts[i%2], now)
				if err != nil {
					b.Fatal(err)
				}
				since := time.Now()
				l.take("/live/index.m3u8", r, now)
				l.forget(now)
				taking += time.Since(since)
			}
			b.ReportMetric(float64(taking.Microseconds())/1000/float64(b.N), "ms-taking/op")
			b.ReportMetric(float64(len(texts[0]))/1000, "kB")
		})
	}
}
