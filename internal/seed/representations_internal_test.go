package seed

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
)

// What a segment index has that names one range, which begins where it ends, and what the range has, bytes.
const indexLength, rangeLength = 44, 500

// mpd is a film whose representations have an index each.
func (o *stations) mpd() []byte {
	return []byte(`<MPD type="static" mediaPresentationDuration="PT6S"><Period><AdaptationSet mimeType="video/mp4">` + repeat(
		`<Representation id="%d" bandwidth="9"><BaseURL>%[1]d.mp4</BaseURL><SegmentBase indexRange="0-43"/></Representation>`, o.renditions) + `</AdaptationSet></Period></MPD>`)
}

func segmentIndex() []byte {
	index := binary.BigEndian.AppendUint32(nil, indexLength)
	index = append(index, "sidx\x00\x00\x00\x00"...)
	for _, n := range []uint32{1, 1000, 0, 0, 1, rangeLength, 6000, 0} {
		index = binary.BigEndian.AppendUint32(index, n)
	}
	return index
}

func indexedID(title string, rendition int) segment.ID {
	return segment.NewID("demo", segment.RangeName(fmt.Sprintf("%s/%d.mp4", title, rendition), indexLength, indexLength+rangeLength-1))
}

// TestAnIndexThatHangsHoldsBackNoOther: viewers of the other representations of an MPD wait no longer for it than for what they need.
func TestAnIndexThatHangsHoldsBackNoOther(t *testing.T) {
	inStations(t, 8, "", func(t *testing.T, o *stations) {
		o.takes = 100 * time.Millisecond
		o.hang(hangs("/film/0.mp4"))
		ix, began := o.catalog.want(o.site, "/film/manifest.mpd", party{}), time.Now()
		for rendition := 1; rendition < o.renditions; rendition++ {
			if r := ix.find(t.Context(), indexedID("/film", rendition)); r == nil {
				t.Errorf("%d is not listed after %v", rendition, time.Since(began))
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("they were there after %v", took)
		}
		if _, most := o.requests(); most > abreast {
			t.Errorf("%d requests at a time", most)
		}
		for at := range 12 {
			if at == 4 {
				o.hang(nil)
			}
			o.catalog.want(o.site, "/film/manifest.mpd", party{})
			sleep.For(t.Context(), retryAtMost/3)
		}
		if ix.lookup(indexedID("/film", 0)) == nil {
			t.Error("what has hung is not listed later")
		}
	})
}

// TestIndexesThatHangLeavePlacesToOtherTitles: what timed out is loaded again one at a time, as playlists are.
func TestIndexesThatHangLeavePlacesToOtherTitles(t *testing.T) {
	inStations(t, 4, "", func(t *testing.T, o *stations) {
		o.hang(func(path string) bool { return strings.HasSuffix(path, ".mp4") })
		for range 20 * int(retryAtMost/time.Second) {
			for n := range 6 {
				o.catalog.want(o.site, fmt.Sprintf("/sports%d/manifest.mpd", n), party{})
			}
			sleep.For(t.Context(), time.Second)
		}
		if ix := o.want("/news"); ix.lookup(o.id("/news", 0, o.newest())) == nil {
			t.Error("titles whose indexes hang keep another one from being read")
		}
		if len(o.site.slow) > maxSlow || len(o.site.reading) > maxSlow {
			t.Errorf("%d places, of %d that hang", len(o.site.reading), len(o.site.slow))
		}
	})
}
