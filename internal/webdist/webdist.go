// Package webdist serves the drop-in's scripts, the demo page and the pages of the network check and of the doctor that are embedded in the binary.
//
// `make build` copies them into files/, which is not committed. A binary built without that step (a plain `go build` on a
// fresh clone) carries placeholders that say so, in the browser and in Built.
package webdist

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed all:files
var copied embed.FS

//go:embed placeholder
var placeholders embed.FS

// Bundle is what one binary carries.
type Bundle struct {
	Built bool // false: placeholders

	script script
	parts  map[string]script // what the drop-in loads where it needs it: the engine, and the adapters of players
	demo   fs.FS
	check  []byte // the page of the network check
	doctor []byte // the page of the doctor
}

// script is one file as it goes out.
type script struct {
	body   []byte
	brotli []byte // the same, compressed; empty when the build did not make it
	id     string // hash of body
	tail   string // last characters of its hash in base64: the query by which the first script asks for a part
}

// Load returns the embedded bundle, or the placeholders where there is none.
func Load() (*Bundle, error) {
	if _, err := fs.Stat(copied, "files/leeway-engine.js"); err != nil {
		return load(placeholders, "placeholder", false)
	}
	b, err := load(copied, "files", true)
	if err != nil {
		err = fmt.Errorf("%w (of an older build: make build)", err)
	}
	return b, err
}

func load(all fs.FS, dir string, built bool) (*Bundle, error) {
	root, err := fs.Sub(all, dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Built: built, parts: map[string]script{}}
	if b.script, err = readScript(root, "leeway.js"); err != nil {
		return nil, err
	}
	names, err := fs.Glob(root, "leeway-*.js")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		part := strings.TrimSuffix(strings.TrimPrefix(name, "leeway-"), ".js")
		if b.parts[part], err = readScript(root, name); err != nil {
			return nil, err
		}
	}
	if b.check, err = fs.ReadFile(root, "check.html"); err != nil {
		return nil, err
	}
	if b.doctor, err = fs.ReadFile(root, "doctor.html"); err != nil {
		return nil, err
	}
	b.demo, err = fs.Sub(root, "demo")
	return b, err
}

func readScript(root fs.FS, name string) (s script, err error) {
	if s.body, err = fs.ReadFile(root, name); err != nil {
		return s, err
	}
	s.brotli, _ = fs.ReadFile(root, name+".br") // optional: without it the script travels uncompressed
	sum := sha256.Sum256(s.body)
	s.id = hex.EncodeToString(sum[:8])
	hash := base64.StdEncoding.EncodeToString(sum[:])
	s.tail = hash[len(hash)-9:]
	return s, nil
}

// Script answers with the drop-in. Every site may load it from here, so CORS is open to all. A name that carries the
// version never changes its content and is kept for a year; the plain name is asked for again after five minutes.
func (b *Bundle) Script(immutable bool) http.Handler { return b.script.serve(immutable) }

// Parts names the scripts that the drop-in loads where it needs them: what the build made beside it.
func (b *Bundle) Parts() []string { return slices.Sorted(maps.Keys(b.parts)) }

// Part answers with one of Parts, under a name that carries the version. A page that asks for the part of another build, as it may while
// a fleet of trackers is renewed, hears that it is not here: browsers would keep the wrong one for as long as the right one.
func (b *Bundle) Part(name string) http.Handler {
	part := b.parts[name]
	serve := part.serve(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.URL.RawQuery; asked != "" && asked != part.tail {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "This server has another build of the script.", http.StatusNotFound)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func (s script) serve(immutable bool) http.Handler {
	cache := "public, max-age=300"
	if immutable {
		cache = "public, max-age=31536000, immutable"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !readOnly(w, r) {
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		h.Set("Timing-Allow-Origin", "*")
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		h.Set("Cache-Control", cache)
		serveEither(w, r, s.body, s.brotli, "br", s.id)
	})
}

// Film is what the demo page plays; empty fields keep what the page was built with.
type Film struct {
	Source      string // manifest, a path or an absolute URL
	DASH        string // the same film as an MPD, likewise; empty: there is none
	LowLatency  bool   // it is a live stream in parts
	Title       string
	Attribution string // a line below the player; hidden when empty and Source is not
	Tracker     string // WebSocket address; empty: the page's own host
	Outages     bool   // the server answers on /demo/outage
	Addresses   string // of the page for other machines, with spaces between them; "loopback": there are none; empty: not known
}

// Page answers with the demo page and its assets, the film written into its meta elements.
func (b *Bundle) Page(film Film) (http.Handler, error) {
	index, err := fs.ReadFile(b.demo, "index.html")
	if err != nil {
		return nil, err
	}
	if film.Source != "" {
		index = setMeta(index, "film-src", film.Source)
		index = setMeta(index, "film-dash", film.DASH)
		if film.LowLatency {
			index = setMeta(index, "film-low-latency", "yes")
		}
		index = setMeta(index, "film-title", film.Title)
		index = setMeta(index, "film-attribution", film.Attribution)
	}
	if film.Tracker != "" {
		index = setMeta(index, "leeway-tracker", film.Tracker)
	}
	if film.Outages {
		index = setMeta(index, "demo-outages", "yes")
	}
	index = setMeta(index, "demo-addresses", film.Addresses)
	sum := sha256.Sum256(index)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	files := http.FileServerFS(b.demo)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !readOnly(w, r) {
			return
		}
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(index))
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		// Vite puts a hash of the content into the names of what it builds.
		if small, err := fs.ReadFile(b.demo, name+".gz"); err == nil {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			servePacked(w, r, name, small)
			return
		}
		if info, err := fs.Stat(b.demo, name); err != nil || info.IsDir() {
			http.Error(w, "Nothing here. The demo page is at /.", http.StatusNotFound)
			return
		}
		files.ServeHTTP(w, r)
	}), nil
}

// setMeta replaces the content of <meta name="…" content="…">.
func setMeta(page []byte, name, content string) []byte {
	tag := regexp.MustCompile(`(<meta name="` + regexp.QuoteMeta(name) + `" content=")[^"]*(")`)
	return tag.ReplaceAllFunc(page, func(found []byte) []byte {
		parts := tag.FindSubmatch(found)
		return []byte(string(parts[1]) + html.EscapeString(content) + string(parts[2]))
	})
}

func readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "Only GET and HEAD are answered here.", http.StatusMethodNotAllowed)
	return false
}

// accepts tells whether an Accept-Encoding header names coding without refusing it (q=0).
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q := strings.ReplaceAll(params, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.0")
		}
	}
	return false
}
