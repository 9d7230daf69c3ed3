package packaging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipesHoldNothingUp: a folder has named pipes where a playlist, a list, an index or a segment should be. Each would be waited for for ever.
func TestPipesHoldNothingUp(t *testing.T) {
	const mpd = `<MPD mediaPresentationDuration="PT12S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="b" bandwidth="9"><BaseURL>all.mp4</BaseURL>` +
		`<SegmentBase indexRange="100-143"><Initialization range="0-99"/></SegmentBase></Representation></AdaptationSet></Period></MPD>`
	for name, c := range map[string]struct {
		pipe, playlist, text string
		fails                bool
	}{
		"a list":     {"720p.m3u8" + Suffix, "720p.m3u8", vod, false},
		"a segment":  {"seg-2.m4s", "720p.m3u8", vod, false},
		"a playlist": {"720p.m3u8", "720p.m3u8", "", true},
		"an index":   {"all.mp4", "film.mpd", mpd, false},
	} {
		p := newPackager(t, nil)
		p.film()
		if c.text != "" {
			p.put(c.playlist, []byte(c.text), time.Hour)
		}
		at := filepath.Join(p.dir, c.pipe)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, _, err := p.Certify(context.Background(), c.playlist)
			done <- err
		}()
		select {
		case err := <-done:
			if (err != nil) != c.fails {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is waited for", name)
		}
	}
}
