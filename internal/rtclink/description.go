package rtclink

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// description is what a session description says of a link that has data channels and nothing else (RFC 8841).
type description struct {
	ufrag, password string
	fingerprint     [32]byte // SHA-256
	setup           string   // actpass, active, passive
	mid             string
	sctpInit        []byte // SNAP: the association's parameters; nil where the sender has it not
	candidates      []string
}

// Limits of a description from outside, beyond the signal's own.
const (
	maxMid        = 64
	maxCredential = 256 // RFC 8839
	maxSCTPInit   = 1024
	maxSDPAddress = 64 // candidates in the description itself
	sctpPort      = 5000
)

var (
	errNoDataChannel = errors.New("session description without a data channel section")
	errMoreSections  = errors.New("session description with more than a data channel section")
)

// String writes the session description.
func (d *description) String() string {
	var b strings.Builder
	line := func(s string, a ...any) { fmt.Fprintf(&b, s+"\r\n", a...) }
	line("v=0")
	line("o=- 1 1 IN IP4 0.0.0.0")
	line("s=-")
	line("t=0 0")
	line("a=group:BUNDLE %s", d.mid)
	line("m=application 9 UDP/DTLS/SCTP webrtc-datachannel")
	line("c=IN IP4 0.0.0.0")
	line("a=ice-ufrag:%s", d.ufrag)
	line("a=ice-pwd:%s", d.password)
	line("a=ice-options:trickle")
	line("a=fingerprint:sha-256 %s", colons(d.fingerprint[:]))
	line("a=setup:%s", d.setup)
	line("a=mid:%s", d.mid)
	line("a=sctp-port:%d", sctpPort)
	line("a=max-message-size:%d", sctpMessage)
	for _, c := range d.candidates {
		line("a=%s", c)
	}
	if d.sctpInit != nil {
		line("a=sctp-init:%s", base64.StdEncoding.EncodeToString(d.sctpInit))
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

// parseDescription reads a session description of the other side.
func parseDescription(sdp string) (*description, error) {
	d := &description{}
	sections, hashed := 0, false
	for line := range strings.Lines(sdp) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "m=") {
			if sections++; sections > 1 {
				return nil, errMoreSections
			}
			if f := strings.Fields(line); len(f) != 4 || f[0] != "m=application" || f[1] == "0" || f[3] != "webrtc-datachannel" {
				return nil, errNoDataChannel
			}
			continue
		}
		attribute, ok := strings.CutPrefix(line, "a=")
		if !ok {
			continue
		}
		name, value, _ := strings.Cut(attribute, ":")
		if name == "fingerprint" {
			hashed = true
		}
		if err := d.set(name, strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("session description: %s: %w", name, err)
		}
	}
	switch {
	case sections == 0:
		return nil, errNoDataChannel
	case d.ufrag == "" || d.password == "" || len(d.ufrag) > maxCredential || len(d.password) > maxCredential:
		return nil, errors.New("session description without ICE credentials")
	case !hashed || d.fingerprint == [32]byte{}:
		return nil, errors.New("session description without a SHA-256 fingerprint")
	case d.mid == "" || len(d.mid) > maxMid:
		return nil, errors.New("session description without a mid")
	}
	return d, nil
}

// set takes one attribute; what stays does not keep the whole description alive. Those of the session count where its section has none, so that order does not matter.
func (d *description) set(name, value string) error {
	switch name {
	case "ice-ufrag":
		d.ufrag = strings.Clone(value)
	case "ice-pwd":
		d.password = strings.Clone(value)
	case "mid":
		d.mid = strings.Clone(value)
	case "setup":
		if value != "actpass" && value != "active" && value != "passive" {
			return fmt.Errorf("%q", value)
		}
		d.setup = value
	case "fingerprint":
		return d.setFingerprint(value)
	case "sctp-port":
		if port, err := strconv.Atoi(value); err != nil || port != sctpPort {
			return fmt.Errorf("%q: only %d is spoken", value, sctpPort)
		}
	case "sctp-init":
		init, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(init) > maxSCTPInit {
			return errors.New("malformed")
		}
		d.sctpInit = init
	case "candidate":
		if len(d.candidates) < maxSDPAddress {
			d.candidates = append(d.candidates, name+":"+value)
		}
	}
	return nil
}

func (d *description) setFingerprint(value string) error {
	algorithm, digits, _ := strings.Cut(value, " ")
	if !strings.EqualFold(algorithm, "sha-256") {
		return nil // there may be one of another algorithm beside it
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if err != nil || len(raw) != len(d.fingerprint) {
		return errors.New("malformed")
	}
	d.fingerprint = [32]byte(raw)
	return nil
}

// addressed says whether the description names an address that this side can send to at once. Its checks are then
// answered as soon as the other side has this side's description, one way earlier than the other side's own: whoever
// answers is quicker as the DTLS client. Browsers that hide their addresses name none.
func (d *description) addressed() bool {
	for _, c := range d.candidates {
		if f := strings.Fields(c); len(f) > 4 {
			if _, err := netip.ParseAddr(f[4]); err == nil {
				return true
			}
		}
	}
	return false
}
