package viewer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

const mpdPath = "/media/film/manifest.mpd"

// byMPD is a viewer of the MPD, of the origin alone.
func byMPD(c *Config) { alone(c); c.URL = "http://film.test" + mpdPath }

// withMPD gives a film an MPD, of which %s in the text is what a test says.
func withMPD(f func(*world) *film, text string) func(*world) *film {
	return func(w *world) *film {
		film := f(w)
		film.files[mpdPath] = []byte(text)
		return film
	}
}

// videoSet is an adaptation set of the film's segments, numbered from a number on.
func videoSet(from int, template string, bandwidths ...int) string {
	text := fmt.Sprintf(`<AdaptationSet contentType="video"><SegmentTemplate media="$RepresentationID$/seg-$Number$.ts" startNumber="%d" %s/>`, from, template)
	for i, b := range bandwidths {
		text += fmt.Sprintf(`<Representation id="%d" bandwidth="%d"/>`, i, b)
	}
	return text + "</AdaptationSet>"
}

const filmMPD = `<MPD type="static" mediaPresentationDuration="PT%dS"><Period>%s</Period></MPD>`

func TestAnMPDIsPlayedAsAPlaylistIs(t *testing.T) {
	text := fmt.Sprintf(filmMPD, 80, videoSet(0, `duration="4"`, 400_000, 1_500_000))
	s := newScene(t, withMPD(fourSeconds(20, 200_000, 750_000), text))
	hls, dash := s.viewer(fast, alone), s.viewer(fast, byMPD)
	s.w.run(90 * time.Second)
	s.check()
	a, b := hls.now(), dash.now()
	if b.Ended != "end" || b.LengthMs != 80_000 || b.Stats.PlayedMs != a.Stats.PlayedMs || b.Stats.PlayedBits != a.Stats.PlayedBits || b.Stats.Stalls != 0 {
		t.Errorf("%q, %d ms long, played %d ms and %d bits, by HLS %d ms and %d bits", b.Ended, b.LengthMs, b.Stats.PlayedMs, b.Stats.PlayedBits, a.Stats.PlayedMs, a.Stats.PlayedBits)
	}
	if d := a.Stats.StartupMs - b.Stats.StartupMs; d < 30 || d > 50 {
		t.Errorf("the first picture comes %d ms sooner: an MPD saves the round trip for a media playlist", d)
	}
	for i, r := range hls.results {
		if o := dash.results[i]; o.Reference != r.Reference {
			t.Errorf("segment %d is %v, by HLS %v", i, o.Reference, r.Reference)
		}
	}
}

// fourByTurns has four viewers come so long after each other, of HLS and of DASH by turns, to one title.
func (s *scene) fourByTurns(pause time.Duration) {
	for i := range 4 {
		s.viewer(fast, func(c *Config) {
			if i%2 == 1 {
				c.URL = "http://film.test" + mpdPath
			}
			c.Title = "film"
		})
		s.w.run(pause)
	}
}

func TestViewersOfHLSAndOfDASHShare(t *testing.T) {
	text := fmt.Sprintf(filmMPD, 80, videoSet(0, `duration="4"`, 1_500_000))
	s := newScene(t, withMPD(fourSeconds(20, 750_000), text))
	s.fourByTurns(5 * time.Second)
	s.w.run(100 * time.Second)
	s.check()
	for i, a := range s.viewers[1:] {
		if sum := a.now(); sum.Stats.Bytes["peer"] == 0 || sum.Manifest != a.cfg.URL {
			t.Errorf("viewer %d of %s: %v", i+1, sum.Manifest, sum.Stats.Bytes)
		}
	}
}

