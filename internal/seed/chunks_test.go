package seed_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestChunksAreToldAndPushedWhileTheirSegmentIsMade: each as soon as it is there, under its turn and its name; then the whole, which viewers
// that ask for the segment get, too. The origin is asked once for a segment that is there.
func TestChunksAreToldAndPushedWhileTheirSegmentIsMade(t *testing.T) {
	w := newChunkWorld(t, nil)
	high := w.comes(2, "high")
	for s := firstChunked; s < firstChunked+2; s++ {
		name := chunkedName("low", s)
		w.await(name, 2) // it is not there at once
		whole, from := []byte(nil), int64(0)
		for n, size := range []int{50_000, 9, 120_000, 16_384} {
			data := chunkOf(size)
			whole = append(whole, data...)
			w.adds(name, data[:7])
			w.adds(name, data[7:])
			w.takes(t, s, n, data)
			c := w.hears(t, s, n)
			last := from + int64(len(data)) - 1
			if c.Name != segment.RangeName(string(name), from, last) || c.ObjectLength != last+1 || c.Length != int64(len(data)) || c.NotAfter.Sub(c.IssuedAt) != 10*time.Minute {
				t.Errorf("chunk %d.%d: %+v", s, n, c)
			}
			from = last + 1
		}
		asked := w.count(name)
		w.ends(name)
		c := w.hears(t, s, 255)
		if c.Name != name || c.ObjectLength != from || c.Length != from || !slices.Equal(c.Digests, certificate.DigestPieces(whole)) {
			t.Errorf("the end of %d: %+v", s, c)
		}
		w.forward()
		if s == firstChunked {
			testkit.Eventually(t, "the segment is listed", func() bool { c, _ = w.v.certificate(name); return c != nil })
			if data, _ := w.v.fetch(c); !bytes.Equal(data, whole) || w.count(name) != asked {
				t.Errorf("%d bytes of %d; the origin was asked %d times more", len(data), len(whole), w.count(name)-asked)
			}
		}
	}
	if want := []string{"8.0", "8.1", "8.2", "8.3", "8.255", "9.0", "9.1", "9.2", "9.3", "9.255"}; !slices.Equal(w.turns(), want) {
		t.Errorf("told %v, want %v", w.turns(), want)
	}
	if got := high.turns(); len(got) > 0 {
		t.Errorf("of another rendition %v", got)
	}
	if n := w.counted("leeway_seed_parts_total", "demo", "signed"); n != 8 {
		t.Errorf("%v chunks are counted", n)
	}
	if n := w.counted("leeway_seed_origin_bytes_total", "demo"); n < 2*186_000 {
		t.Errorf("%v bytes are counted", n)
	}
}

// TestChunksOfTwoRenditionsAreToldApart: of each from the first segment on that began after the stream was followed.
func TestChunksOfTwoRenditionsAreToldApart(t *testing.T) {
	w := newChunkWorld(t, nil)
	low, data := chunkOf(70_000), chunkOf(2000)
	w.adds(chunkedName("low", firstChunked), low)
	w.takes(t, firstChunked, 0, low)
	w.ends(chunkedName("low", firstChunked))
	w.hears(t, firstChunked, 255)
	high := w.comes(2, "high")
	w.forward(high)
	w.adds(chunkedName("low", firstChunked+1), low)
	w.adds(chunkedName("high", firstChunked+1), data)
	w.takes(t, firstChunked+1, 0, low)
	if c := high.hears(t, firstChunked+1, 0); c.Name != segment.RangeName(string(chunkedName("high", firstChunked+1)), 0, int64(len(data))-1) {
		t.Errorf("%+v", c)
	}
	if a, b := w.turns(), high.turns(); !slices.Equal(a, []string{"8.0", "8.255", "9.0"}) || !slices.Equal(b, []string{"9.0"}) {
		t.Errorf("told %v and %v", a, b)
	}
	if n := w.chunkOrigin.count(chunkedName("high", firstChunked)); n != 0 {
		t.Errorf("the origin was asked %d times for a segment that had begun before the stream was followed", n)
	}
}

