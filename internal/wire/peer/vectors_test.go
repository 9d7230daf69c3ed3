package peer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Messages []struct {
		Name, Channel, Hex string
		Message            vectorMessage
		DecodeOnly         bool `json:"decode_only"`
	}
	Malformed []struct {
		Name, Channel, Hex string
		Reason             Reason
	}
	Unknown []struct {
		Name, Channel, Hex string
		Type               Type
	}
	Parts []struct {
		Name, Hex string
		Message   vectorMessage
	}
	PartsMalformed []struct {
		Name, Hex string
		Reason    Reason
	} `json:"parts_malformed"`
	Pushed []struct {
		Push, Request uint32
		Piece         int
	}
	Cuts     []struct{ Length, Message, Payload, Messages int }
	Versions []struct {
		A, B    [2]uint8
		Version *uint8
	}
}

type vectorMessage struct {
	Type         string
	MinVersion   uint8 `json:"min_version"`
	MaxVersion   uint8 `json:"max_version"`
	Flags        Flags
	MaxRequests  uint16 `json:"max_requests"`
	Peer, Swarm  string
	Entries      []vectorEntry
	Segments     []string
	Segment      string
	Certificate  string
	Reason       byte
	ObjectLength uint64 `json:"object_length"`
	Lane         Lane
	Requests     []PieceRequest
	IDs          []uint32
	Request      uint32
	Offset       uint16
	SentAt       uint32 `json:"sent_at"`
	Payload      string
	Nonce        uint32
	Stream       string
	On           bool
	Stripe       uint8
	Slots        uint8
	Rank         uint64
	Room, Least  uint8
	Path         []string
	Push, Turn   uint32
}

type vectorEntry struct {
	Segment string
	State   State
	Pieces  uint16
	Bitmap  string
}

func readVectors(tb testing.TB) vectors { return spec.Vectors[vectors](tb, "peer.json") }

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func channelNamed(s string) Channel {
	return map[string]Channel{"control": Control, "ack": Ack, "data": DataChannel}[s]
}

func (m vectorMessage) message(tb testing.TB) Message {
	id := func(s string) segment.ID { return segment.ID(unhex(tb, s)) }
	session := func(s string) swarm.ID { return swarm.ID(unhex(tb, s)) }
	switch m.Type {
	case "hello":
		return Hello{m.MinVersion, m.MaxVersion, m.Flags, m.MaxRequests, session(m.Peer), session(m.Swarm)}
	case "have":
		h := Have{}
		for _, e := range m.Entries {
			he := HaveEntry{Segment: id(e.Segment), State: e.State, Pieces: e.Pieces}
			if e.State == HoldsPartial {
				he.Bitmap = unhex(tb, e.Bitmap)
			}
			h.Entries = append(h.Entries, he)
		}
		return h
	case "certificate-request":
		r := CertificateRequest{}
		for _, s := range m.Segments {
			r.Segments = append(r.Segments, id(s))
		}
		return r
	case "certificate":
		return Certificate{id(m.Segment), unhex(tb, m.Certificate)}
	case "certificate-none":
		return CertificateNone{id(m.Segment), NoneReason(m.Reason), m.ObjectLength}
	case "request":
		return Request{id(m.Segment), m.Lane, m.Requests}
	case "cancel":
		return Cancel{m.IDs}
	case "reject":
		return Reject{RejectReason(m.Reason), m.IDs}
	case "promote":
		return Promote{m.IDs}
	case "data":
		return Data{m.Request, m.Offset, m.SentAt, unhex(tb, m.Payload)}
	case "ping":
		return Ping{m.Nonce, m.SentAt}
	case "pong":
		return Pong{m.Nonce, m.SentAt}
	case "bye":
		return Bye{ByeReason(m.Reason)}
	}
	return m.part(tb)
}

