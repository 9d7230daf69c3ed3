package playlist

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// chunkedMPD is a live MPD that began at 1970, with a set of the periods that are given.
func chunkedMPD(base, periods string) []byte {
	return []byte(`<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z">` + base + periods + `</MPD>`)
}

func periodOf(attributes, template string) string {
	return `<Period ` + attributes + `><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$RepresentationID$/$Number%05d$-$Time$.m4s" ` + template +
		`/><Representation id="low" bandwidth="1"/></AdaptationSet></Period>`
}

// rated is a period whose representation has so many bits a second.
func rated(bandwidth int, period string) string {
	return strings.Replace(period, `bandwidth="1"`, fmt.Sprintf(`bandwidth="%d"`, bandwidth), 1)
}

func at(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

// TestASegmentCanBeAskedForBeforeItIsComplete: a stream of chunks says when, under which name, and where the segment is on the timeline.
func TestASegmentCanBeAskedForBeforeItIsComplete(t *testing.T) {
	const two = `duration="2000" timescale="1000" `
	s := testSite(t)
	for name, c := range map[string]struct {
		base, periods string
		after         float64
		want          string // name, sequence, when; empty: it is no stream of chunks
	}{
		"a template":                      {"", periodOf(``, two+`availabilityTimeOffset="1.5"`), 100, "/a/low/00051-100000.m4s 50 100.5"},
		"not at once":                     {"", periodOf(``, two+`availabilityTimeOffset="1.5"`), 100.5, "/a/low/00052-102000.m4s 51 102.5"},
		"before the first":                {"", periodOf(`start="PT300S"`, two+`availabilityTimeOffset="1.5"`), 100, "/a/low/00001-0.m4s 150 300.5"},
		"all of a segment":                {"", periodOf(``, two+`availabilityTimeOffset="2" startNumber="0"`), 99.999, "/a/low/00050-100000.m4s 50 100"},
		"of an address":                   {`<BaseURL availabilityTimeOffset="1.5">b/</BaseURL>`, periodOf(``, two), 100, "/a/b/low/00051-100000.m4s 50 100.5"},
		"of both":                         {`<BaseURL availabilityTimeOffset="1">b/</BaseURL>`, periodOf(``, two+`availabilityTimeOffset=".5"`), 100, "/a/b/low/00051-100000.m4s 50 100.5"},
		"of the level above":              {"", `<Period><SegmentTemplate availabilityTimeOffset="1.5" ` + two + `/><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$"/><Representation id="low"/></AdaptationSet></Period>`, 100, "/a/51 50 100.5"},
		"an offset of the presentation":   {"", periodOf(``, two+`availabilityTimeOffset="1.5" presentationTimeOffset="500"`), 100, "/a/low/00051-100500.m4s 50 100.5"},
		"a period that does not fit":      {"", periodOf(`start="PT51S"`, two+`availabilityTimeOffset="1.5"`), 100, "/a/low/00026-50000.m4s 51 101.5"},
		"a period that fits less":         {"", periodOf(`start="PT50.9S"`, two+`availabilityTimeOffset="1.5"`), 101, "/a/low/00026-50000.m4s 50 101.4"},
		"the period that is now":          {"", periodOf(`start="PT0S"`, two+`availabilityTimeOffset="1.5"`) + periodOf(`start="PT60S"`, two+`availabilityTimeOffset="1.5"`), 100, "/a/low/00021-40000.m4s 50 100.5"},
		"the period that comes":           {"", periodOf(`start="PT0S"`, two+`availabilityTimeOffset="1.5"`) + periodOf(`start="PT102S"`, two+`availabilityTimeOffset="1.5"`), 101, "/a/low/00001-0.m4s 51 102.5"},
		"behind a period of another host": {"", `<Period duration="PT110S"><BaseURL>https://ads.example.net/</BaseURL><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$" ` + two + `availabilityTimeOffset="1.5"/><Representation id="low"/></AdaptationSet></Period>` + periodOf(``, two+`availabilityTimeOffset="1.5"`), 100, "/a/low/00001-0.m4s 55 110.5"},
		"the end of a period":             {"", periodOf(`start="PT0S" duration="PT101S"`, two+`availabilityTimeOffset="1.5"`), 101, ""},
		"a shorter segment at the end":    {"", periodOf(`start="PT0S" duration="PT103S"`, two+`availabilityTimeOffset="1.5"`), 101, "/a/low/00052-102000.m4s 51 102.5"},
		"the last number":                 {"", periodOf(``, two+`availabilityTimeOffset="1.5" endNumber="50"`), 100, ""},
		"no offset":                       {"", periodOf(``, two), 100, ""},
		"an offset of nothing":            {"", periodOf(``, two+`availabilityTimeOffset="0"`), 100, ""},
		"an offset back":                  {"", periodOf(``, two+`availabilityTimeOffset="-1"`), 100, ""},
		"complete all the time":           {"", periodOf(``, two+`availabilityTimeOffset="INF"`), 100, ""},
		"complete by then":                {"", periodOf(``, two+`availabilityTimeOffset="1.5" availabilityTimeComplete="true"`), 100, ""},
		"complete, as XML has it, too":    {"", periodOf(``, two+`availabilityTimeOffset="1.5" availabilityTimeComplete=" 1 "`), 100, ""},
		"complete, of an address":         {`<BaseURL availabilityTimeOffset="1.5" availabilityTimeComplete="true">b/</BaseURL>`, periodOf(``, two), 100, ""},
		"complete, of the level above":    {"", `<Period><SegmentTemplate availabilityTimeComplete="true" ` + two + `/><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$" availabilityTimeOffset="1.5"/><Representation id="low"/></AdaptationSet></Period>`, 100, ""},
		"not complete":                    {"", periodOf(``, two+`availabilityTimeOffset="1.5" availabilityTimeComplete="false"`), 100, "/a/low/00051-100000.m4s 50 100.5"},
		"sooner than it begins":           {"", periodOf(``, two+`availabilityTimeOffset="2.001"`), 100, ""},
		"segments that are short":         {"", periodOf(``, `timescale="1000" duration="499" availabilityTimeOffset=".4"`), 100, ""},
		"segments of 8 MiB":               {"", rated(33_554_432, periodOf(``, two+`availabilityTimeOffset="1.5"`)), 100, "/a/low/00051-100000.m4s 50 100.5"},
		"segments of a bit more":          {"", rated(33_554_433, periodOf(``, two+`availabilityTimeOffset="1.5"`)), 100, ""},
		"segments without end":            {"", rated(0, periodOf(``, `timescale="1" duration="18446744073709551615" availabilityTimeOffset=".4"`)), 100, "/a/low/00001-0.m4s 0 9223372036.45477"},
		"numbers without end":             {"", periodOf(``, two+`availabilityTimeOffset="1.5" startNumber="18446744073709551600"`), 100, ""},
		"segments of their own durations": {"", periodOf(``, `availabilityTimeOffset="1.5" timescale="1000"><SegmentTimeline><S t="0" d="2000" r="-1"/></SegmentTimeline></SegmentTemplate><SegmentTemplate`), 100, ""},
	} {
		m, _, err := List(s, "/a/b.mpd", nil, chunkedMPD(c.base, c.periods), at(100))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if chunked := m.Representations[0].Chunked; chunked != nil {
			if next, ok := chunked.Next(at(c.after)); ok {
				got = fmt.Sprintf("%s %d %.15g", next.Name, next.Sequence, float64(next.Asked.UnixNano())/1e9)
				if next.Path != string(next.Name) || next.Ranged {
					t.Errorf("%s: %+v", name, next)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPlayersAndSeedsMeanTheSameByATurn: a player knows start and end of a segment, in seconds since 1970 where the timeline began then, or
// start and duration. Sound is often cut into segments of whole frames, which play for no whole number of microseconds.
func TestPlayersAndSeedsMeanTheSameByATurn(t *testing.T) {
	for _, c := range []struct{ duration, scale int }{{2, 1}, {192, 100}, {2002, 1000}, {96256, 48000}, {88064, 44100}, {180180, 90000}} {
		template := fmt.Sprintf(`duration="%d" timescale="%d" availabilityTimeOffset="1"`, c.duration, c.scale)
		for _, now := range []float64{10, 1e6, 1.79e9} {
			m, _, err := List(testSite(t), "/a/b.mpd", nil, chunkedMPD("", periodOf(``, template)), at(now))
			if err != nil {
				t.Fatal(err)
			}
			next, ok := m.Representations[0].Chunked.Next(at(now))
			number := 0
			if _, err := fmt.Sscanf(next.Path, "/a/low/%d-", &number); err != nil || !ok {
				t.Fatalf("%+v, %v", next, err)
			}
			lasts := float64(c.duration) / float64(c.scale)
			start, end := float64(number-1)*lasts, float64(number)*lasts
			for how, lasts := range map[string]float64{"by its duration": lasts, "by its end": end - start} {
				if want := int64(math.Floor(start*1000/(math.Round(lasts*1e6)/1000) + 0.5)); next.Sequence != want {
					t.Errorf("segment %d of %d/%d s, %s: %d at a seed, %d at a page", number, c.duration, c.scale, how, next.Sequence, want)
				}
			}
		}
	}
}

// TestAnOffsetThatIsNoneLeavesSegments: complete ones are listed as before, and the operator is told.
func TestAnOffsetThatIsNoneLeavesSegments(t *testing.T) {
	for _, offset := range []string{"soon", "NaN", "1e999", "1,5"} {
		m, _, err := List(testSite(t), "/a/b.mpd", nil, chunkedMPD("", periodOf(``, `duration="2" availabilityTimeOffset="`+offset+`"`)), at(100))
		if err != nil {
			t.Fatal(err)
		}
		var refused *mpd.Error
		if rep := m.Representations[0]; rep.Chunked != nil || len(rep.Segments) != 50 || !errors.As(m.Refused, &refused) || refused.Code != mpd.Malformed {
			t.Errorf("%s: %+v, %v", offset, rep, m.Refused)
		}
	}
}

// TestAStreamOfChunksThatHasNoSegmentYetIsListed.
func TestAStreamOfChunksThatHasNoSegmentYetIsListed(t *testing.T) {
	m, _, err := List(testSite(t), "/a/b.mpd", nil, chunkedMPD("", periodOf(`start="PT100S"`, `duration="2" availabilityTimeOffset="2"`)), at(100))
	if err != nil || len(m.Representations) != 1 || m.Representations[0].Chunked.Duration() != 2*time.Second || m.Representations[0].Chunked.Weight() < 512 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestASegmentThatIsNotTheSitesIsNotNamed.
func TestASegmentThatIsNotTheSitesIsNotNamed(t *testing.T) {
	m, _, err := List(testSite(t), "/a/b.mpd", nil, chunkedMPD("<BaseURL>https://elsewhere.example.net/</BaseURL>", periodOf(``, `duration="2" availabilityTimeOffset="2"`)), at(100))
	if err != nil {
		t.Fatal(err)
	}
	if next, ok := m.Representations[0].Chunked.Next(at(100)); ok {
		t.Errorf("%+v", next)
	}
}