// TestViewersHearOfAStreamOfChunksWhenSomeCome: half a second before the next segment can be asked for. One that subscribes sooner would take the seed for
// silent, and leave it alone for 16 s.
func TestViewersHearOfAStreamOfChunksWhenSomeCome(t *testing.T) {
	w := newChunkWorld(t, nil)
	high := w.comes(2, "high")
	testkit.Eventually(t, "the seed follows both", func() bool { return w.counted("leeway_seed_part_streams") == 2 })
	w.clock.forward(chunkedDuration - 2*time.Second)
	high.settle(t)
	high.mu.Lock()
	sooner := high.stripes
	high.mu.Unlock()
	w.clock.forward(time.Second)
	wait(t, high.subscribed, "the seed's places")
	if sooner > 0 {
		t.Error("it has heard of it sooner")
	}
}

// TestChunksOfAManifestThatIsElsewhereAreToldUnderItsName: players name the stream by the URL that they were given, whatever it led to, and
// the segments by where they are.
func TestChunksOfAManifestThatIsElsewhereAreToldUnderItsName(t *testing.T) {
	w := newChunkWorld(t, nil)
	w.swarm = signal.ID{6}
	title := w.world.title(5)
	title.Manifest = movedManifest
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
	f := w.connectFollowerOf(2, title, movedManifest+".low")
	f.clock = w.clock.now
	f.with(func(now int64) { f.stream.Listed(now, firstChunked*256-1, segment.ID{1}, 0) })
	testkit.Eventually(t, "the seed follows both", func() bool { return w.counted("leeway_seed_part_streams") == 2 })
	w.forward(f)
	data := chunkOf(9)
	w.adds(chunkedName("low", firstChunked+1), data)
	if c := f.hears(t, firstChunked+1, 0); c.Name != segment.RangeName(string(chunkedName("low", firstChunked+1)), 0, int64(len(data))-1) {
		t.Errorf("%+v", c)
	}
}

// TestOfASegmentThatFailsNothingMoreIsTold: neither a further chunk nor the end. The next one is told again.
func TestOfASegmentThatFailsNothingMoreIsTold(t *testing.T) {
	first := chunkOf(70_000) // of all stripes
	for name, c := range map[string]struct {
		then func(w *chunkWorld, name segment.Name)
		told []string
	}{
		"the origin dies":          {func(w *chunkWorld, name segment.Name) { w.make(name, func(m *made) { m.fails = true }) }, nil},
		"the answer ends in a box": {func(w *chunkWorld, name segment.Name) { w.adds(name, chunkOf(50)[:60]); w.ends(name) }, nil},
		"garbage": {func(w *chunkWorld, name segment.Name) {
			w.adds(name, []byte{0, 0, 0, 3, 1, 2, 3, 4})
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"media alone": {func(w *chunkWorld, name segment.Name) { w.adds(name, []byte("\x00\x00\x00\x08mdat")); w.ends(name) }, nil},
		"it is too long": {func(w *chunkWorld, name segment.Name) {
			w.adds(name, chunkOf(9))
			w.adds(name, chunkOf(segment.MaxLength))
			w.ends(name)
		}, []string{"8.1"}},
		"it is purged": {func(w *chunkWorld, name segment.Name) {
			w.revoke(purge(w.clock.now()))
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"the site is off": {func(w *chunkWorld, name segment.Name) {
			w.say(w.seed.Statements("demo", true, cluster.ByOperator, time.Time{})...)
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"the key is revoked": {func(w *chunkWorld, name segment.Name) { w.revokeKey(); w.adds(name, chunkOf(9)); w.ends(name) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newChunkWorld(t, nil)
			one := chunkedName("low", firstChunked)
			w.adds(one, first)
			w.takes(t, firstChunked, 0, first)
			c.then(w, one)
			testkit.Eventually(t, "it has failed", func() bool { return w.counted("leeway_seed_parts_total", "demo", "failed") == 1 || len(w.v.closed) > 0 })
			if got, want := w.turns(), append([]string{"8.0"}, c.told...); !slices.Equal(got, want) {
				t.Fatalf("told %v, want %v", got, want)
			}
			if name == "the site is off" || name == "the key is revoked" || name == "it is too long" {
				return
			}
			w.forward()
			next := chunkOf(30_000)
			w.adds(chunkedName("low", firstChunked+1), next)
			w.takes(t, firstChunked+1, 0, next)
		})
	}
}
