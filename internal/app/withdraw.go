package app

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// maxPurge bounds the body of POST /purge and POST /switch, in bytes.
const maxPurge = 8 << 10

// purgeRequest is the body of POST /purge: a site and a prefix, or a key.
type purgeRequest struct {
	Site   string `json:"site,omitempty"`
	Prefix string `json:"prefix,omitempty"` // of segments' names; "/" is the whole site
	For    int64  `json:"for_ms,omitempty"` // a tombstone: so long nothing is certified anew
	KeyID  string `json:"key_id,omitempty"` // 16 hexadecimal digits: all that a seed's key signed
}

// purgeAnswer is what comes back.
type purgeAnswer struct {
	Site        string `json:"site,omitempty"`
	Prefix      string `json:"prefix,omitempty"`
	MinIssuedAt int64  `json:"min_issued_at,omitempty"` // ms since the Unix epoch
	Until       int64  `json:"until_ms,omitempty"`      // likewise: the tombstone's end
	KeyID       string `json:"key_id,omitempty"`
}

// switchRequest is the body of POST /switch.
type switchRequest struct {
	Site string `json:"site"`
	Off  bool   `json:"off"`
	For  int64  `json:"for_ms,omitempty"` // off: on again after so long
}

// switchAnswer is what comes back.
type switchAnswer struct {
	Site  string `json:"site"`
	Off   bool   `json:"off"`
	Until int64  `json:"until_ms,omitempty"` // ms since the Unix epoch
}

// body reads a request that changes something. It insists on JSON: a page in a browser can post a form to any address, but
// not this type without being asked first.
func (a *admin) body(w http.ResponseWriter, r *http.Request, request any, example string) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Send this as application/json.", http.StatusUnsupportedMediaType)
		return false
	}
	if a.send == nil {
		http.Error(w, "This process has no bus, so it cannot tell trackers and seeds.", http.StatusNotImplemented)
		return false
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPurge))
	in.DisallowUnknownFields()
	if err := in.Decode(request); err != nil {
		http.Error(w, "Not understood: send "+example+".", http.StatusBadRequest)
		return false
	}
	return true
}

