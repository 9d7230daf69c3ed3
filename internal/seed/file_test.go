package seed_test

import (
	"net/http"
	"testing"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func sharesFiles(c *site.Config, _ *seed.Config) { c.Files = []string{"/downloads/*"} }

// fileViewer is a viewer of a file that the seed has answered.
func fileViewer(t *testing.T, o *origin, file string) (*world, *viewer) {
	w := newWorld(t, o, sharesFiles)
	w.names(file, 1, true)
	v := w.newViewer(1)
	title := w.title(1)
	title.Manifest = file
	v.offer(title)
	wait(t, v.ready, "the seed's hello")
	return w, v
}

// TestASeedCertifiesAFileByItsParts: the parts of a long file from the first question on, for one byte of the origin, and nothing else.
func TestASeedCertifiesAFileByItsParts(t *testing.T) {
	o := newOrigin(t)
	data := noise(2*segment.VirtualLength + 100_000)
	o.put("/vod/downloads/a.iso", data)
	_, v := fileViewer(t, o, "/downloads/a.iso")
	for _, r := range segment.Virtual(int64(len(data))) {
		name := segment.RangeName("/downloads/a.iso", r.First, r.Last)
		c, none := v.certificate(name)
		if c == nil || c.Length != r.Len() || c.ObjectLength != int64(len(data)) || c.Validator == "" {
			t.Fatalf("%s: %+v, %+v", name, c, none)
		}
	}
	if asked := o.count("/vod/downloads/a.iso"); asked != 4 {
		t.Errorf("the origin was asked %d times for a byte and three parts", asked)
	}
	if c, none := v.certificate("/downloads/a.iso"); c != nil || none.Reason != peer.NoneTooLarge || none.ObjectLength != uint64(len(data)) {
		t.Errorf("the whole: %+v, %+v", c, none)
	}
	for _, name := range []segment.Name{"/downloads/b.iso", "/downloads/a.iso#0-99"} {
		if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneUnknown {
			t.Errorf("%s, which is no part of the file: %+v, %+v", name, c, none)
		}
	}
}

// TestASeedCertifiesAShortFileWhole: up to 8 MiB.
func TestASeedCertifiesAShortFileWhole(t *testing.T) {
	o := newOrigin(t)
	data := noise(300_000)
	o.put("/vod/downloads/a.zip", data)
	_, v := fileViewer(t, o, "/downloads/a.zip")
	if c, none := v.certificate("/downloads/a.zip"); c == nil || c.Length != int64(len(data)) {
		t.Errorf("%+v, %+v", c, none)
	}
}

// TestNothingOfAFileIsCertifiedThatMayNotBeShared: a path that the site does not name as a file is read as a playlist, and an origin
// that keeps its answers private is obeyed.
func TestNothingOfAFileIsCertifiedThatMayNotBeShared(t *testing.T) {
	for _, c := range []struct {
		name, file string
		private    bool
		want       peer.NoneReason
	}{
		{"no file of the site's", "/other/a.iso", false, peer.NoneOrigin},
		{"a private one", "/downloads/a.iso", true, peer.NoneNotAllowed},
		{"one that is not there", "/downloads/missing.iso", false, peer.NoneOrigin},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t)
			o.put("/vod/other/a.iso", noise(300_000))
			o.put("/vod/downloads/a.iso", noise(300_000))
			if c.private {
				o.head = http.Header{"Cache-Control": {"private"}}
			}
			_, v := fileViewer(t, o, c.file)
			if cert, none := v.certificate(segment.WholeName(c.file)); cert != nil || none.Reason != c.want {
				t.Errorf("%+v, %+v", cert, none)
			}
		})
	}
}
