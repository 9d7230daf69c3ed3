// Package sdp reads and writes session descriptions of links: those that have a data channel section and nothing else (RFC 8841).
//
// What comes from outside is read into a Description, and what is used is written from it: no line of another side's goes further.
// web/packages/core/src/link/description.ts does the same for browsers; spec/vectors/sdp.json holds both together.
package sdp

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Limits of a description (spec/tracker-protocol.md, Session descriptions).
const (
	Port              = 5000 // of SCTP
	DefaultMaxMessage = 65536
	MaxCandidates     = 64

	minUfrag, maxUfrag       = 4, 32
	minPassword, maxPassword = 22, 64
	maxMid                   = 64
	maxInit                  = 1024
)

// Setup is which part a side takes in the DTLS handshake (RFC 8842).
type Setup string

// The three that are used.
const (
	ActPass Setup = "actpass"
	Active  Setup = "active"  // the client
	Passive Setup = "passive" // the server
)

// Description is what a session description says of a link.
type Description struct {
	Ufrag, Password string
	Fingerprint     [32]byte // SHA-256
	Setup           Setup
	Mid             string
	MaxMessage      uint32 // bytes; 0: any
	Init            []byte // SNAP: the association's parameters; nil where the sender has it not
	Candidates      []Candidate
	Dropped         int // candidates that are malformed, never used or too many
}

// Error says what of a description is wrong. It quotes nothing of it.
type Error struct {
	Field string // the attribute; "line", "version" or "media"
}

// Error implements error.
func (e *Error) Error() string {
	return "session description: " + e.Field + " is missing, malformed or there twice"
}

// attributes are the single-valued ones of a description.
var attributes = map[string]bool{
	"ice-ufrag": true, "ice-pwd": true, "fingerprint": true, "setup": true, "mid": true,
	"sctp-port": true, "max-message-size": true, "sctp-init": true,
}

// level is the session or its section: what it says, by attribute.
type level map[string]string

// Parse reads a description. Lines end with LF or CRLF. What it does not know is left out; what it knows must be right.
func Parse(text string) (*Description, error) {
	d := &Description{}
	session, section := level{}, level(nil)
	at := session
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case i == 0 && line != "v=0":
			return nil, &Error{"version"}
		case len(line) < 2 || line[0] < 'a' || line[0] > 'z' || line[1] != '=' || controls(line):
			return nil, &Error{"line"}
		case line[0] == 'm':
			if section != nil || !isMedia(line) {
				return nil, &Error{"media"}
			}
			section = level{}
			at = section
		case line[0] == 'a':
			if err := d.attribute(at, line[2:]); err != nil {
				return nil, err
			}
		}
	}
	if section == nil {
		return nil, &Error{"media"}
	}
	for name, value := range session {
		if _, said := section[name]; !said {
			section[name] = value
		}
	}
	return d, d.fill(section)
}

// attribute takes one of the session or its section.
func (d *Description) attribute(at level, text string) error {
	name, value, _ := strings.Cut(text, ":")
	if name == "candidate" {
		c, ok := ParseCandidate(text)
		if !ok || len(d.Candidates) == MaxCandidates {
			d.Dropped++
			return nil
		}
		d.Candidates = append(d.Candidates, c)
		return nil
	}
	if name == "fingerprint" && !strings.EqualFold(value[:min(len(value), len("sha-256 "))], "sha-256 ") {
		return nil // there may be one of another algorithm beside it
	}
	if !attributes[name] {
		return nil
	}
	if _, twice := at[name]; twice {
		return &Error{name}
	}
	at[name] = value
	return nil
}

