package seed_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// jump is a clock that can be put forward.
type jump struct{ offset atomic.Int64 }

func (j *jump) now() time.Time                        { return time.Now().Add(time.Duration(j.offset.Load())) }
func (j *jump) forward(d time.Duration)               { j.offset.Add(int64(d)) }
func (j *jump) config(_ *site.Config, c *seed.Config) { c.Now = j.now }

// until asks again and again, for at most the tests' patience, until ok.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func TestCertificatesAreRenewedBeforeTheyEnd(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	clock := &jump{}
	w := newWorld(t, o, clock.config)
	const name = "/film/low/0.m4s"
	old, _ := w.connect(1, 1).certificate(name)
	if life := old.NotAfter.Sub(old.IssuedAt); life != 6*time.Hour {
		t.Errorf("a certificate of a playlist with an end lives %s", life)
	}
	clock.forward(5 * time.Hour)
	v := w.connect(2, 1)
	if c, _ := v.certificate(name); !bytes.Equal(c.Bytes(), old.Bytes()) {
		t.Error("the old certificate is good for another hour, and was not handed out")
	}
	until(t, "a new certificate", func() bool {
		c, _ := v.certificate(name)
		return c != nil && c.IssuedAt.After(old.IssuedAt) && c.SameContent(old)
	})
	if n := o.count(path(name)); n != 2 {
		t.Errorf("the origin was asked %d times: once for the bytes, once whether they are the same", n)
	}
}

func TestChangedObjectIsWithheldUntilTheOldCertificateEnds(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	clock := &jump{}
	w := newWorld(t, o, clock.config)
	const name = "/film/low/0.m4s"
	old, _ := w.connect(1, 1).certificate(name)
	o.put(path(name), noise(123_456))
	clock.forward(5 * time.Hour)
	v := w.connect(2, 1)
	v.certificate(name)
	until(t, "the refused renewal", func() bool { return o.count(path(name)) == 2 })
	// Two valid certificates would contradict each other, and what the first says is not what the origin has.
	until(t, "the name is the origin's alone", func() bool {
		c, none := v.certificate(name)
		return c == nil && none.Reason == peer.NoneWithdrawn
	})
	if _, rejected := v.fetch(old); len(rejected) != len(old.Digests) || w.metrics.Value(seed.Metrics()[contradictions(t)], "demo") != 1 {
		t.Errorf("%d of %d pieces were rejected", len(rejected), len(old.Digests))
	}
	clock.forward(2 * time.Hour)
	v = w.connect(3, 1)
	until(t, "the new content", func() bool {
		c, _ := v.certificate(name)
		return c != nil && !c.SameContent(old)
	})
}

// TestARestartedSeedContradictsNoCertificateOfBefore: that one is on its disk, and with viewers.
func TestARestartedSeedContradictsNoCertificateOfBefore(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	clock := &jump{}
	before := newWorld(t, o, clock.config)
	const name = "/film/low/0.m4s"
	old, _ := before.connect(1, 1).certificate(name)
	before.stop()
	o.put(path(name), noise(123_456))
	clock.forward(5 * time.Hour)
	w := newWorld(t, o, func(s *site.Config, c *seed.Config) {
		clock.config(s, c)
		c.DataDir = before.dir
	})
	v := w.connect(2, 1)
	until(t, "the name is the origin's alone", func() bool {
		c, none := v.certificate(name)
		if c != nil && !c.SameContent(old) {
			t.Fatal("two certificates of one name hold, with other bytes")
		}
		return c == nil && none.Reason == peer.NoneWithdrawn
	})
	if got := w.metrics.Value(seed.Metrics()[contradictions(t)], "demo"); got != 1 {
		t.Errorf("%v contradictions are counted", got)
	}
}

