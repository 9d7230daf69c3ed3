package playlist

import (
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// vectors is spec/vectors/mpd.json.
type vectors struct {
	Site      site.Config
	Manifests []struct {
		Name, Path, MPD string
		Now             time.Time
		Live            bool
		Bitrate         int64
		Representations []struct {
			Name              string
			Segments, Indexes []segment.Name
		}
		Error mpd.Code
	}
	Indexes []struct {
		Name   string
		First  int64
		Hex    string
		Ranges [][2]int64
		Error  mpd.Code
	}
	Names []struct{ Manifest, ID, Name string }
}

func readVectors(tb testing.TB) vectors { return spec.Vectors[vectors](tb, "mpd.json") }

func TestMPDsListWhatTheVectorsSay(t *testing.T) {
	v := readVectors(t)
	s, err := site.New(v.Site)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Manifests {
		m, media, err := List(s, c.Path, nil, []byte(c.MPD), c.Now)
		var refused *mpd.Error
		if c.Error != "" {
			if !errors.As(err, &refused) || refused.Code != c.Error || m != nil {
				t.Errorf("%s: %v, want %s", c.Name, err, c.Error)
			}
			continue
		}
		if err != nil || media != nil || m.Bitrate != c.Bitrate || len(m.Representations) != len(c.Representations) {
			t.Errorf("%s: %+v, %v", c.Name, m, err)
			continue
		}
		for i, want := range c.Representations {
			got := m.Representations[i]
			if name := mpd.Name(c.Path, got.ID); name != want.Name || got.Live != c.Live {
				t.Errorf("%s: representation %q, live %v; want %q", c.Name, name, got.Live, want.Name)
			}
			var indexes []segment.Name
			for _, x := range got.Indexes {
				indexes = append(indexes, segment.RangeName(x.key, x.First, x.Last))
			}
			sameNames(t, c.Name, namesOf(got.Segments), want.Segments)
			sameNames(t, c.Name, indexes, want.Indexes)
		}
	}
}

func namesOf(entries []Entry) (names []segment.Name) {
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

func sameNames(t *testing.T, of string, got, want []segment.Name) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %q", of, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: segment %d is %q, want %q", of, i, got[i], want[i])
		}
	}
}

func TestIndexesNameRanges(t *testing.T) {
	for _, c := range readVectors(t).Indexes {
		data, err := hex.DecodeString(c.Hex)
		if err != nil {
			t.Fatal(err)
		}
		x := Index{Entry{Path: "/all.mp4"}, mpd.Index{Object: mpd.Object{URL: &url.URL{Path: "/all.mp4"}, Ranged: true, First: c.First}}, "/all.mp4"}
		rep := &Representation{}
		err = rep.Take(x, data)
		var refused *mpd.Error
		if c.Error != "" && (!errors.As(err, &refused) || refused.Code != c.Error) || c.Error == "" && err != nil {
			t.Errorf("%s: %v, want %s", c.Name, err, c.Error)
		}
		var want []segment.Name
		for _, r := range c.Ranges {
			want = append(want, segment.RangeName("/all.mp4", r[0], r[1]))
		}
		sameNames(t, c.Name, namesOf(rep.Segments), want)
	}
}

func TestRepresentationsHaveNames(t *testing.T) {
	for _, c := range readVectors(t).Names {
		manifest, _, _ := strings.Cut(c.Manifest, "#")
		if got := mpd.Name(manifest, c.ID); got != c.Name {
			t.Errorf("%q, want %q", got, c.Name)
		}
	}
}