func TestPeriodsArePlayedInTurn(t *testing.T) {
	// The second period has other IDs; the last segment of the first one is cut off by its end.
	text := `<MPD type="static" mediaPresentationDuration="PT42S"><Period duration="PT18S">` + videoSet(0, `duration="4" presentationTimeOffset="100"`, 400_000, 1_500_000) +
		`</Period><Period>` + strings.NewReplacer(`id="0"`, `id="1"`, `id="1"`, `id="0"`).Replace(videoSet(10, `duration="4"`, 1_500_000, 400_000)) + `</Period></MPD>`
	s := newScene(t, withMPD(fourSeconds(20, 200_000, 750_000), text))
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.Rendition = "highest" })
	s.w.run(60 * time.Second)
	s.check()
	if sum := a.now(); sum.Ended != "end" || sum.Stats.PlayedMs != 42_000 || sum.Stats.Stalls != 0 {
		t.Errorf("%q, played %d ms, %d stalls", sum.Ended, sum.Stats.PlayedMs, sum.Stats.Stalls)
	}
	var names []string
	for _, r := range a.results {
		names = append(names, strings.TrimPrefix(r.URL, "http://film.test/media/film/"))
	}
	if got := strings.Join(names, " "); got != "1/seg-0.ts 1/seg-1.ts 1/seg-2.ts 1/seg-3.ts 1/seg-4.ts 1/seg-10.ts 1/seg-11.ts 1/seg-12.ts 1/seg-13.ts 1/seg-14.ts 1/seg-15.ts" {
		t.Error(got)
	}
	if r := a.results[4]; r.Start != 16*time.Second || r.Duration != 2*time.Second {
		t.Errorf("the last one of the first period: %+v", r.Reference)
	}
}

// index is a segment index of so many segments of a size, in ms.
func index(sizes []int, ms ...uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(32+12*len(sizes)))
	b = append(append(b, "sidx"...), make([]byte, 8)...)
	b = binary.BigEndian.AppendUint32(b, 1000)
	b = append(b, make([]byte, 10)...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(sizes)))
	for i, size := range sizes {
		b = binary.BigEndian.AppendUint32(b, uint32(size))
		b = binary.BigEndian.AppendUint32(b, ms[i%len(ms)])
		b = append(b, 0x90, 0, 0, 0)
	}
	return b
}

// single is a film of single files, each with its index, of segments of so many ms in turn.
func single(w *world, cuts ...[]uint32) *film {
	f := newFilm(w, 0, 4*time.Second, 1)
	text := `<AdaptationSet contentType="video">`
	for i, ms := range cuts {
		sizes := make([]int, 10)
		for n := range sizes {
			sizes[n] = 100_000 * (i + 1)
		}
		x := index(sizes, ms...)
		file := append(append(make([]byte, 100), x...), noise()[:1_000_000*(i+1)]...)
		f.files[fmt.Sprintf("/media/film/%d.ts", i)] = file
		text += fmt.Sprintf(`<Representation id="%d" bandwidth="%d"><BaseURL>%d.ts</BaseURL><SegmentBase indexRange="100-%d"><Initialization range="0-99"/></SegmentBase></Representation>`,
			i, 400_000*(i+1), i, 100+len(x)-1)
	}
	f.files[mpdPath] = fmt.Appendf(nil, filmMPD, 40, text+"</AdaptationSet>")
	return f
}

func TestASingleFileIsPlayedByItsIndex(t *testing.T) {
	s := newScene(t, func(w *world) *film { return single(w, []uint32{4000}) })
	var got []byte
	a := s.viewer(fast, func(c *Config) {
		byMPD(c)
		c.OnSegment = func(r *Result) {
			for _, p := range r.Pieces {
				got = append(got, p...)
			}
		}
	})
	s.w.run(50 * time.Second)
	s.check()
	all := s.film.files["/media/film/0.ts"]
	if sum := a.now(); sum.Ended != "end" || sum.Stats.PlayedMs != 40_000 || len(got) != 1_000_100 || string(got[100:]) != string(all[len(all)-1_000_000:]) {
		t.Errorf("%q, played %d ms, %d bytes", sum.Ended, sum.Stats.PlayedMs, len(got))
	}
}

