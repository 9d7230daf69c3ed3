package viewer

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// alone is a viewer of the origin alone.
func alone(c *Config) { c.Tracker = "" }

func TestStartupAndStallsOfASlowLine(t *testing.T) {
	s := newScene(t, fourSeconds(10, 500_000)) // 1 Mbit/s
	slow := access{up: 1e6, down: 100_000}     // 0.8 Mbit/s: a segment takes 5 s
	a := s.viewer(slow, alone)
	s.w.run(80 * time.Second)
	s.check()
	sum := a.now()
	// Playlists take 2 × (30 + 10) ms and next to nothing on the line, the first segment 5.04 s.
	if st := sum.Stats.StartupMs; st < 5_080 || st > 5_200 {
		t.Errorf("startup after %d ms", st)
	}
	// Each further segment comes 5.04 s after the one before, of which 4 s are played.
	if sum.Stats.Stalls != 9 || sum.Stats.StallMs < 9*1_000 || sum.Stats.StallMs > 9*1_100 {
		t.Errorf("%d stalls of %d ms", sum.Stats.Stalls, sum.Stats.StallMs)
	}
	if sum.Stats.PlayedMs != 40_000 || sum.MeanBitrate != 1_000_000 || sum.Ended != "end" {
		t.Errorf("played %d ms at %d bit/s, ended %q", sum.Stats.PlayedMs, sum.MeanBitrate, sum.Ended)
	}
	if math.Abs(sum.StallRatio-float64(sum.Stats.StallMs)/float64(40_000+sum.Stats.StallMs)) > 1e-9 {
		t.Errorf("stall ratio %f", sum.StallRatio)
	}
	if got := sum.Stats.Reasons["policy"]; got != 10 || sum.Stats.Bytes["origin"] != 5_000_000 {
		t.Errorf("%v, %v", sum.Stats.Reasons, sum.Stats.Bytes)
	}
}

func TestThePlayerKeepsItsBufferAndNoMore(t *testing.T) {
	s := newScene(t, fourSeconds(40, 100_000))
	a := s.viewer(fast, func(c *Config) { alone(c); c.Buffer = 20 * time.Second })
	for range 30 {
		s.w.run(time.Second)
		if b := a.now().BufferMs; b > 24_000 {
			t.Fatalf("%d ms are buffered", b)
		}
	}
	if b := a.now().BufferMs; b < 19_000 {
		t.Errorf("%d ms are buffered", b)
	}
}

func TestSeeksWaitWithoutAStall(t *testing.T) {
	s := newScene(t, fourSeconds(40, 500_000))
	a := s.viewer(access{up: 1e6, down: 250_000}, func(c *Config) {
		alone(c)
		c.Seeks = []Seek{{After: 5 * time.Second, To: 2 * time.Minute}, {After: 15 * time.Second, To: time.Second}}
		c.Leave = 30 * time.Second
	})
	s.w.run(8 * time.Second)
	if p := a.now().PositionMs; p != 120_000 {
		t.Errorf("at %d ms after a seek to where nothing is", p)
	}
	s.w.run(32 * time.Second)
	s.check()
	sum := a.now()
	if sum.Stats.Stalls != 0 || sum.Seeks != 2 || sum.SeekMs < 2_000 || sum.SeekMs > 4_200 {
		t.Errorf("%d stalls, %d seeks, waited %d ms: one of them was into the buffer", sum.Stats.Stalls, sum.Seeks, sum.SeekMs)
	}
	if sum.Ended != "left" || sum.WatchedMs != 30_000 {
		t.Errorf("ended %q after %d ms", sum.Ended, sum.WatchedMs)
	}
	if n := s.film.sent["/media/film/0/seg-0.ts"]; n != 1 {
		t.Errorf("the first segment was fetched %d times: what was played stays buffered", n)
	}
}