// fill takes what the section says. Nothing that stays keeps the whole text alive.
func (d *Description) fill(said level) error {
	d.Ufrag, d.Password, d.Mid = strings.Clone(said["ice-ufrag"]), strings.Clone(said["ice-pwd"]), strings.Clone(said["mid"])
	d.Setup = Setup(strings.Clone(said["setup"]))
	size, sized := said["max-message-size"]
	most, sizeOK := number(size, 1<<32-1)
	port, ported := said["sctp-port"]
	init, initialized := said["sctp-init"]
	switch {
	case !iceText(d.Ufrag, minUfrag, maxUfrag):
		return &Error{"ice-ufrag"}
	case !iceText(d.Password, minPassword, maxPassword):
		return &Error{"ice-pwd"}
	case !d.setFingerprint(said["fingerprint"]):
		return &Error{"fingerprint"}
	case d.Setup != ActPass && d.Setup != Active && d.Setup != Passive:
		return &Error{"setup"}
	case !isMid(d.Mid):
		return &Error{"mid"}
	case sized && !sizeOK:
		return &Error{"max-message-size"}
	case ported && port != fmt.Sprint(Port):
		return &Error{"sctp-port"}
	case initialized && !d.setInit(init):
		return &Error{"sctp-init"}
	}
	if d.MaxMessage = uint32(most); !sized {
		d.MaxMessage = DefaultMaxMessage
	}
	return nil
}

func (d *Description) setFingerprint(value string) bool {
	pairs := strings.Split(value[min(len(value), len("sha-256 ")):], ":")
	if len(pairs) != len(d.Fingerprint) {
		return false
	}
	for i, pair := range pairs {
		if n, err := hex.Decode(d.Fingerprint[i:i+1], []byte(pair[:min(2, len(pair))])); err != nil || n != 1 || len(pair) != 2 {
			return false
		}
	}
	return true
}

func (d *Description) setInit(value string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(value)
	d.Init = b
	return err == nil && len(b) > 0 && len(b) <= maxInit
}

// Addressed says whether the description names an address that can be sent to at once. Browsers that hide their addresses name none.
func (d *Description) Addressed() bool {
	return slices.ContainsFunc(d.Candidates, func(c Candidate) bool { return c.Name == "" })
}

// String writes the description.
func (d *Description) String() string {
	var b strings.Builder
	line := func(s string, a ...any) { fmt.Fprintf(&b, s+"\r\n", a...) }
	line("v=0")
	line("o=- 1 1 IN IP4 0.0.0.0")
	line("s=-")
	line("t=0 0")
	line("a=group:BUNDLE %s", d.Mid)
	line("m=application 9 UDP/DTLS/SCTP webrtc-datachannel")
	line("c=IN IP4 0.0.0.0")
	line("a=ice-ufrag:%s", d.Ufrag)
	line("a=ice-pwd:%s", d.Password)
	line("a=ice-options:trickle")
	line("a=fingerprint:sha-256 %s", colons(d.Fingerprint[:]))
	line("a=setup:%s", d.Setup)
	line("a=mid:%s", d.Mid)
	line("a=sctp-port:%d", Port)
	line("a=max-message-size:%d", d.MaxMessage)
	for _, c := range d.Candidates {
		line("a=%s", c)
	}
	if d.Init != nil {
		line("a=sctp-init:%s", base64.StdEncoding.EncodeToString(d.Init))
	}
	return b.String()
}

func colons(b []byte) string {
	out := make([]string, len(b))
	for i, c := range b {
		out[i] = fmt.Sprintf("%02X", c)
	}
	return strings.Join(out, ":")
}

// isMedia says whether a line begins a data channel section that is not refused.
func isMedia(line string) bool {
	f := strings.Split(line, " ")
	if len(f) != 4 || f[0] != "m=application" || f[2] != "UDP/DTLS/SCTP" && f[2] != "TCP/DTLS/SCTP" || f[3] != "webrtc-datachannel" {
		return false
	}
	port, ok := number(f[1], 1<<16-1)
	return ok && port > 0
}

// isMid says whether s is a token (RFC 8866, 9).
func isMid(s string) bool {
	return s != "" && len(s) <= maxMid && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]`, r)
	})
}

func controls(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f })
}