// part is a message of parts.
func (m vectorMessage) part(tb testing.TB) Message {
	stream := segment.ID(unhex(tb, m.Stream))
	switch m.Type {
	case "follow":
		return Follow{stream, m.On}
	case "place":
		p := Place{Stream: stream, Stripe: m.Stripe, Rank: m.Rank, Room: m.Room, Least: m.Least}
		for _, s := range m.Path {
			p.Path = append(p.Path, swarm.ID(unhex(tb, s)))
		}
		return p
	case "subscribe":
		return Subscribe{stream, m.Stripe, m.Slots}
	case "unsubscribe":
		return Unsubscribe{stream, m.Stripe}
	case "end":
		return End{stream, m.Stripe}
	case "part":
		return Part{stream, m.Push, m.Turn, unhex(tb, m.Certificate)}
	case "enough":
		return Enough{stream, segment.ID(unhex(tb, m.Segment))}
	case "hold":
		return Hold{stream, m.On}
	}
	tb.Fatalf("vector of type %q", m.Type)
	return nil
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Messages {
		want, raw := c.Message.message(t), unhex(t, c.Hex)
		got, err := Decode(channelNamed(c.Channel), raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decodes to %+v, %v; want %+v", c.Name, got, err, want)
		}
		if c.DecodeOnly {
			continue
		}
		if b, err := Append([]byte{0xaa}, want); err != nil || !bytes.Equal(b[1:], raw) {
			t.Errorf("%s: encodes to %x, %v", c.Name, b, err)
		}
	}
	for _, c := range v.Malformed {
		_, err := Decode(channelNamed(c.Channel), unhex(t, c.Hex))
		var m *MalformedError
		if !errors.As(err, &m) || m.Reason != c.Reason {
			t.Errorf("%s: %v, want malformed: %s", c.Name, err, c.Reason)
		}
		if channelNamed(c.Channel) == DataChannel {
			if _, err := DecodeData(unhex(t, c.Hex), MaxMessage); !errors.As(err, &m) || m.Reason != c.Reason {
				t.Errorf("%s: DecodeData: %v, want malformed: %s", c.Name, err, c.Reason)
			}
		}
	}
	for _, c := range v.Unknown {
		_, err := Decode(channelNamed(c.Channel), unhex(t, c.Hex))
		var u *UnknownTypeError
		if !IsUnknown(err) || !errors.As(err, &u) || u.Type != c.Type {
			t.Errorf("%s: %v, want unknown type", c.Name, err)
		}
	}
}

func TestVectorsOfCutsAndVersions(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Cuts {
		size := CutSize(c.Length, c.Message)
		if n := (c.Length + size - 1) / size; size != c.Payload || n != c.Messages {
			t.Errorf("a piece of %d in messages of %d: %d × %d, want %d × %d", c.Length, c.Message, n, size, c.Messages, c.Payload)
		}
	}
	for _, c := range v.Versions {
		got, err := Negotiate(Hello{MinVersion: c.A[0], MaxVersion: c.A[1]}, Hello{MinVersion: c.B[0], MaxVersion: c.B[1]})
		if c.Version == nil && err != ErrVersion || c.Version != nil && got != *c.Version {
			t.Errorf("%v and %v: version %d, %v", c.A, c.B, got, err)
		}
	}
}

func TestVectorsOfParts(t *testing.T) {
	v := readVectors(t)
	if len(v.Parts) == 0 || len(v.PartsMalformed) == 0 || len(v.Pushed) == 0 {
		t.Fatal("no vectors")
	}
	for _, c := range v.Parts {
		want, raw := c.Message.message(t), unhex(t, c.Hex)
		if got, err := DecodeParts(Control, raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decodes to %+v, %v; want %+v", c.Name, got, err, want)
		}
		if b, err := Append([]byte{0xaa}, want); err != nil || !bytes.Equal(b[1:], raw) {
			t.Errorf("%s: encodes to %x, %v", c.Name, b, err)
		}
		if _, err := Decode(Control, raw); !IsUnknown(err) {
			t.Errorf("%s: Decode knows it: %v", c.Name, err)
		}
		var m *MalformedError
		if _, err := DecodeParts(DataChannel, raw); !errors.As(err, &m) || m.Reason != ReasonChannel {
			t.Errorf("%s on a data channel: %v", c.Name, err)
		}
	}
	for _, c := range v.PartsMalformed {
		_, err := DecodeParts(Control, unhex(t, c.Hex))
		var m *MalformedError
		if !errors.As(err, &m) || m.Reason != c.Reason {
			t.Errorf("%s: %v, want malformed: %s", c.Name, err, c.Reason)
		}
	}
	for _, c := range v.Pushed {
		push, piece, is := Pushed(c.Request)
		if PushedID(c.Push, c.Piece) != c.Request || push != c.Push || piece != c.Piece || !is {
			t.Errorf("piece %d of push %d: request %d is piece %d of %d, %v", c.Piece, c.Push, PushedID(c.Push, c.Piece), piece, push, is)
		}
	}
	if _, _, is := Pushed(1<<31 - 1); is {
		t.Error("a requested piece is taken for a pushed one")
	}
}
