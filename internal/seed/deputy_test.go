package seed_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestNoViewerHasASeedFetchOrSignForIt: a seed stands where a viewer does not, beside the origin and within the operator's
// network. What a viewer may name is the key of a manifest, and segments that the manifest's playlists list.
func TestNoViewerHasASeedFetchOrSignForIt(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	var elsewhere atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(inside.Close)
	o.put("/secret/list.m3u8", []byte("#EXTM3U\n#EXTINF:4,\nkey.m4s\n#EXT-X-ENDLIST\n"))
	o.put("/secret/key.m4s", noise(5000))
	o.put("/vod/film/unlisted.m4s", noise(5000))
	o.put("/vod/film/low/index.m3u8.bak", noise(5000))
	w := newWorld(t, o, nil)
	v := w.connect(1, 2)
	if c, none := v.certificate("/film/low/0.m4s"); c == nil {
		t.Fatalf("what is listed is not certified: %+v", none)
	}
	// Names that no playlist lists: of files that are there, of the manifest and the playlists themselves, of what is not below
	// the base, and of addresses.
	for _, name := range []segment.Name{
		"/film/unlisted.m4s", "/film/low/index.m3u8.bak", "/film/master.m3u8", "/film/low/index.m3u8", "/../secret/key.m4s",
		"/film/../../secret/key.m4s", "/secret/key.m4s", segment.Name(inside.URL + "/"), "/film/low/0.m4s#0-99",
	} {
		if c, none := v.certificate(name); c != nil || none.Reason != peer.NoneUnknown {
			t.Errorf("%s: %+v, %+v; want it unknown", name, c, none)
		}
	}
	// Manifests that are no keys of the site.
	for i, manifest := range []string{
		"/../secret/list.m3u8", "/film/../../secret/list.m3u8", "/film/%2e%2e/%2e%2e/secret/list.m3u8", `/film/..\..\secret\list.m3u8`,
		"/film/master.m3u8#x", "film/master.m3u8", inside.URL + "/master.m3u8",
		"/film/master.m3u8\r\nHost: inside",
	} {
		bad := w.newViewer(byte(10 + i))
		bad.swarm = signal.ID{60, byte(i)}
		bad.offer(&bus.Title{Site: "demo", Title: fmt.Sprint("t", i), Manifest: manifest, Swarm: bad.swarm, Viewers: 5})
		if r := wait(t, bad.failed, "the refusal of "+manifest); r != "refused" {
			t.Errorf("%q: %s", manifest, r)
		}
		bad.link.Close(peer.CloseClosed, nil)
	}
	// What looks like an address without its scheme is a path, below the base as any other.
	other := w.newViewer(100)
	other.swarm = signal.ID{61}
	relative := strings.TrimPrefix(inside.URL, "http:") + "/master.m3u8"
	other.offer(&bus.Title{Site: "demo", Title: "t", Manifest: relative, Swarm: other.swarm, Viewers: 5})
	wait(t, other.ready, "the seed's hello")
	if c, _ := other.certificate("/film/low/0.m4s"); c != nil {
		t.Error("a title has segments of another's")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for path := range o.asked {
		switch path {
		case "/vod/film/master.m3u8", "/vod/film/low/index.m3u8", "/vod/film/high/index.m3u8", "/vod/film/low/0.m4s", "/vod" + relative:
		default:
			t.Errorf("the origin was asked for %s", path)
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("another server was asked")
	}
}