// contradictions is the place of their metric.
func contradictions(t *testing.T) int {
	t.Helper()
	for i, d := range seed.Metrics() {
		if d.Name == "leeway_seed_contradictions_total" {
			return i
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

func TestLivePlaylistsAreFollowed(t *testing.T) {
	o := newOrigin(t)
	list := func(first, last int) {
		s := fmt.Sprintf("#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:%d\n", first)
		for i := first; i <= last; i++ {
			s += fmt.Sprintf("#EXTINF:1,\nlive%d.ts\n", i)
			o.put(fmt.Sprintf("/vod/film/live%d.ts", i), noise(50_000+i))
		}
		o.put("/vod/film/master.m3u8", []byte(s))
	}
	list(1, 3)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.LookAhead = 1 })
	v := w.connect(1, 1)
	c, none := v.certificate("/film/live1.ts")
	if none != nil {
		t.Fatalf("no certificate: reason %d", none.Reason)
	}
	if life := c.NotAfter.Sub(c.IssuedAt); life != 10*time.Minute {
		t.Errorf("a live certificate lives %s", life)
	}
	until(t, "the segment ahead", func() bool { return o.count("/vod/film/live2.ts") == 1 })
	list(2, 5)
	if c, none = v.certificate("/film/live5.ts"); none != nil {
		t.Fatalf("no certificate for a fresh segment: reason %d", none.Reason)
	}
	if data, _ := v.fetch(c); !bytes.Equal(data, o.files["/vod/film/live5.ts"]) {
		t.Error("other bytes than the origin's")
	}
	if _, none = v.certificate("/film/live1.ts"); none != nil {
		t.Errorf("a segment that just left the playlist: reason %d", none.Reason)
	}
	if n := o.count("/vod/film/live3.ts"); n != 0 {
		t.Errorf("a segment that is not wanted was fetched %d times", n)
	}
}

// TestTheTimeToACertificateIsOfTheEdgeOfALiveStream: not of what a viewer went back for, nor of a stream whose clock is not that of the day.
func TestTheTimeToACertificateIsOfTheEdgeOfALiveStream(t *testing.T) {
	for name, c := range map[string]struct {
		made time.Duration // before now, of the last segment
		ask  string
		seen int
	}{
		"the edge":           {5 * time.Second, "e", 1},
		"players begin here": {5 * time.Second, "c", 1},
		"further back":       {5 * time.Second, "b", 0},
		"an hour old":        {time.Hour, "e", 0},
		"of tomorrow":        {-24 * time.Hour, "e", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			list := "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:1\n#EXT-X-PROGRAM-DATE-TIME:" + time.Now().Add(-c.made-5*time.Second).UTC().Format("2006-01-02T15:04:05.000Z") + "\n"
			for _, s := range []string{"a", "b", "c", "d", "e"} {
				list += "#EXTINF:1,\n" + s + ".ts\n"
				o.put("/vod/film/"+s+".ts", noise(50_000))
			}
			o.put("/vod/film/master.m3u8", []byte(list))
			w := newWorld(t, o, nil)
			if _, none := w.connect(1, 1).certificate(segment.Name("/film/" + c.ask + ".ts")); none != nil {
				t.Fatalf("no certificate: reason %d", none.Reason)
			}
			def := seed.Metrics()[slices.IndexFunc(seed.Metrics(), func(d *metric.Def) bool { return d.Name == "leeway_seed_live_certificate_seconds" })]
			if n, took := w.metrics.Count(def, "demo"), w.metrics.Value(def, "demo"); n != c.seen || n > 0 && took < 5 {
				t.Errorf("%d times, %.1f s", n, took)
			}
		})
	}
}

// TestASegmentThatIsListedSoonerThanItIsThereIsAskedForAgain, of a live playlist alone: a cache may lag behind the playlist.
func TestASegmentThatIsListedSoonerThanItIsThereIsAskedForAgain(t *testing.T) {
	for end, most := range map[string]int{"": 4, "#EXT-X-ENDLIST\n": 1} {
		o := newOrigin(t)
		o.put("/vod/film/master.m3u8", []byte("#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXTINF:2,\nb.ts\n"+end))
		w := newWorld(t, o, nil)
		v := w.connect(1, 1)
		release := o.hold("/vod/film/a.ts") // the first answer is that it is not there
		answer := make(chan *peer.CertificateNone, 1)
		go func() {
			_, none := v.certificate("/film/a.ts")
			answer <- none
		}()
		until(t, "a request", func() bool { return o.count("/vod/film/a.ts") == 1 })
		o.put("/vod/film/a.ts", noise(50_000))
		release()
		if none := <-answer; (none != nil) != (end != "") {
			t.Errorf("with end %q: %v", end, none)
		}
		if _, none := v.certificate("/film/b.ts"); none == nil || o.count("/vod/film/b.ts") != most {
			t.Errorf("with end %q: what stays away was asked for %d times", end, o.count("/vod/film/b.ts"))
		}
	}
}

func TestSessionBudgetEndsInRejects(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.BytesDaily = 100_000 })
	v := w.connect(1, 1)
	c, _ := v.certificate("/film/low/0.m4s")
	_, rejected := v.fetch(c)
	if len(rejected) != segment.Pieces(c.Length)-100_000/segment.PieceSize || rejected[0] != peer.RejectBudget {
		t.Errorf("rejected: %v", rejected)
	}
}

func TestManyViewersAskForOneSegmentAtOnce(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, nil)
	var viewers []*viewer
	for i := range byte(6) {
		viewers = append(viewers, w.connect(i+1, int(i)+1))
	}
	id := w.id("/film/high/0.m4s")
	for _, v := range viewers {
		v.session.Send(peer.CertificateRequest{Segments: []segment.ID{id}})
	}
	for _, v := range viewers {
		if m, ok := wait(t, v.answers, "a certificate").(peer.Certificate); !ok || m.Segment != id {
			t.Errorf("answer %+v", m)
		}
	}
	if n := o.count("/vod/film/high/0.m4s"); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
}
