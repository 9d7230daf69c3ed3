package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
)

// maxLedger bounds the segments of a ledger. A stream makes new ones as long as it runs: the oldest are forgotten.
const maxLedger = 20_000

// Ledger is what /demo/ledger answers.
type Ledger struct {
	Requests map[string]int64            `json:"requests"` // by client, all classes
	Bytes    map[string]int64            `json:"bytes"`    // by client, body bytes
	Segments map[string]map[string]int64 `json:"segments"` // path → client → requests

	known order
}

func newLedger() Ledger {
	return Ledger{Requests: map[string]int64{}, Bytes: map[string]int64{}, Segments: map[string]map[string]int64{}}
}

// book counts a request. segment is the path of one that is there, or empty.
func (l *Ledger) book(client, segment string, sent int64) {
	l.Requests[client]++
	l.Bytes[client] += sent
	if segment == "" {
		return
	}
	if l.Segments[segment] == nil {
		l.Segments[segment] = map[string]int64{}
		delete(l.Segments, l.known.add(segment))
	}
	l.Segments[segment][client]++
}

// order is the keys of a bounded map, by when they came.
type order struct {
	keys []string
	next int // of a full ring, the oldest
}

// add takes a key, and returns the one that has to go for it; empty: none.
func (o *order) add(key string) (gone string) {
	if len(o.keys) < maxLedger {
		o.keys = append(o.keys, key)
		return ""
	}
	gone, o.keys[o.next] = o.keys[o.next], key
	o.next = (o.next + 1) % maxLedger
	return gone
}

// digests are SHA-256 of the segments that a stream had, by path: what viewers were given can be compared with them when the segments
// are gone.
type digests struct {
	of    map[string]string
	known order
}

// note takes the digest of a segment of a stream.
func (o *Server) note(file string) error {
	f, err := o.Root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	at := o.Prefix + file
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.digests.of[at] == "" {
		delete(o.digests.of, o.digests.known.add(at))
	}
	o.digests.of[at] = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// ServeLedger answers with the ledger as JSON.
func (o *Server) ServeLedger(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	text, err := json.Marshal(o.ledger)
	o.mu.Unlock()
	answerJSON(w, text, err)
}

// ServeDigests answers GET /origin/digests on the admin port.
func (o *Server) ServeDigests(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	text, err := json.Marshal(o.digests.of)
	o.mu.Unlock()
	answerJSON(w, text, err)
}

func answerJSON(w http.ResponseWriter, text []byte, err error) {
	if err != nil {
		http.Error(w, "The answer cannot be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // the client may be gone
}
