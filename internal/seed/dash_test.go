package seed_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// mpdText is an MPD of one period of 12 s with a set of video.
func mpdText(set string) []byte {
	return []byte(`<MPD type="static" mediaPresentationDuration="PT12S"><Period><AdaptationSet mimeType="video/mp4">` + set + `</AdaptationSet></Period></MPD>`)
}

// TestASeedCertifiesWhatAnMPDLists: segments and initialization segments, under the names that they have in HLS; the ranges that a
// segment index names; and nothing else. Lists of packagers are beside the MPD, one for each representation.
func TestASeedCertifiesWhatAnMPDLists(t *testing.T) {
	o, p := newOrigin(t), newPackager(t)
	o.film(3)
	index := binary.BigEndian.AppendUint32(nil, 32+2*12)
	index = append(index, "sidx\x00\x00\x00\x00"...)
	for _, n := range []uint32{1, 1000, 0, 0, 2, 50_000, 6000, 0, 40_000, 6000, 0} {
		index = binary.BigEndian.AppendUint32(index, n)
	}
	whole := bytes.Join([][]byte{noise(800), index, noise(90_000)}, nil)
	o.put("/vod/film/all.mp4", whole)
	end := 800 + len(index)
	o.put("/vod/film/manifest.mpd", mpdText(`<SegmentTemplate duration="4" startNumber="0" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s"/>
		<Representation id="low" bandwidth="1500000"/><Representation id="high" bandwidth="3000000"/>
		<Representation id="all" bandwidth="9"><BaseURL>all.mp4</BaseURL><SegmentBase indexRange="`+fmt.Sprintf("800-%d", end-1)+`"><Initialization range="0-799"/></SegmentBase></Representation>`))
	w := newWorld(t, o, func(c *site.Config, s *seed.Config) { p.site(c, s) })
	w.names("/film/manifest.mpd", 1, true)
	v := w.newViewer(1)
	title := w.title(1)
	title.Manifest = "/film/manifest.mpd"
	v.offer(title)
	wait(t, v.ready, "the seed's hello")
	for _, name := range []segment.Name{"/film/low/init.mp4", "/film/low/0.m4s", "/film/high/2.m4s"} {
		c, none := v.certificate(name)
		if data := o.files["/vod"+string(name)]; c == nil || c.Length != int64(len(data)) {
			t.Errorf("%s: %+v, %+v", name, c, none)
		}
	}
	testkit.Eventually(t, "the lists are asked for", func() bool {
		return o.count("/vod/film/manifest.mpd.low.leeway") > 0 && o.count("/vod/film/manifest.mpd.high.leeway") > 0
	})
	for _, name := range []segment.Name{"/film/low/3.m4s", "/film/manifest.mpd", "/film/all.mp4#800-900"} {
		if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneUnknown {
			t.Errorf("%s, which the MPD does not list: %+v, %+v", name, c, none)
		}
	}
	for _, r := range [][2]int64{{0, 799}, {int64(end), int64(end) + 49_999}, {int64(end) + 50_000, int64(end) + 89_999}} {
		name := segment.RangeName("/film/all.mp4", r[0], r[1])
		if c, none := v.certificate(name); c == nil || c.Length != r[1]-r[0]+1 {
			t.Errorf("%s, which the index names: %+v, %+v", name, c, none)
		}
	}
}

// TestIndexesOfAnMPDArePaidFor: a short MPD that points to many segment indexes has the seed fetch no more than its viewer pays for.
func TestIndexesOfAnMPDArePaidFor(t *testing.T) {
	o := newOrigin(t)
	var reps strings.Builder
	const many = 250
	for i := range many {
		fmt.Fprintf(&reps, `<Representation id="%d" bandwidth="1"><BaseURL>%[1]d.mp4</BaseURL><SegmentBase indexRange="0-43"><Initialization range="0-9"/></SegmentBase></Representation>`, i)
		o.put(fmt.Sprintf("/vod/film/%d.mp4", i), noise(100))
	}
	o.put("/vod/film/manifest.mpd", mpdText(reps.String()))
	w := newWorld(t, o, nil)
	v := w.newViewer(1)
	title := w.title(1)
	title.Manifest = "/film/manifest.mpd"
	v.offer(title)
	wait(t, v.ready, "the seed's hello")
	testkit.Eventually(t, "the budget is spent", func() bool { return w.counted("leeway_seed_playlist_refusals_total", "session") > 0 })
	if c, none := v.certificate("/film/3.mp4#0-9"); c == nil {
		t.Errorf("what the MPD itself names is not certified: %+v", none)
	}
	asked := 0
	for i := range many {
		asked += o.count(fmt.Sprintf("/vod/film/%d.mp4", i))
	}
	if asked < 100 || asked >= many {
		t.Errorf("%d indexes were fetched", asked)
	}
}
