package originhttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/viewer"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAPackedPlaylistIsRead: a store that keeps it packed sends it so, and says so, whatever was asked for. What it unpacks to is bounded.
func TestAPackedPlaylistIsRead(t *testing.T) {
	const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
	long := strings.Repeat("#", 1<<20)
	bodies := map[string][]byte{"/a": packed(t, playlist), "/long": packed(t, long), "/cut": packed(t, long)[:100], "/none": []byte("#EXTM3U"), "/br": []byte("x")}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		if r.URL.Path == "/br" {
			w.Header().Set("Content-Encoding", "br")
		}
		_, _ = w.Write(bodies[r.URL.Path])
	})
	c, p := client(t, Config{Base: s.URL}), NewPlayer(nil)
	defer p.Close()
	for path, want := range map[string]seed.Outcome{
		"/a": seed.OutcomeOK, "/long": seed.OutcomeTooLarge, "/cut": seed.OutcomeNetwork, "/none": seed.OutcomeNetwork, "/br": seed.OutcomeRefused,
	} {
		got, err := c.Get(context.Background(), seed.Fetch{Path: path, MaxBytes: 1 << 19})
		if o := outcome(t, err); o != want || want == seed.OutcomeOK && string(got.Data) != playlist {
			t.Errorf("%s: %s (%v), want %s", path, o, err, want)
		}
		played := wait(t, p, viewer.Fetch{URL: s.URL + path, MaxBytes: 1 << 19})
		if (played.err == nil) != (want == seed.OutcomeOK) || played.err == nil && string(played.Data) != playlist {
			t.Errorf("%s: a player has %d bytes, %v", path, len(played.Data), played.err)
		}
	}
	if _, err := c.Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 1 << 19, Shared: true}); outcome(t, err) != seed.OutcomeRefused {
		t.Errorf("packed bytes are shared: %v", err)
	}
}