func TestSpeedShowsTheFilmFaster(t *testing.T) {
	s := newScene(t, fourSeconds(20, 100_000))
	a := s.viewer(fast, func(c *Config) { c.Speed = 8; c.JoinAfter = -1 })
	s.w.run(11 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.PlayedMs != 10_000 || sum.MeanBitrate != 200_000 || sum.PositionMs != 80_000 || sum.LengthMs != 80_000 {
		t.Errorf("%+v", sum)
	}
}

func TestRenditionsFollowTheLine(t *testing.T) {
	sizes := []int{150_000, 500_000, 1_500_000} // 0.3, 1, 3 Mbit/s
	for name, c := range map[string]struct {
		down    float64
		want    string
		bitrate int64
	}{
		"1 Mbit/s":  {125_000, "1x0", 300_000},
		"2 Mbit/s":  {250_000, "1x1", 1_000_000},
		"20 Mbit/s": {2_500_000, "1x2", 3_000_000},
	} {
		s := newScene(t, fourSeconds(30, sizes...))
		a := s.viewer(access{up: 1e6, down: c.down}, alone)
		s.w.run(130 * time.Second)
		s.check()
		last, sum := a.results[len(a.results)-1], a.now()
		if last.Rendition != c.want || sum.MeanBitrate > c.bitrate || sum.MeanBitrate < c.bitrate*7/10 || sum.Stats.Stalls > 0 {
			t.Errorf("%s: last %s, mean %d, %d stalls", name, last.Rendition, sum.MeanBitrate, sum.Stats.Stalls)
		}
		if a.results[0].Rendition != "1x0" {
			t.Errorf("%s: begins with %s before anything was measured", name, a.results[0].Rendition)
		}
	}
	for name, want := range map[string]string{"lowest": "1x0", "highest": "1x2", "1x1": "1x1"} {
		s := newScene(t, fourSeconds(3, sizes...))
		a := s.viewer(fast, func(c *Config) { alone(c); c.Rendition = name })
		s.w.run(20 * time.Second)
		if r := a.results[0].Rendition; r != want || len(a.results) != 3 {
			t.Errorf("%s: %s", name, r)
		}
	}
	s := newScene(t, fourSeconds(3, sizes...))
	a := s.viewer(fast, func(c *Config) { c.Rendition = "4k" })
	s.w.run(time.Second)
	if a.Err() == nil || !strings.Contains(a.Err().Error(), `"4k"`) || a.now().Ended != "error" {
		t.Errorf("a rendition that is not there: %v", a.Err())
	}
}

// TestSegmentsThatAreTooShortForASampleLeadToOthers: the rendition that fits before anything was measured has segments below 64 KiB.
func TestSegmentsThatAreTooShortForASampleLeadToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		down float64
		want string
	}{
		"0.5 Mbit/s": {62_500, "1x1"},
		"20 Mbit/s":  {2_500_000, "1x2"},
	} {
		s := newScene(t, func(w *world) *film { return newFilm(w, 40, 2*time.Second, 30_000, 60_000, 500_000) }) // 0.12, 0.24, 2 Mbit/s
		a := s.viewer(access{up: 1e6, down: c.down}, alone)
		s.w.run(90 * time.Second)
		s.check()
		last, sum := a.results[len(a.results)-1], a.now()
		if a.results[0].Rendition != "1x1" || last.Rendition != c.want || sum.Stats.Stalls > 0 || sum.Stats.Switches > 1 {
			t.Errorf("%s: from %s to %s, %d switches, %d stalls", name, a.results[0].Rendition, last.Rendition, sum.Stats.Switches, sum.Stats.Stalls)
		}
	}
}

// TestTheLineIsLookedAtOnceAMinute has a viewer whose segments all come from others: the origin is asked now and then, so
// that the choice of renditions follows the line; what is fetched ahead leaves a segment out for that.
func TestTheLineIsLookedAtOnceAMinute(t *testing.T) {
	for _, prefetch := range []bool{false, true} {
		s := newScene(t, fourSeconds(60, 150_000, 500_000))
		s.tracker.policy.Prefetch = prefetch
		s.viewer(fast, nil)
		s.w.run(20 * time.Second)
		a := s.viewer(access{up: 12.5e6, down: 450e3}, nil) // below four times what is played
		s.w.run(300 * time.Second)
		s.check()
		st := a.now().Stats
		if n := st.Reasons["policy"]; n < 2 || n > 5 {
			t.Errorf("prefetch %v: %d looks in four minutes: %v", prefetch, n, st.Reasons)
		}
		if prefetch != (st.PrefetchedBytes > 5_000_000) {
			t.Errorf("prefetch %v: %d bytes came ahead", prefetch, st.PrefetchedBytes)
		}
	}
}

