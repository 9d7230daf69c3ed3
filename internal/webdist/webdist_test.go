package webdist

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return small.Bytes()
}

func bundle(t *testing.T) *Bundle {
	t.Helper()
	b, err := load(fstest.MapFS{
		"d/leeway.js":           {Data: []byte("plain")},
		"d/leeway.js.br":        {Data: []byte("small")},
		"d/leeway-engine.js":    {Data: []byte("second")},
		"d/leeway-shaka.js":     {Data: []byte("third")},
		"d/demo/index.html":     {Data: []byte(`<meta name="film-src" content="/a" /><meta name="film-title" content="A" /><meta name="film-attribution" content="x" />`)},
		"d/demo/assets/a.js.gz": {Data: packed(t, "1")},
		"d/demo/licenses.txt":   {Data: []byte("words")},
		"d/doctor.html":         {Data: []byte(`<p>doctor</p>`)},
		"d/check.html":          {Data: []byte(`<meta name="probe-server" content="" /><p>check</p>`)},
	}, "d", true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func get(h http.Handler, path string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestEmbeddedBundleLoads(t *testing.T) {
	b, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Page(Film{}); err != nil {
		t.Fatal(err)
	}
	check, err := b.Check(":8090")
	if err != nil {
		t.Fatal(err)
	}
	if r := get(check, "/check"); r.StatusCode != 200 {
		t.Errorf("the page of the check: %d", r.StatusCode)
	} else if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `<meta name="probe-server" content=":8090"`) {
		t.Error("the page of the check does not take its server's port")
	}
	if !slices.Contains(b.Parts(), "engine") {
		t.Errorf("parts without the engine: %v", b.Parts())
	}
}

func TestScriptHeaders(t *testing.T) {
	b := bundle(t)
	r := get(b.Script(false), "/leeway.js")
	if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(r.Header.Get("Cache-Control"), "max-age=300") {
		t.Errorf("plain name: %v", r.Header)
	}
	if again := get(b.Script(false), "/leeway.js", "If-None-Match", r.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("same ETag: status %d, want 304", again.StatusCode)
	}
	small := get(b.Script(false), "/leeway.js", "Accept-Encoding", "gzip, br")
	if small.Header.Get("Content-Encoding") != "br" || small.Header.Get("ETag") == r.Header.Get("ETag") {
		t.Errorf("brotli: %v", small.Header)
	}
	if r := get(b.Script(false), "/leeway.js", "Accept-Encoding", "br;q=0"); r.Header.Get("Content-Encoding") != "" {
		t.Error("a refused coding was used")
	}
	if r := get(b.Script(true), "/leeway-1.js"); !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("name with version: %v", r.Header)
	}
	if got := b.Parts(); !slices.Equal(got, []string{"engine", "shaka"}) {
		t.Errorf("parts: %v", got)
	}
	for part, want := range map[string]string{"engine": "second", "shaka": "third"} {
		sum := sha256.Sum256([]byte(want))
		hash := base64.StdEncoding.EncodeToString(sum[:])
		r := get(b.Part(part), "/leeway-1-"+part+".js?"+hash[len(hash)-9:])
		body, _ := io.ReadAll(r.Body)
		// They are fetched with an integrity attribute, which across origins asks for CORS.
		if string(body) != want || r.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %q %v", part, body, r.Header)
		}
		if r := get(b.Part(part), "/leeway-1-"+part+".js"); r.StatusCode != http.StatusOK {
			t.Errorf("%s by its name: status %d", part, r.StatusCode)
		}
		// Of another build: a browser that kept it would have no such script for a year.
		if r := get(b.Part(part), "/leeway-1-"+part+".js?12345678="); r.StatusCode != http.StatusNotFound || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s of another build: status %d, %v", part, r.StatusCode, r.Header)
		}
	}
	w := httptest.NewRecorder()
	b.Script(false).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/leeway.js", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", w.Code)
	}
}

func TestPageCarriesTheFilm(t *testing.T) {
	h, err := bundle(t).Page(Film{Source: `/media/x"><script>/m.m3u8`, Title: "$1 & more"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	want := `<meta name="film-src" content="/media/x&#34;&gt;&lt;script&gt;/m.m3u8" /><meta name="film-title" content="$1 &amp; more" /><meta name="film-attribution" content="" />`
	if got := w.Body.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r := get(h, "/licenses.txt"); r.StatusCode != 200 || r.Header.Get("Cache-Control") != "" {
		t.Errorf("a file that is no asset: %d %v", r.StatusCode, r.Header)
	}
	for _, path := range []string{"/assets/", "/none", "/../../etc/passwd"} {
		if r := get(h, path); r.StatusCode != http.StatusNotFound || r.Header.Get("Cache-Control") != "" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
	}
}

func TestAssetsTravelAsTheyAreEmbedded(t *testing.T) {
	h, err := bundle(t).Page(Film{})
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{"gzip, deflate": string(packed(t, "1")), "": "1", "gzip;q=0": "1"} {
		r := get(h, "/assets/a.js", "Accept-Encoding", accept)
		body, _ := io.ReadAll(r.Body)
		if string(body) != want || (r.Header.Get("Content-Encoding") == "gzip") != (want != "1") {
			t.Errorf("asked with %q: %q %v", accept, body, r.Header)
		}
		if !strings.Contains(r.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("asked with %q: %v", accept, r.Header)
		}
	}
}

func TestDoctorPageIsInNoFrame(t *testing.T) {
	h, err := bundle(t).Doctor()
	if err != nil {
		t.Fatal(err)
	}
	r := get(h, "/doctor")
	if body, _ := io.ReadAll(r.Body); r.StatusCode != 200 || string(body) != "<p>doctor</p>" {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	if r.Header.Get("Content-Security-Policy") != "frame-ancestors 'none'" || r.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers: %v", r.Header)
	}
}

func TestCheckPage(t *testing.T) {
	h, err := bundle(t).Check(`:8091"><script>`)
	if err != nil {
		t.Fatal(err)
	}
	plain := get(h, "/check")
	body, _ := io.ReadAll(plain.Body)
	if want := `<meta name="probe-server" content=":8091&#34;&gt;&lt;script&gt;" /><p>check</p>`; string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	small := get(h, "/check", "Accept-Encoding", "gzip, br")
	if small.Header.Get("Content-Encoding") != "gzip" || small.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("gzip: %v", small.Header)
	}
	unpacked, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := io.ReadAll(unpacked); err != nil || string(again) != string(body) {
		t.Errorf("unpacked: %s %v", again, err)
	}
	if r := get(h, "/check", "If-None-Match", plain.Header.Get("ETag")); r.StatusCode != http.StatusNotModified {
		t.Errorf("same ETag: status %d, want 304", r.StatusCode)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/check", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", w.Code)
	}
}
