package webdist

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"time"
)

// Check answers with the page of the network check. Its tests are at server: empty for the host and port that the page comes
// from, ":8090" for another port of that host, or a URL.
func (b *Bundle) Check(server string) (http.Handler, error) {
	page := b.check
	if server != "" {
		page = setMeta(page, "probe-server", server)
	}
	return packedPage(page)
}

// Doctor answers with the page on which a tracker's set-up is examined. No other site may have it in a frame: what it asks the
// tracker for, it asks as a page of another origin.
func (b *Bundle) Doctor() (http.Handler, error) {
	page, err := packedPage(b.doctor)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
		w.Header().Set("X-Frame-Options", "DENY")
		page.ServeHTTP(w, r)
	}), nil
}

// packedPage answers with a page of one file, compressed where the client takes that.
func packedPage(page []byte) (http.Handler, error) {
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(page); err != nil {
		return nil, fmt.Errorf("webdist: compress a page: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("webdist: compress a page: %w", err)
	}
	sum := sha256.Sum256(page)
	id := hex.EncodeToString(sum[:8])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !readOnly(w, r) {
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		serveEither(w, r, page, small.Bytes(), "gzip", id)
	}), nil
}

// serveEither answers with a body, or with its compressed form where there is one and the client takes that coding. id is of the content.
func serveEither(w http.ResponseWriter, r *http.Request, body, small []byte, coding, id string) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	if len(small) > 0 && accepts(r.Header.Get("Accept-Encoding"), coding) {
		h.Set("Content-Encoding", coding)
		body, id = small, id+"-"+coding
	}
	h.Set("ETag", `"`+id+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// servePacked answers with a file of which only the compressed form (gzip) is there. A client that takes none of it gets it unpacked.
func servePacked(w http.ResponseWriter, r *http.Request, name string, small []byte) {
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(small))
		return
	}
	text, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		http.Error(w, "This binary's page is damaged: make build.", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, text) // what ends it early is the client
}