// tell sends a message to all replicas and answers when the bus has it.
func (a *admin) tell(w http.ResponseWriter, m *bus.RevokeMessage, answer any) bool {
	message, err := bus.Encode(m)
	if err == nil {
		err = a.send(bus.SubjectRevoke, message)
	}
	if errors.Is(err, natsbus.ErrRefused) {
		http.Error(w, "The NATS server accepts this only from trackers: use the admin port of a tracker.", http.StatusForbidden)
		return false
	}
	if err != nil {
		a.log.Error("replicas could not be told", "error", err)
		http.Error(w, "It could not be sent: the bus is down. Try again.", http.StatusServiceUnavailable)
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone; the message is out
	return true
}

// purge withdraws what was certified before now below a prefix, or by a key.
func (a *admin) purge(w http.ResponseWriter, r *http.Request) {
	var request purgeRequest
	if !a.body(w, r, &request, `{"site":"demo","prefix":"/media/bbb/"} or {"key_id":"0123456789abcdef"}`) {
		return
	}
	revocation, answer, text := a.revocation(request)
	if text != "" {
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	if a.tell(w, &bus.RevokeMessage{Revocations: []signal.Revocation{revocation}}, answer) {
		a.log.Info("purged", "site", answer.Site, "prefix", answer.Prefix, "key", answer.KeyID, "until_ms", answer.Until)
	}
}

// revocation is what a request asks for, or what is wrong with it.
func (a *admin) revocation(p purgeRequest) (r signal.Revocation, answer purgeAnswer, problem string) {
	if p.KeyID != "" {
		id, err := hex.DecodeString(p.KeyID)
		switch {
		case err != nil || len(id) != len(certificate.KeyID{}):
			return r, answer, fmt.Sprintf("%q is no key ID: 16 hexadecimal digits.", p.KeyID)
		case p.Site != "" || p.Prefix != "" || p.For != 0:
			return r, answer, "A key is revoked for all sites and for good: name nothing beside it."
		}
		return signal.Revocation{KeyID: id}, purgeAnswer{KeyID: p.KeyID}, ""
	}
	length := time.Duration(p.For) * time.Millisecond
	of, problem := a.site(p.Site)
	switch {
	case problem != "":
		return r, answer, problem
	case !strings.HasPrefix(p.Prefix, "/"):
		return r, answer, fmt.Sprintf("The prefix %q does not begin with a slash; / is the whole site.", p.Prefix)
	case p.For < 0 || p.For > certificate.MaxBuried.Milliseconds():
		return r, answer, fmt.Sprintf("A path is taken down for at most %.0f days; do it again when they are over.", certificate.MaxBuried.Hours()/24)
	}
	path, part, ranged := strings.Cut(p.Prefix, "#")
	prefix, err := of.KeyOfPath(path) // as names have it: one with a space or an accent would be the beginning of none
	if err != nil {
		return r, answer, fmt.Sprintf("The prefix %.100q begins no name: %v.", p.Prefix, err)
	}
	if ranged {
		prefix += "#" + part
	}
	now := a.now()
	answer = purgeAnswer{Site: p.Site, Prefix: prefix, MinIssuedAt: now.UnixMilli()}
	if p.For > 0 {
		answer.Until = now.Add(length).UnixMilli()
		answer.MinIssuedAt = certificate.Tombstone(p.Site, prefix, now.Add(length)).MinIssuedAt.UnixMilli()
	}
	return signal.Revocation{Site: p.Site, Prefix: prefix, MinIssuedAt: answer.MinIssuedAt}, answer, ""
}

// site is the one of a name, or the sentence that there is none.
func (a *admin) site(name string) (one *site.Site, problem string) {
	names := make([]string, 0, len(a.sites))
	for _, s := range a.sites {
		if s.Name() == name {
			return s, ""
		}
		names = append(names, s.Name())
	}
	return nil, fmt.Sprintf("No site %q here%s.", name, strings.TrimSuffix(suggestion(name, names), "?"))
}

// change switches peer delivery of a site off or on.
func (a *admin) change(w http.ResponseWriter, r *http.Request) {
	var request switchRequest
	if !a.body(w, r, &request, `{"site":"demo","off":true}`) {
		return
	}
	_, text := a.site(request.Site)
	switch length := time.Duration(request.For) * time.Millisecond; {
	case text != "":
	case request.For < 0 || request.For > 0 && !request.Off:
		text = "for_ms says how long a site is off; a site that is on stays on."
	case length.Milliseconds() != request.For: // no duration holds it
		text = "for_ms is centuries: leave it out, and the site is off until it is switched on."
	}
	if text != "" {
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	answer := switchAnswer{Site: request.Site, Off: request.Off}
	var until time.Time
	if request.For > 0 {
		until = a.now().Add(time.Duration(request.For) * time.Millisecond)
		answer.Until = until.UnixMilli()
	}
	m := &bus.RevokeMessage{Revocations: []signal.Revocation{}, Switches: a.switched(request.Site, request.Off, until)}
	if a.tell(w, m, answer) {
		a.log.Warn("peer delivery switched by command", "site", answer.Site, "off", answer.Off, "until_ms", answer.Until)
	}
}

// switcher is a service that follows switches.
type switcher interface {
	Statements(site string, off bool, reason string, until time.Time) []bus.Switch
	Configure(site string, off bool)
	Packagers(site string, keys []certificate.VerifyKey)
}

// statements are dated so that they hold against what this process knows.
func (s *services) statements(site string, off bool, until time.Time) []bus.Switch {
	return s.switchers[0].Statements(site, off, cluster.ByOperator, until)
}
