package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// playedParts are those that viewers played, by path.
type playedParts struct {
	mu  sync.Mutex
	all map[string][]byte // guarded by mu
}

func (p *playedParts) take(r *viewer.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[r.URL] = bytes.Join(r.Pieces, nil)
}

// wrong counts the parts that the origin still has and that are not what was played, and all that it has.
func (p *playedParts) wrong(t *testing.T) (wrong, compared int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for url, data := range p.all {
		code, text := fetch(t, "GET", url)
		if code != http.StatusOK {
			continue
		}
		if compared++; text != string(data) {
			wrong++
		}
	}
	return wrong, compared
}

// TestPartsAreSharedWithoutASeed: an origin whose packager signs parts, a tracker, and viewers over real links.
func TestPartsAreSharedWithoutASeed(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	defer goleak.VerifyNone(t)
	defer http.DefaultClient.CloseIdleConnections()
	dir := t.TempDir()
	file := filepath.Join(dir, packagerFile)
	_, public, _, err := packagerKey(file)
	if err != nil {
		t.Fatal(err)
	}
	at, originAdmin, tracker, trackerAdmin := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	text, err := json.Marshal(map[string]any{
		"sites": []any{map[string]any{
			"name": "demo", "hosts": []string{at}, "fetch_base": "http://" + at, "packager_keys": []string{public},
			"policy": map[string]any{"control_group_permille": 0},
		}},
		"tracker": map[string]any{"listen": tracker, "admin": trackerAdmin, "data_dir": filepath.Join(dir, "tracker")},
		"origin":  map[string]any{"listen": at, "admin": originAdmin, "live": true, "low_latency": true, "packager_key": file},
		"nats":    map[string]string{"listen": freeAddress(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "leeway.yaml")
	write(t, config, string(text))
	stopTracker := startService(t, trackerAdmin, "tracker", "--config", config)
	defer func() { _ = stopTracker() }()
	stopOrigin := startService(t, originAdmin, "origin", "--config", config)
	defer func() { _ = stopOrigin() }()
	_, page := fetch(t, "GET", "http://"+at+"/")
	begin, end := strings.Index(page, "/media/"), strings.Index(page, "master.m3u8")
	if begin < 0 || end < begin {
		t.Fatalf("the page names no stream:\n%s", page)
	}
	folder := "http://" + at + page[begin:end]
	partsAreSigned(t, folder+"240p/", public)
	// A viewer of a stream that has just begun has no more than what has been in it, and asks the origin for all it plays: its buffer is short.
	testkit.Eventually(t, "the stream is as long as players stay behind its end, twice", func() bool {
		_, text := fetch(t, "GET", folder+"240p/index.m3u8")
		_, media, err := playlist.Read([]byte(text))
		return err == nil && media != nil && lasted(media) >= 2*media.LowLatency.HoldBack
	})

	played := &playedParts{all: map[string][]byte{}}
	var viewers []*headless.Viewer
	for range 3 {
		v, err := headless.Start(viewer.Config{
			URL: folder + "master.m3u8", Tracker: "ws://" + tracker + "/", Origin: "http://" + at, LowLatency: true, Rendition: "lowest", JoinAfter: -1, OnSegment: played.take,
		}, headless.Network{Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		viewers = append(viewers, v)
	}
	// One that found no peer for the first parts is a source, and its children ask for no certificate.
	var peers int64
	loaded := 0
	for end := time.Now().Add(60 * time.Second); (peers < 200_000 || loaded < 4) && time.Now().Before(end); {
		<-time.After(100 * time.Millisecond)
		peers, loaded = 0, 0
		for _, v := range viewers {
			s := v.Summary()
			peers, loaded = peers+s.Stats.Bytes["peer"], loaded+s.Lists.Parts
		}
	}
	if peers < 200_000 || loaded < 4 {
		t.Errorf("%d bytes came from other viewers, by %d certificates of the packager", peers, loaded)
	}
	for i, v := range viewers {
		if s := v.Summary(); s.Stats.RejectedBytes > 0 || s.Banned > 0 || s.Error != "" || s.Stats.Bytes["seed"] > 0 {
			text, _ := json.Marshal(s)
			t.Errorf("viewer %d: %s", i, text)
		}
	}
	if wrong, compared := played.wrong(t); wrong > 0 || compared < 4 {
		t.Errorf("%d of %d parts are not the origin's", wrong, compared)
	}
}

// lasted is how long a stream is that is published in parts.
func lasted(media *playlist.Media) (length time.Duration) {
	add := func(s *playlist.Segment) {
		for _, p := range s.Parts {
			length += time.Duration(p.Duration * float64(time.Second))
		}
	}
	for i := range media.Segments {
		add(&media.Segments[i])
	}
	if growing := media.LowLatency.Growing; growing != nil {
		add(growing)
	}
	return length
}

// partsAreSigned looks at the playlist of a rendition and at the certificates of the parts that it lists.
func partsAreSigned(t *testing.T, folder, public string) {
	t.Helper()
	testkit.Eventually(t, "a playlist lists parts", func() bool {
		code, text := fetch(t, "GET", folder+"index.m3u8")
		_, media, err := playlist.Read([]byte(text))
		if code != http.StatusOK || err != nil || media == nil || media.LowLatency == nil || media.LowLatency.Growing == nil {
			return false
		}
		for _, p := range media.LowLatency.Growing.Parts {
			part := folder + p.URI
			code, raw := fetch(t, "GET", certificate.PartURL(part, false, 0, 0))
			if code == http.StatusNotFound {
				return false // it has left the playlist since
			}
			c, err := certificate.Parse([]byte(raw))
			_, data := fetch(t, "GET", part)
			if err != nil || c.Alg != certificate.Packager || !c.CheckPiece(0, []byte(data)[:min(len(data), 16384)]) {
				t.Fatalf("%s: %d %v, %+v (key %s)", part, code, err, c, public)
			}
		}
		return true
	})
	if code, _ := fetch(t, "GET", folder+"live-1.0.m4s.leeway"); code != http.StatusNotFound {
		t.Errorf("a part that was never listed has a certificate: %d", code)
	}
}
