package swarmbench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// film is two short segments.
func film(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/m.m3u8", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.2,\na.ts\n#EXTINF:0.2,\nb.ts\n#EXT-X-ENDLIST\n")
	})
	mux.HandleFunc("/{name}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("name")) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/m.m3u8"
}

func TestAChildTellsWhatItPlayed(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	manifest := film(t)
	in, err := json.Marshal(order{Manifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := playRole(t.Context(), json.NewDecoder(strings.NewReader(string(in))), bench.NewWriter(&out)); err != nil {
		t.Fatal(err)
	}
	var got told
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Summary.Ended != "end" || got.Summary.Stats.Bytes["origin"] != 8 || len(got.Played) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, name := range []string{"a.ts", "b.ts"} {
		sum := sha256.Sum256([]byte(name))
		want := played{URL: strings.Replace(manifest, "m.m3u8", name, 1), Bytes: 4, Digest: hex.EncodeToString(sum[:])}
		if got.Played[i] != want {
			t.Errorf("segment %d: %+v, want %+v", i, got.Played[i], want)
		}
	}
}

func TestAnOrderIsAViewersConfig(t *testing.T) {
	o := order{Manifest: "http://198.18.0.1:8080/media/m.m3u8", Peers: true, Speed: 2, Plan: Plan{
		SeekAfter: time.Second, SeekTo: time.Minute, LeaveAfter: 5 * time.Second,
	}}
	cfg, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Tracker != "ws://198.18.0.1:8080/" || cfg.Origin != "http://198.18.0.1:8080" || cfg.Leave != 5*time.Second || cfg.Speed != 2 ||
		len(cfg.Seeks) != 1 || cfg.Seeks[0].After != time.Second || cfg.Seeks[0].To != time.Minute {
		t.Errorf("%+v", cfg)
	}
	o.Peers, o.Plan.SeekAfter = false, 0
	if cfg, err := o.config(); err != nil || cfg.Tracker != "" || cfg.Seeks != nil {
		t.Errorf("alone: %+v, %v", cfg, err)
	}
	o.Manifest = "http://%"
	if _, err := o.config(); err == nil {
		t.Error("a manifest that is no URL was taken")
	}
}

// The guest answers each line with a reading of its process, and goes when its input ends.
func TestTheGuestReadsItself(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	line, asks := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- guestRole(t.Context(), json.NewDecoder(line), bench.NewWriter(out)) }()
	tell := json.NewEncoder(asks)
	if err := tell.Encode(order{Manifest: film(t), Stay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	hear := json.NewDecoder(answers)
	for range 2 {
		if err := tell.Encode(struct{}{}); err != nil {
			t.Fatal(err)
		}
		var r reading
		if err := hear.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Goroutines < 2 || r.Files < 3 || r.Heap < 1<<10 || r.RSS < 1<<20 {
			t.Errorf("%+v", r)
		}
	}
	_ = asks.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