// TestAnMPDThatGrowsIsBounded: a few bytes that stand for many segments or long URLs cost no more than the bounds.
func TestAnMPDThatGrowsIsBounded(t *testing.T) {
	s := testSite(t)
	head := `<MPD type="static" mediaPresentationDuration="PT60000S"><Period>`
	reps := func(n int, inner string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`<Representation id="` + strings.Repeat("x", i%5) + string(rune('a'+i%26)) + `" bandwidth="1">` + inner + `</Representation>`)
		}
		return b.String()
	}
	long := strings.Repeat("y", 1500)
	for name, text := range map[string]string{
		"many representations of many segments": head + `<AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="1" media="$Number$"/>` + reps(200, "") + `</AdaptationSet></Period></MPD>`,
		"long URLs":                             head + `<AdaptationSet mimeType="video/mp4"><BaseURL>/` + long + `</BaseURL><SegmentTemplate duration="1" media="` + long + `$Number$"/>` + reps(1, "") + `</AdaptationSet></Period></MPD>`,
		"long templates":                        head + `<AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="1" media="` + strings.Repeat("$Number%020d$", 120) + `"/>` + reps(1, "") + `</AdaptationSet></Period></MPD>`,
		"many tags":                             head + strings.Repeat("<S/>", mpd.MaxTags) + `</Period></MPD>`,
		"many periods":                          `<MPD mediaPresentationDuration="PT1S">` + strings.Repeat("<Period/>", mpd.MaxPeriods+1) + `</MPD>`,
		"many periods of representations": `<MPD>` + strings.Repeat(`<Period duration="PT1S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="1" media="$Number$" endNumber="0"/>`+
			reps(128, "")+`</AdaptationSet></Period>`, 600) + `</MPD>`,
		"expansion": `<!DOCTYPE MPD [<!ENTITY a "` + long + `"><!ENTITY b "&a;&a;&a;">]><MPD><BaseURL>&b;</BaseURL></MPD>`,
		"one timeline for many": head + `<SegmentTemplate media="$Number$"><SegmentTimeline>` + strings.Repeat(`<S d="1" r="-1"/>`, 50_000) + `</SegmentTimeline></SegmentTemplate><AdaptationSet mimeType="video/mp4">` +
			strings.Repeat(`<Representation id="a"/>`, 50_000) + `</AdaptationSet></Period></MPD>`,
		"a list too long": head + `<AdaptationSet mimeType="video/mp4"><Representation id="a"><SegmentList duration="1">` + strings.Repeat(`<SegmentURL media="a"/>`, MaxSegments+1) + `</SegmentList></Representation></AdaptationSet></Period></MPD>`,
	} {
		_, _, err := List(s, "/a/b.mpd", nil, []byte(text), time.Time{})
		var refused *mpd.Error
		if !errors.As(err, &refused) || refused.Code != mpd.TooLarge && refused.Code != mpd.DocType {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A live one has the newest, however long ago it began.
	m, _, err := List(s, "/a/b.mpd", nil, []byte(`<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z"><Period start="PT0S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="2" media="$Number$"/><Representation id="a"/></AdaptationSet></Period></MPD>`), time.Unix(1_800_000_000, 0))
	if err != nil || len(m.Representations[0].Segments) != mpd.MaxLive || m.Representations[0].Segments[mpd.MaxLive-1].Name != "/a/900000000" {
		t.Errorf("%+v, %v", m, err)
	}
}

// FuzzMPD: reading ends, within the bounds, and what is listed is named.
func FuzzMPD(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Manifests {
		f.Add([]byte(c.MPD), c.Now.Unix())
	}
	f.Add(chunkedMPD(`<BaseURL availabilityTimeOffset="1">b/</BaseURL>`, periodOf(`start="PT99S"`, `duration="2000" timescale="1000" availabilityTimeOffset=".5"`)), int64(100))
	s := testSite(f)
	f.Fuzz(func(t *testing.T, b []byte, now int64) {
		m, err := mpd.Read(b, &url.URL{Scheme: "http", Host: "video.example.com", Path: "/a/b.mpd"}, time.Unix(now, 0))
		if err != nil {
			var refused *mpd.Error
			if !errors.As(err, &refused) {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		total := 0
		for _, rep := range m.Representations {
			total += len(rep.Segments)
			walked := 0
			for _, p := range rep.Periods {
				if p.From < walked || p.To < p.From || p.To > len(rep.Segments) {
					t.Errorf("a period of %d to %d of %d segments, behind %d", p.From, p.To, len(rep.Segments), walked)
				}
				walked = p.To
			}
		}
		if total > mpd.MaxSegments || len(m.Representations) > mpd.MaxRepresentations {
			t.Errorf("%d segments of %d representations", total, len(m.Representations))
		}
		listed, _, err := List(s, "/a/b.mpd", nil, b, time.Unix(now, 0))
		if err != nil || listed == nil {
			return
		}
		for _, rep := range listed.Representations {
			growing(t, rep.Chunked, time.Unix(now, 0))
			for _, l := range rep.Segments {
				if l.Name == "" || l.Path == "" || l.Path[0] != '/' || l.Ranged && (l.First < 0 || l.Last < l.First) {
					t.Errorf("listed %+v", l)
				}
			}
		}
	})
}

// growing walks a few segments of a stream of chunks.
func growing(t *testing.T, c *Chunked, after time.Time) {
	for range 4 {
		if c == nil {
			return
		}
		next, ok := c.Next(after)
		if !ok {
			return
		}
		if !next.Asked.After(after) || !next.Complete.After(next.Asked) || next.Sequence < 0 || next.Duration < mpd.MinChunked || next.Name == "" || next.Path[0] != '/' || next.Ranged {
			t.Fatalf("after %v: %+v", after, next)
		}
		after = next.Asked
	}
}

// FuzzIndex: a segment index is read to the end, or refused with a code.
func FuzzIndex(f *testing.F) {
	for _, c := range readVectors(f).Indexes {
		data, _ := hex.DecodeString(c.Hex)
		f.Add(data, c.First)
	}
	f.Fuzz(func(t *testing.T, data []byte, first int64) {
		if first < 0 || first > 1<<52 {
			return
		}
		named, err := mpd.Index{Object: mpd.Object{URL: &url.URL{Path: "/a"}, Ranged: true, First: first}}.Segments(data)
		var refused *mpd.Error
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("an error without a code: %v", err)
		}
		if len(named) > 1<<16 {
			t.Errorf("%d segments", len(named))
		}
		for _, s := range named {
			if s.First < first || s.Last < s.First {
				t.Errorf("%+v", s)
			}
		}
	})
}