// TestARenditionThatIsCutElsewhereIsNotPlayed: the player could not go from one to the other.
func TestARenditionThatIsCutElsewhereIsNotPlayed(t *testing.T) {
	s := newScene(t, func(w *world) *film {
		return single(w, []uint32{4000}, []uint32{4001, 3999}, []uint32{6000, 2000})
	})
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.OnSegment = nil })
	s.w.run(50 * time.Second)
	s.check()
	sum := a.now()
	if sum.Ended != "end" || sum.Stats.PlayedMs != 40_000 || sum.Stats.Switches != 1 || len(a.player.tracks[0].levels) != 2 {
		t.Errorf("%q, played %d ms, %d switches", sum.Ended, sum.Stats.PlayedMs, sum.Stats.Switches)
	}
}

func TestSoundIsATrackOfItsOwn(t *testing.T) {
	sound := `<AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="1/seg-$Number$.ts" startNumber="0" timescale="48000"><SegmentTimeline>` +
		`<S t="0" d="96256" r="1"/><S d="95232"/><S d="96256"/><S d="94000"/></SegmentTimeline></SegmentTemplate><Representation id="a" bandwidth="64000"/></AdaptationSet>`
	s := newScene(t, withMPD(func(w *world) *film { return newFilm(w, 5, 2*time.Second, 100_000, 16_000) },
		fmt.Sprintf(filmMPD, 10, sound+videoSet(0, `duration="2"`, 400_000))))
	a := s.viewer(fast, byMPD)
	s.w.run(20 * time.Second)
	s.check()
	if sum := a.now(); sum.Ended != "end" || sum.Stats.PlayedMs != 10_000 || len(a.results) != 10 || sum.Stats.PlayedBits != 4_000_000 {
		t.Errorf("%q, played %d ms and %d bits, %d segments", sum.Ended, sum.Stats.PlayedMs, sum.Stats.PlayedBits, len(a.results))
	}
}

func TestAnMPDThatCannotBePlayedSaysWhy(t *testing.T) {
	set := func(inner string) string {
		return fmt.Sprintf(filmMPD, 10, `<AdaptationSet contentType="video"><Representation id="0">`+inner+`</Representation></AdaptationSet>`)
	}
	for text, c := range map[string]struct {
		code   mpd.Code
		says   string
		change func(*Config)
	}{
		`<html><body>gone</body></html>`:        {mpd.Malformed, "", nil},
		`<MPD`:                                  {mpd.Malformed, "", nil},
		`<MPD><Period href="http://x/"/></MPD>`: {mpd.Remote, "", nil},
		set(""):                                 {mpd.NoIndex, "", nil},
		set(`<SegmentTemplate media="$What$" duration="2"/>`):                                  {mpd.Template, "", nil},
		set(`<SegmentBase indexRange="0-3"/>`):                                                 {mpd.NoIndex, "", nil},
		fmt.Sprintf(filmMPD, 10, ""):                                                           {"", "no renditions", nil},
		set(`<SegmentList><SegmentURL media="a.ts"/><SegmentURL media="b.ts"/></SegmentList>`): {"", "no renditions", nil},
		`<MPD type="dynamic" availabilityStartTime="2027-01-01T00:00:00Z"><Period start="PT0S">` + videoSet(0, `duration="2"`, 1) + `</Period></MPD>`: {
			"", "live streams are played at speed 1 alone", func(c *Config) { c.Speed = 2 }},
		fmt.Sprintf(filmMPD, 4, videoSet(0, `duration="2"`, 1)): {"", `no rendition is called "720p"`, func(c *Config) { c.Rendition = "720p" }},
	} {
		s := newScene(t, withMPD(fourSeconds(1, 1000), text))
		a := s.viewer(fast, func(cfg *Config) {
			byMPD(cfg)
			if c.change != nil {
				c.change(cfg)
			}
		})
		s.w.run(time.Minute)
		var refused *mpd.Error
		err := a.Err()
		if err == nil || c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s %s", text, err, c.code, c.says)
		}
	}
}
