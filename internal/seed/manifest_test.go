package seed_test

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	rightSegment = segment.Name("/film/high/3.m4s")
	wrongSegment = segment.Name("/film/trailer/0.m4s")
)

// misled is a seed that follows another manifest of the title's folder than the film's, and a viewer of the film.
func misled(t *testing.T) (w *world, v *viewer) {
	t.Helper()
	o := newOrigin(t)
	o.film(5)
	o.put("/vod/film/trailer.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\ntrailer/0.m4s\n#EXT-X-ENDLIST\n"))
	o.put("/vod/film/trailer/0.m4s", noise(1000))
	w = newWorld(t, o, nil)
	w.names("/film/trailer.m3u8", 1, false)
	v = w.newViewer(1)
	wrong := w.title(2)
	wrong.Manifest = "/film/trailer.m3u8"
	v.offer(wrong)
	wait(t, v.ready, "the seed's hello")
	if c, none := v.certificate(rightSegment); c != nil {
		t.Fatalf("a segment of another manifest was certified: %v", none)
	}
	return w, v
}

// names tells the seed the title's manifest, as its home does.
func (w *world) names(manifest string, viewers int, chosen bool) {
	m := w.title(viewers)
	m.Manifest, m.Chosen = manifest, chosen
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: m}).Wait()
}

// TestASeedFollowsTheChosenManifest: the manifest that the first viewer named does not stay. Links do.
func TestASeedFollowsTheChosenManifest(t *testing.T) {
	w, v := misled(t)
	w.names("/film/master.m3u8", 3, true)
	if c, none := v.certificate(rightSegment); c == nil {
		t.Fatalf("the manifest that the home chose is not followed: %+v", none)
	}
	if c, _ := v.certificate(wrongSegment); c != nil {
		t.Error("the manifest before it is followed still")
	}
}

// TestOffersAndOtherPartsMoveNoManifest: what is not chosen changes nothing, however often it is said.
func TestOffersAndOtherPartsMoveNoManifest(t *testing.T) {
	w, _ := misled(t)
	w.names("/film/master.m3u8", 1000, false)
	late := w.connect(2, 1000) // its offer names the film's manifest
	if c, _ := late.certificate(rightSegment); c != nil {
		t.Error("an offer moved the manifest")
	}
	if c, none := late.certificate(wrongSegment); c == nil {
		t.Errorf("the manifest is not followed any more: %+v", none)
	}
}

// TestAManifestThatCannotBeReadTakesNothingAway: a majority for one that the origin does not have leaves viewers of the one before
// what they have, until it is there.
func TestAManifestThatCannotBeReadTakesNothingAway(t *testing.T) {
	w, v := misled(t)
	for i := range 3 {
		w.names(fmt.Sprintf("/film/none-%d.m3u8", i), 9, true)
		if c, none := v.certificate(wrongSegment); c == nil {
			t.Fatalf("%+v", none)
		}
		if _, none := v.certificate(rightSegment); none == nil || none.Reason != peer.NoneUnknown {
			t.Errorf("%+v", none)
		}
	}
	w.names("/film/trailer.m3u8", 9, true) // a choice that is taken back
	w.names("/film/master.m3u8", 9, true)
	if c, none := v.certificate(rightSegment); c == nil {
		t.Errorf("%+v", none)
	}
}
