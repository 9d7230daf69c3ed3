package probe

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	signaling "github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	chunk       = 256 << 10 // bytes of an HTTP download that are written at a time
	maxDownload = 1 << 40   // bytes
)

// serveDownload sends bytes: so many, or as many as go in the time of a test.
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	size := int64(-1)
	if text := r.URL.Query().Get("bytes"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > maxDownload {
			s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, "bytes is no number from 1 to 2^40.", ""})
			return
		}
		size = n
	}
	t, ok := s.open(w, r, httpDownload)
	if !ok {
		return
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(t.deadline())
	t.onStop(func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) })
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	t.end(t.pour(w, size))
}

// pour writes the body of a download; size below 0 is until the time is over.
func (t *test) pour(w io.Writer, size int64) (outcome string) {
	for sent := int64(0); size < 0 || sent < size; {
		if size < 0 && time.Since(t.start) >= runtime {
			break
		}
		n := int64(chunk)
		if size >= 0 {
			n = min(n, size-sent)
		}
		if !t.moved(n, true) {
			return endBytes
		}
		if _, err := w.Write(t.server.random(sent, n)); err != nil {
			return t.broken(err)
		}
		sent += n
	}
	return endComplete
}

// serveUpload throws away what comes, and says how much it was.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	t, ok := s.open(w, r, httpUpload)
	if !ok {
		return
	}
	in := http.NewResponseController(w)
	_ = in.SetReadDeadline(t.deadline())
	t.onStop(func() { _ = in.SetReadDeadline(time.Unix(1, 0)) })
	bytes, took, outcome := t.swallow(r.Body)
	switch outcome {
	case endComplete, endTimeout:
		writeJSON(w, map[string]int64{"bytes": bytes, "elapsed_us": took})
	case endBytes:
		w.Header().Set("Connection", "close")
		s.refuse(w, refusal{refusedBytes, http.StatusTooManyRequests, "This address has used up the bytes that it may have in a day.", "3600"})
	}
	t.end(outcome)
}

// swallow reads a body; took is the time from its first byte to its last, in microseconds.
func (t *test) swallow(body io.Reader) (bytes, took int64, outcome string) {
	buffer := make([]byte, readSize)
	var first time.Time
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if first.IsZero() {
				first = time.Now()
			}
			bytes, took = bytes+int64(n), time.Since(first).Microseconds()
			if !t.moved(int64(n), false) {
				return bytes, took, endBytes
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return bytes, took, endComplete
		case err != nil:
			return bytes, took, t.broken(err)
		}
	}
}

// open gives a request the place of a test, or answers it and returns false.
func (s *Server) open(w http.ResponseWriter, r *http.Request, kind string) (*test, bool) {
	client, ok := s.admit(w, r, startCost-smallCost)
	if !ok {
		return nil, false
	}
	t, refused := s.begin(kind, client)
	if refused != nil {
		s.refuse(w, *refused)
		return nil, false
	}
	return t, true
}

// serveSmall sends one byte. A client that asks for it has the connection closed, so that its next request begins with a handshake.
func (s *Server) serveSmall(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.admit(w, r, 0); ok {
		if r.URL.Query().Get("close") == "1" {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(s.payload[:1])
	}
}

// info is what a server offers.
type info struct {
	Version string   `json:"version"`
	Client  string   `json:"client"`
	Tests   []string `json:"tests"`
	STUN    []string `json:"stun,omitempty"`
	Limits  limits   `json:"limits"`
	// ICEServers are relays with credentials of this client's.
	ICEServers []signaling.ICEServer `json:"ice_servers,omitempty"`
}

type limits struct {
	Tests      int   `json:"tests_per_address"`
	DailyBytes int64 `json:"daily_bytes"`
}

func (s *Server) serveInfo(w http.ResponseWriter, r *http.Request) {
	client, ok := s.admit(w, r, 0)
	if !ok {
		return
	}
	tests := []string{"ndt7", "http"}
	if s.cfg.Answer != nil {
		tests = append(tests, "quality", "gives-way")
	}
	writeJSON(w, info{s.cfg.Version, client.Unmap().String(), tests, s.cfg.STUN, limits{s.cfg.MaxPerAddress, s.cfg.DailyBytes}, s.cfg.Relays(client)})
}

// servePreflight lets pages of other origins send a body and a token.
func servePreflight(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
