package sdp

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type decodedCandidate struct {
	Foundation string `json:"foundation"`
	Priority   uint32 `json:"priority"`
	Address    string `json:"address"`
	Port       uint16 `json:"port"`
	Type       string `json:"type"`
	Cost       int    `json:"cost"`
}

type decoded struct {
	Ufrag       string             `json:"ufrag"`
	Password    string             `json:"password"`
	Fingerprint string             `json:"fingerprint"`
	Setup       Setup              `json:"setup"`
	Mid         string             `json:"mid"`
	MaxMessage  uint32             `json:"max_message"`
	Init        string             `json:"init"`
	Candidates  []decodedCandidate `json:"candidates"`
	Dropped     int                `json:"dropped"`
}

type vectors struct {
	Descriptions []struct {
		Name, SDP, Field string
		OK               bool
		Decoded          decoded
	}
	Candidates []struct {
		Name, Text string
		Decoded    *decodedCandidate
	}
}

func readVectors(t testing.TB) vectors { return spec.Vectors[vectors](t, "sdp.json") }

func shownCandidate(c Candidate) decodedCandidate {
	address := c.Name
	if address == "" {
		address = c.Addr.String()
	}
	return decodedCandidate{c.Foundation, c.Priority, address, c.Port, c.Type, c.Cost}
}

func shown(d *Description) decoded {
	out := decoded{
		d.Ufrag, d.Password, hex.EncodeToString(d.Fingerprint[:]), d.Setup, d.Mid, d.MaxMessage,
		base64.StdEncoding.EncodeToString(d.Init), []decodedCandidate{}, d.Dropped,
	}
	for _, c := range d.Candidates {
		out.Candidates = append(out.Candidates, shownCandidate(c))
	}
	return out
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t).Descriptions {
		d, err := Parse(v.SDP)
		var e *Error
		switch {
		case !v.OK && (!errors.As(err, &e) || e.Field != v.Field):
			t.Errorf("%s: %v, want a problem of %q", v.Name, err, v.Field)
		case v.OK && err != nil:
			t.Errorf("%s: %v", v.Name, err)
		case v.OK && !reflect.DeepEqual(shown(d), v.Decoded):
			t.Errorf("%s:\n%+v, want\n%+v", v.Name, shown(d), v.Decoded)
		}
	}
}

func TestVectorsOfCandidates(t *testing.T) {
	for _, v := range readVectors(t).Candidates {
		c, ok := ParseCandidate(v.Text)
		if ok != (v.Decoded != nil) || ok && shownCandidate(c) != *v.Decoded {
			t.Errorf("%s: %+v, %v", v.Name, c, ok)
		}
	}
}

// written is every line that a description may have.
var written = regexp.MustCompile(`^(v=0|o=- 1 1 IN IP4 0\.0\.0\.0|s=-|t=0 0|m=application 9 UDP/DTLS/SCTP webrtc-datachannel|c=IN IP4 0\.0\.0\.0|` +
	`a=(group:BUNDLE [!-~]{1,64}|ice-ufrag:[\w+/]{4,32}|ice-pwd:[\w+/]{22,64}|ice-options:trickle|fingerprint:sha-256 [0-9A-F]{2}(:[0-9A-F]{2}){31}|` +
	`setup:(actpass|active|passive)|mid:[!-~]{1,64}|sctp-port:5000|max-message-size:\d{1,10}|sctp-init:[\w+/]+=*|` +
	`candidate:[\w+/]{1,32} 1 udp \d{1,10} [0-9a-z.:-]+ \d{1,5} typ (host|(srflx|prflx|relay) raddr (::|0\.0\.0\.0) rport 0)( network-cost [1-9]\d{0,2})?))$`)

func FuzzParse(f *testing.F) {
	v := readVectors(f)
	for _, d := range v.Descriptions {
		f.Add(d.SDP)
	}
	for _, c := range v.Candidates {
		f.Add(strings.Replace(v.Descriptions[0].SDP, "a=setup", "a="+c.Text+"\r\na=setup", 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Field == "" {
				t.Fatalf("error of no class: %v", err)
			}
			return
		}
		again := d.String()
		for line := range strings.SplitSeq(strings.TrimSuffix(again, "\r\n"), "\r\n") {
			if !written.MatchString(line) {
				t.Fatalf("%q was written", line)
			}
		}
		for _, c := range d.Candidates {
			if (c.Name == "") != c.Addr.IsValid() || c.Addr.Is4In6() || c.Addr.Zone() != "" {
				t.Fatalf("%+v is not in its own form", c)
			}
			if c.Name == "" && netip.MustParseAddr(strings.Fields(c.String())[4]) != c.Addr {
				t.Fatalf("%+v is written as %s", c, c)
			}
		}
		back, err := Parse(again)
		if err != nil {
			t.Fatalf("%v of what was written:\n%s", err, again)
		}
		d.Dropped = 0
		if !reflect.DeepEqual(d, back) {
			t.Fatalf("%+v is another one after writing: %+v", d, back)
		}
	})
}