func TestAnOriginThatComesBackIsAskedAgain(t *testing.T) {
	s := newScene(t, fourSeconds(10, 100_000))
	a := s.viewer(fast, func(c *Config) { alone(c); c.Buffer = 10 * time.Second })
	s.w.run(5 * time.Second)
	s.film.broken = true
	s.w.run(30 * time.Second)
	if sum := a.now(); sum.Errors < 4 || sum.Stats.Stalls != 1 || !strings.Contains(sum.LastError, "does not answer") {
		t.Errorf("%d errors, %d stalls, %s", sum.Errors, sum.Stats.Stalls, sum.LastError)
	}
	s.film.broken = false
	s.w.run(60 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.StallMs < 15_000 || sum.Stats.PlayedMs != 40_000 {
		t.Errorf("stalled %d ms, played %d", sum.Stats.StallMs, sum.Stats.PlayedMs)
	}
}

func TestAManifestThatCannotBeHadEndsIt(t *testing.T) {
	s := newScene(t, fourSeconds(10, 100_000))
	s.film.broken = true
	a := s.viewer(fast, nil)
	s.w.run(6 * time.Second)
	if a.isDone() {
		t.Error("gave up after six seconds")
	}
	s.w.run(3 * time.Second)
	if sum := a.now(); a.Err() == nil || sum.Ended != "error" || sum.Errors != 4 || !strings.Contains(sum.Error, "the origin does not answer") {
		t.Errorf("%v: %+v", a.Err(), sum)
	}
}

// TestAPlaylistWithoutAnEndIsNotTaken, be it the first one or one of a rendition.
func TestAPlaylistWithoutAnEndIsNotTaken(t *testing.T) {
	for _, file := range []string{"master.m3u8", "0/index.m3u8"} {
		s := newScene(t, fourSeconds(3, 100_000))
		of := "/media/film/" + file
		s.film.files[of] = append(s.film.files[of], bytes.Repeat([]byte("#"), playlist.MaxBytes)...)
		a := s.viewer(fast, alone)
		s.w.run(30 * time.Second)
		if sum := a.now(); len(a.results) > 0 || sum.Errors < 4 || sum.LastError != ErrTooLarge.Error() {
			t.Errorf("%s: %d segments, %+v", file, len(a.results), sum)
		}
	}
}

func TestPlaylists(t *testing.T) {
	base := "https://video.test/film/master.m3u8?session=1"
	video, audio, list, err := parsePlaylist(base, nil, []byte(`#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",URI="audio/en.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=3000000,AUDIO="a",NAME="high"
high/index.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=1000000,AUDIO="a",RESOLUTION=640x360
https://cdn.test/low/index.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"
`), 2)
	if err != nil || list != nil || len(video) != 2 || len(audio) != 1 {
		t.Fatalf("%v %v %v %v", video, audio, list, err)
	}
	if v := video[0]; v.url != "https://cdn.test/low/index.m3u8" || v.bitrate != 2_000_000 || v.name != "640x360" {
		t.Errorf("%+v", v)
	}
	if video[1].url != "https://video.test/film/high/index.m3u8" || audio[0].url != "https://video.test/film/audio/en.m3u8" {
		t.Errorf("%s, %s", video[1].url, audio[0].url)
	}
	_, _, list, err = parsePlaylist("https://video.test/film/a/index.m3u8", nil, []byte(`#EXTM3U
#EXT-X-TARGETDURATION:6
#EXT-X-MAP:URI="all.mp4",BYTERANGE="800@0"
#EXTINF:6.0,
#EXT-X-BYTERANGE:1000@800
all.mp4
#EXTINF:4.0,
#EXT-X-BYTERANGE:500
all.mp4
#EXT-X-ENDLIST
`), 1)
	if err != nil || len(list.entries) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	second := list.entries[1]
	if second.First != 1800 || second.Last != 2299 || second.Start != 6*time.Second || second.Duration != 4*time.Second {
		t.Errorf("%+v", second)
	}
	if i := second.init; i == nil || i.URL != "https://video.test/film/a/all.mp4" || i.First != 0 || i.Last != 799 {
		t.Errorf("init %+v", i)
	}
	for text, want := range map[string]string{
		"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n": "live streams",
		"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST\n":   "no segments",
		"<html>": "playlist /film/master.m3u8",
	} {
		if _, _, _, err := parsePlaylist(base, nil, []byte(text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestVariablesOfPlaylistsAreFilledIn: those of the master, its own, and those of its URL's query.
func TestVariablesOfPlaylistsAreFilledIn(t *testing.T) {
	s := newScene(t, fourSeconds(2, 100_000))
	f := s.film.files
	f["/media/film/master.m3u8"] = []byte("#EXTM3U\n#EXT-X-DEFINE:NAME=\"dir\",VALUE=\"0\"\n#EXT-X-STREAM-INF:BANDWIDTH=200000\n{$dir}/index.m3u8?n=1\n")
	f["/media/film/0/index.m3u8?n=1"] = []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:IMPORT=\"dir\"\n#EXT-X-DEFINE:QUERYPARAM=\"n\"\n#EXT-X-DEFINE:NAME=\"seg\",VALUE=\"../{$dir}/seg\"\n" +
		"#EXTINF:4,\n{$seg}-0.ts\n#EXTINF:4,\n{$seg}-{$n}.ts\n#EXT-X-ENDLIST\n")
	a := s.viewer(fast, alone)
	s.w.run(15 * time.Second)
	s.check()
	if len(a.results) != 2 || a.now().Stats.PlayedMs != 8_000 {
		t.Errorf("%d segments, played %d ms", len(a.results), a.now().Stats.PlayedMs)
	}
}

func TestAudioOfItsOwnIsPlayedBesideVideo(t *testing.T) {
	s := newScene(t, fourSeconds(5, 100_000))
	f := s.film.files
	f["/media/film/master.m3u8"] = []byte("#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"audio.m3u8\"\n" +
		"#EXT-X-STREAM-INF:BANDWIDTH=200000,AUDIO=\"a\"\n0/index.m3u8\n")
	f["/media/film/audio.m3u8"] = []byte("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:10,\na0.ts\n#EXTINF:10,\na1.ts\n#EXT-X-ENDLIST\n")
	f["/media/film/init.mp4"], f["/media/film/a0.ts"], f["/media/film/a1.ts"] = []byte("init"), []byte("audio 0"), []byte("audio 1")
	a := s.viewer(fast, alone)
	s.w.run(30 * time.Second)
	s.check()
	if len(a.results) != 5+3 || a.now().Stats.PlayedMs != 20_000 {
		t.Errorf("%d segments, played %d ms", len(a.results), a.now().Stats.PlayedMs)
	}
}

// TestSoundThatIsShorterThanThePicture does not keep the film from its end.
func TestSoundThatIsShorterThanThePicture(t *testing.T) {
	s := newScene(t, func(w *world) *film {
		f := newFilm(w, 5, 2*time.Second, 100_000, 16_000)
		f.files["/media/film/master.m3u8"] = []byte("#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"1/index.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=400000,AUDIO=\"a\"\n0/index.m3u8\n")
		f.files["/media/film/1/index.m3u8"] = []byte("#EXTM3U\n#EXTINF:2,\nseg-0.ts\n#EXTINF:2,\nseg-1.ts\n#EXTINF:1.97,\nseg-2.ts\n#EXT-X-ENDLIST\n")
		return f
	})
	a := s.viewer(fast, alone)
	s.w.run(20 * time.Second)
	s.check()
	if sum := a.now(); sum.Ended != "end" || sum.Stats.PlayedMs != 10_000 || sum.Stats.Stalls != 0 {
		t.Errorf("%q, played %d ms, %d stalls", sum.Ended, sum.Stats.PlayedMs, sum.Stats.Stalls)
	}
}
