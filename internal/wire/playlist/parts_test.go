package playlist

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

const lowLatencyHead = `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,HOLD-BACK=6
#EXT-X-PART-INF:PART-TARGET=0.5
#EXT-X-MEDIA-SEQUENCE:40
`

const lowLatencyText = lowLatencyHead + `#EXT-X-MAP:URI="init.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-26T08:00:00Z
#EXTINF:1,
live-40.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-26T08:00:01Z
#EXT-X-PART:DURATION=0.5,URI="live-41.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.5,URI="live-41.1.m4s?a=b,c"
#EXTINF:1,
live-41.m4s
#EXT-X-PART:DURATION=0.5,URI="live-42.m4s",BYTERANGE="1000@100",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.25,URI="live-42.m4s",BYTERANGE="500",GAP=YES
#EXT-X-PRELOAD-HINT:TYPE=MAP,URI="other.mp4"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="live-42.m4s",BYTERANGE-START=1600
`

func TestReadALowLatencyPlaylist(t *testing.T) {
	_, m, err := Read([]byte(lowLatencyText))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	init := &Object{URI: "init.mp4"}
	low := &LowLatency{
		PartTarget: 500 * time.Millisecond, HoldBack: 1500 * time.Millisecond, Blocks: true, Hint: &Object{URI: "live-42.m4s", Offset: 1600},
		Growing: &Segment{Init: init, Duration: 0.75, At: at.Add(2 * time.Second), Parts: []Part{
			{Object: Object{"live-42.m4s", 100, 1000}, Duration: 0.5, Independent: true}, {Object: Object{"live-42.m4s", 1100, 500}, Duration: 0.25, Gap: true},
		}},
	}
	if !reflect.DeepEqual(m.LowLatency, low) {
		t.Errorf("%+v, growing %+v", m.LowLatency, m.LowLatency.Growing)
	}
	want := []Segment{
		{Object: Object{URI: "live-40.m4s"}, Init: init, Duration: 1, At: at},
		{Object: Object{URI: "live-41.m4s"}, Init: init, Duration: 1, At: at.Add(time.Second), Parts: []Part{
			{Object: Object{URI: "live-41.0.m4s"}, Duration: 0.5, Independent: true}, {Object: Object{URI: "live-41.1.m4s?a=b,c"}, Duration: 0.5},
		}},
	}
	if !reflect.DeepEqual(m.Segments, want) || !m.Live || m.HoldBack != 6*time.Second {
		t.Errorf("%+v", m)
	}
	if sequence, part := m.Next(); sequence != 42 || part != 2 {
		t.Errorf("next is part %d of %d", part, sequence)
	}
}

// TestAStreamThatHasJustBegunHasPartsAlone, or nothing yet.
func TestAStreamThatHasJustBegunHasPartsAlone(t *testing.T) {
	for n := range 3 {
		text := lowLatencyHead + "#EXT-X-MAP:URI=\"init.mp4\"\n#EXT-X-PROGRAM-DATE-TIME:2026-11-26T08:00:00Z\n"
		for i := range n {
			text += fmt.Sprintf("#EXT-X-PART:DURATION=0.5,URI=\"live-40.%d.m4s\"\n", i)
		}
		_, m, err := Read([]byte(text + "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"next.m4s\""))
		if err != nil || m.LowLatency == nil || len(m.Segments) != 0 {
			t.Fatalf("%d parts: %+v, %v", n, m, err)
		}
		if g := m.LowLatency.Growing; n == 0 && g != nil || n > 0 && (len(g.Parts) != n || g.Init == nil || g.At.IsZero()) {
			t.Errorf("%d parts: %+v", n, g)
		}
		if sequence, part := m.Next(); sequence != 40 || part != n || m.LowLatency.Hint.URI != "next.m4s" {
			t.Errorf("%d parts: next is part %d of %d", n, part, sequence)
		}
	}
}

func TestReadRefusesParts(t *testing.T) {
	many := strings.Repeat("#EXT-X-PART:DURATION=0.1,URI=\"a\"\n", MaxParts)
	if _, _, err := Read([]byte(lowLatencyHead + many)); err != nil {
		t.Errorf("%d parts: %v", MaxParts, err)
	}
	for text, want := range map[string]string{
		many + "#EXT-X-PART:DURATION=0.1,URI=\"a\"\n":                         "more than 4096 parts",
		"#EXT-X-PART:DURATION=0.5\n":                                          "no URI",
		"#EXT-X-PART:URI=\"a\"\n":                                             "no duration",
		"#EXT-X-PART:URI=\"a\",DURATION=-1\n":                                 "no duration",
		"#EXT-X-PART:URI=\"a\",DURATION=NaN\n":                                "no duration",
		"#EXT-X-PART:URI=\"a\",DURATION=1,BYTERANGE=\"0@5\"\n":                "byte range",
		"#EXT-X-PART:URI=\"a\",DURATION=1,BYTERANGE=\"x\"\n":                  "byte range",
		"#EXT-X-PART:URI=\"a\",DURATION=1,BYTERANGE=\"9007199254740991@1\"\n": "byte range",
		"#EXT-X-PRELOAD-HINT:TYPE=PART\n":                                     "hints at no part",
		"#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"a\",BYTERANGE-START=-1\n":        "hints at no part",
		"#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n":                                    "leaves out",
		"#EXT-X-PART-INF:PART-TARGET=1e9\n":                                   "no duration",
	} {
		if _, m, err := Read([]byte(lowLatencyHead + text)); err == nil || m != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

func TestListNamesParts(t *testing.T) {
	_, l, err := List(testSite(t), "/media/live/index.m3u8?_HLS_msn=42", nil, []byte(lowLatencyText), time.Time{})
	if err != nil || l.Parts == nil {
		t.Fatalf("%+v, %v", l, err)
	}
	p := l.Parts
	if p.Target != 500*time.Millisecond || !p.Blocks || p.NextSequence != 42 || p.NextPart != 2 {
		t.Errorf("%+v", p)
	}
	type numbered struct {
		Name           segment.Name
		Sequence, Part int
	}
	var got []numbered
	for _, one := range p.Listed {
		got = append(got, numbered{one.Name, int(one.Sequence), one.Part})
	}
	want := []numbered{{"/media/live/live-41.0.m4s", 41, 0}, {"/media/live/live-41.1.m4s?a=b,c", 41, 1}, {"/media/live/live-42.m4s#100-1099", 42, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if h := p.Hint; h == nil || h.Path != "/media/live/live-42.m4s" || !h.Ranged || h.First != 1600 || h.Last != -1 || h.Name != "" {
		t.Errorf("hint %+v", h)
	}
	_, l, err = List(testSite(t), "/media/live/index.m3u8", nil, []byte(lowLatencyHead+"#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"live-40.0.m4s\"\n"), time.Time{})
	if err != nil || l.Parts.Hint == nil || l.Parts.Hint.Name != "/media/live/live-40.0.m4s" || l.Parts.Hint.Ranged {
		t.Errorf("%+v, %v", l, err)
	}
	_, l, err = List(testSite(t), "/media/live/index.m3u8", nil, []byte(mediaText), time.Time{})
	if err != nil || l.Parts != nil {
		t.Errorf("of a playlist without parts: %+v, %v", l, err)
	}
}
