package packaging

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// TestAnMPDHasAListForEachRepresentation: templates, and ranges that a segment index in the file names.
func TestAnMPDHasAListForEachRepresentation(t *testing.T) {
	p := newPackager(t, nil)
	index := binary.BigEndian.AppendUint32(nil, 32+12)
	index = append(index, "sidx\x00\x00\x00\x00"...)
	for _, n := range []uint32{1, 1000, 0, 0, 1, 5000, 6000, 0} {
		index = binary.BigEndian.AppendUint32(index, n)
	}
	all := append(append(content(100, 1), index...), content(5000, 2)...)
	p.put("all.mp4", all, time.Hour)
	for i, file := range []string{"v~1/init.mp4", "v~1/1.m4s", "v~1/2.m4s"} {
		p.put(file, content(2*segment.PieceSize+i, byte(i)), time.Hour)
	}
	p.put("film.mpd", []byte(`<MPD mediaPresentationDuration="PT12S"><Period><AdaptationSet mimeType="video/mp4">
		<Representation id="v~1" bandwidth="9"><SegmentTemplate duration="6" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s"/></Representation>
		<Representation id="b/1" bandwidth="9"><BaseURL>all.mp4</BaseURL><SegmentBase indexRange="100-143"><Initialization range="0-99"/></SegmentBase></Representation>
		<Representation id="c" bandwidth="9"><BaseURL>other.mp4</BaseURL></Representation>
	</AdaptationSet></Period></MPD>`), time.Minute)
	files, err := p.Playlists()
	if err != nil || len(files) != 1 || files[0] != "film.mpd" {
		t.Fatalf("%q, %v", files, err)
	}
	plan := p.certify("film.mpd")
	if plan.Segments() != 5 || plan.Refused == nil || plan.Live {
		t.Errorf("%d segments, refused %v", plan.Segments(), plan.Refused)
	}
	for file, names := range map[string][]string{
		"film.mpd.v~7E1": {"/media/bbb/v~1/init.mp4", "/media/bbb/v~1/1.m4s", "/media/bbb/v~1/2.m4s"},
		"film.mpd.b~2F1": {"/media/bbb/all.mp4#0-99", "/media/bbb/all.mp4#144-5143"},
	} {
		list := p.list(file)
		for _, name := range names {
			if list[name] == nil {
				t.Errorf("%s: nothing of %s", file, name)
			}
		}
		if len(list) != len(names) {
			t.Errorf("%s: %d entries", file, len(list))
		}
	}
	// A second run reads nothing, one segment that was replaced is signed anew.
	read := p.Read()
	if plan := p.certify("film.mpd"); plan.Kept != 5 || p.Read() != read {
		t.Errorf("%d kept, %d bytes read", plan.Kept, p.Read()-read)
	}
	p.pass(time.Hour)
	p.put("v~1/2.m4s", content(9, 9), time.Minute)
	if plan := p.certify("film.mpd"); plan.Kept != 4 {
		t.Errorf("%d kept after a change", plan.Kept)
	}
	if err := p.Unlist("film.mpd"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"film.mpd.v~7E1", "film.mpd.b~2F1"} {
		if _, err := p.Root.Stat(file + Suffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := p.Root.Stat("film.mpd"); err != nil {
		t.Error(err)
	}
}

// TestALiveMPDIsSignedAsItsClockSays: a template names what is over by now, and what is not there is told as missing.
func TestALiveMPDIsSignedAsItsClockSays(t *testing.T) {
	p := newPackager(t, nil)
	start := p.Now().Add(-10 * time.Second).UTC().Format("2006-01-02T15:04:05Z")
	p.put("live.mpd", []byte(`<MPD type="dynamic" availabilityStartTime="`+start+`" timeShiftBufferDepth="PT30S"><Period start="PT0S"><AdaptationSet mimeType="video/mp4">
		<SegmentTemplate duration="4" media="$Number$.m4s"/><Representation id="v" bandwidth="9"/></AdaptationSet></Period></MPD>`), time.Second)
	p.put("1.m4s", content(100, 1), time.Second)
	plan, _, err := p.Certify(context.Background(), "live.mpd")
	if err != nil || !plan.Live || plan.Segments() != 1 || len(plan.Missing) != 1 || plan.Missing[0] != "2.m4s" {
		t.Fatalf("%+v, %v", plan, err)
	}
	c := p.list("live.mpd.v")["/media/bbb/1.m4s"]
	if life := c.NotAfter.Sub(c.IssuedAt); life != 8*time.Second+liveGrace {
		t.Errorf("a life of %v", life)
	}
	p.put("2.m4s", content(100, 2), time.Second)
	if plan := p.certify("live.mpd"); plan.Kept != 1 || plan.Segments() != 2 {
		t.Errorf("%+v", plan)
	}
}
