package mpd

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, text string, now time.Time) *Manifest {
	t.Helper()
	m, err := Read([]byte(text), &url.URL{Scheme: "http", Host: "a.test", Path: "/f/x.mpd"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// listed is what is listed of a representation: each period, and what of it.
func listed(r *Representation) string {
	var b strings.Builder
	for _, p := range r.Periods {
		fmt.Fprintf(&b, "[%d.%d %v", p.Period, p.Set, p.Start)
		if p.Ends {
			fmt.Fprintf(&b, "+%v", p.Duration)
		}
		for _, s := range r.Segments[p.From:p.To] {
			name := s.URL.Path[len("/f/"):]
			if s.Init {
				fmt.Fprintf(&b, " (%s %v)", name, s.Start)
			} else {
				fmt.Fprintf(&b, " %s %v+%v", name, s.Start, s.Duration)
			}
		}
		if p.Index != nil {
			fmt.Fprintf(&b, " index %d-%d", p.Index.First, p.Index.Last)
		}
		b.WriteString("]")
	}
	return b.String()
}

func TestPeriodsHaveTheirSegmentsWhereTheyAre(t *testing.T) {
	set := func(addressed string) string {
		return `<AdaptationSet mimeType="video/mp4">` + addressed + `<Representation id="v"/></AdaptationSet>`
	}
	for name, c := range map[string]struct{ text, want string }{
		"numbers": {`<MPD mediaPresentationDuration="PT5S"><Period start="PT1S">` + set(`<SegmentTemplate initialization="i" media="$Number$" duration="2000" timescale="1000" presentationTimeOffset="500"/>`) + `</Period></MPD>`,
			"[0.0 1s+4s (i 1s) 1 1s+2s 2 3s+2s]"},
		"a timeline that begins before its period": {`<MPD><Period duration="PT4S">` + set(`<SegmentTemplate media="$Time$" timescale="10" presentationTimeOffset="15"><SegmentTimeline><S t="10" d="20" r="1"/></SegmentTimeline></SegmentTemplate>`) + `</Period></MPD>`,
			"[0.0 0s+4s 10 -500ms+2s 30 1.5s+2s]"},
		"two periods, and a set of sound before": {`<MPD><Period duration="PT2S">` + set(`<SegmentTemplate media="a$Number$" duration="2"/>`) +
			`</Period><Period duration="PT2S"><AdaptationSet mimeType="audio/mp4"/>` + set(`<SegmentTemplate media="b$Number$" duration="1"/>`) + `</Period></MPD>`,
			"[0.0 0s+2s a1 0s+2s][1.1 2s+2s b1 2s+1s b2 3s+1s]"},
		"the largest endNumber": {`<MPD mediaPresentationDuration="PT2S"><Period>` + set(`<SegmentTemplate media="$Number$" duration="1" endNumber="18446744073709551615"/>`) + `</Period></MPD>`,
			"[0.0 0s+2s 1 0s+1s 2 1s+1s]"},
		"a period that is refused": {`<MPD><Period duration="PT2S">` + set(``) + `</Period><Period duration="PT2S">` + set(`<SegmentTemplate media="b$Number$" duration="2"/>`) + `</Period></MPD>`,
			"[1.0 2s+2s b1 2s+2s]"},
		"a list": {`<MPD><Period>` + set(`<SegmentList duration="2"><Initialization sourceURL="i"/><SegmentURL media="a"/><SegmentURL media="b"/></SegmentList>`) + `</Period></MPD>`,
			"[0.0 0s (i 0s) a 0s+2s b 2s+2s]"},
		"a list with a timeline": {`<MPD><Period>` + set(`<SegmentList startNumber="7"><SegmentTimeline><S t="0" d="3"/><S d="1" r="1"/></SegmentTimeline><SegmentURL media="a"/><SegmentURL media="b"/><SegmentURL media="c"/><SegmentURL media="d"/></SegmentList>`) + `</Period></MPD>`,
			"[0.0 0s a 0s+3s b 3s+3s c 4s+3s d 5s+3s]"},
		"a list that does not say": {`<MPD><Period duration="PT9S">` + set(`<SegmentList><SegmentURL media="a"/></SegmentList>`) + `</Period></MPD>`,
			"[0.0 0s+9s a 0s+0s]"},
		"an index": {`<MPD><Period duration="PT9S">` + set(`<SegmentBase indexRange="100-199"><Initialization range="0-99"/></SegmentBase>`) + `</Period></MPD>`,
			"[0.0 0s+9s (x.mpd 0s) index 100-199]"},
	} {
		if got := listed(read(t, c.text, time.Time{}).Representations[0]); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhenALiveMPDIsToBeLoadedAgain(t *testing.T) {
	const head = `<MPD type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" `
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		head + `/>`: "0s false 0s <nil>",
		head + `minimumUpdatePeriod="PT0S" suggestedPresentationDelay="PT6.5S"/>`:          "0s true 6.5s <nil>",
		head + `minimumUpdatePeriod="PT2S"><Location> ../live/y.mpd </Location></MPD>`:     "2s true 0s http://a.test/live/y.mpd",
		head + `minimumUpdatePeriod="now and then" suggestedPresentationDelay="a while"/>`: "0s false 0s <nil>",
	} {
		m := read(t, text, start)
		if got := fmt.Sprint(m.Update, m.Updates, m.Delay, m.At); got != want || !m.Start.Equal(start) || !m.Live {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTimesThatAreTooLongAreBounded: no moment before the beginning comes of them.
func TestTimesThatAreTooLongAreBounded(t *testing.T) {
	text := `<MPD><Period start="PT8999999999S" duration="PT8999999999S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Time$"><SegmentTimeline>` +
		`<S t="9223372036854775807" d="70368744177663"/></SegmentTimeline></SegmentTemplate><Representation id="v"/></AdaptationSet></Period></MPD>`
	m, err := Read([]byte(text), &url.URL{Path: "/f/x.mpd"}, time.Time{})
	var refused *Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	for _, r := range m.Representations {
		for _, s := range r.Segments {
			if s.Start < 0 {
				t.Errorf("%v", s.Start)
			}
		}
	}
}

func TestWhatAPlayerOfLowLatencyNeeds(t *testing.T) {
	const head = `<MPD type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z">`
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		head + `<ServiceDescription><Scope/><Latency target="1590"/></ServiceDescription></MPD>`:                                                                               1590 * time.Millisecond,
		head + `<ServiceDescription><Latency target="soon"/><Latency target="2000"/></ServiceDescription><ServiceDescription><Latency target="7"/></ServiceDescription></MPD>`: 2 * time.Second,
		head + `<ServiceDescription><Latency target="99999999999"/></ServiceDescription></MPD>`:                                                                                0,
	} {
		if got := read(t, text, start).Latency; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	text := head + `<Period start="PT1S"><AdaptationSet contentType="video"><SegmentTemplate media="$Number$" startNumber="5" duration="2002" timescale="1000" availabilityTimeOffset="%s"/><Representation id="v"/></AdaptationSet></Period></MPD>`
	for _, c := range []struct {
		sooner string
		ms     int
		want   string
	}{
		{"1.5", 1_501, ""}, {"1.5", 1_502, "5@1s"}, {"1.5", 3_001, "5@1s"}, {"1.5", 3_002, ""}, {"1.5", 3_504, "6@3.002s"}, {"2.002", 1_001, "5@1s"},
		{"2.002", 3_003, "6@3.002s"}, {"0", 3_500, ""}, {"2.1", 3_500, ""},
	} {
		now := start.Add(time.Duration(c.ms) * time.Millisecond)
		got := ""
		r := read(t, fmt.Sprintf(text, c.sooner), now).Representations[0]
		if in := r.Periods[0]; in.Chunks != nil {
			for _, g := range in.Chunks.Growing(now) {
				if got += fmt.Sprintf("%s@%v", strings.TrimPrefix(g.URL.Path, "/f/"), g.Start); g.Sequence != in.Chunks.Sequence(g.Start) {
					t.Errorf("%+v", g)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s, %d ms: %q, want %q", c.sooner, c.ms, got, c.want)
		}
	}
}

// TestAnMPDIsListedAnyNumberOfTimes: what it lists at a time does not depend on when it was listed before.
func TestAnMPDIsListedAnyNumberOfTimes(t *testing.T) {
	at := &url.URL{Scheme: "http", Host: "a.test", Path: "/f/x.mpd"}
	set := `<AdaptationSet mimeType="video/mp4"><Representation id="v"/></AdaptationSet>`
	text := `<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" timeShiftBufferDepth="PT10S"><Period start="PT0S" xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="` + resolveToZero + `"/>` +
		`<Period start="PT0S"><SegmentTemplate media="a$Number$" duration="2"/>` + set + `</Period>` +
		`<Period start="PT20S"><SegmentTemplate media="b$Time$"><SegmentTimeline><S t="0" d="2" r="-1"/></SegmentTimeline></SegmentTemplate>` + set + `</Period></MPD>`
	doc, err := Parse([]byte(text), at)
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int64{12, 26, 18, 26} {
		got, err := doc.List(time.Unix(seconds, 0))
		if want := read(t, text, time.Unix(seconds, 0)); err != nil || !reflect.DeepEqual(got, want) || len(got.Representations[0].Segments) == 0 {
			t.Errorf("after %d s: %+v, want %+v: %v", seconds, got, want, err)
		}
	}
}

// BenchmarkALiveMPD has the timelines of seven renditions, each of 1,024 segments.
func BenchmarkALiveMPD(b *testing.B) {
	at := &url.URL{Scheme: "http", Host: "a.test", Path: "/f/x.mpd"}
	text := `<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z"><Period start="PT0S">`
	for i := range 7 {
		text += fmt.Sprintf(`<AdaptationSet mimeType="video/mp4"><SegmentTemplate media="%d/$Time$.m4s" timescale="1000"><SegmentTimeline>`, i)
		for s := range MaxLive {
			text += fmt.Sprintf(`<S t="%d" d="%d"/>`, 2000*s, 2000-s%2)
		}
		text += fmt.Sprintf(`</SegmentTimeline></SegmentTemplate><Representation id="%d"/></AdaptationSet>`, i)
	}
	text += `</Period></MPD>`
	now := time.Unix(3600, 0)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse([]byte(text), at); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		doc, err := Parse([]byte(text), at)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if m, err := doc.List(now); err != nil || len(m.Representations[6].Segments) != MaxLive {
				b.Fatal(err)
			}
		}
	})
}
