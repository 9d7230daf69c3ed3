package background

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	d := peer.Data{Request: 0x01020304, Offset: 0x1100, Payload: []byte("payload")}
	s := ledbat.Stamp{Sequence: 1 << 31, SentAt: 0xfffffff0, Echo: 3, Echoes: true, AckNow: true}
	b := appendData(nil, d, s)
	if len(b) != Header+len(d.Payload) {
		t.Errorf("%d bytes", len(b))
	}
	got, stamp, err := parseData(b, len(b))
	if err != nil || stamp != s || got.Request != d.Request || got.Offset != d.Offset || !bytes.Equal(got.Payload, d.Payload) {
		t.Errorf("%+v, %+v, %v", got, stamp, err)
	}
	if _, _, err := parseData(b, len(b)-1); err == nil {
		t.Error("a message above the plan was taken")
	}
}

func FuzzParseData(f *testing.F) {
	f.Add(appendData(nil, peer.Data{Offset: 16383, Payload: []byte{1}}, ledbat.Stamp{}))
	f.Add([]byte{DataType})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, s, err := parseData(b, maxMessage)
		if err != nil {
			return
		}
		if int(d.Offset)+len(d.Payload) > peer.PieceSize || len(d.Payload) == 0 {
			t.Fatalf("%+v is out of limits", d)
		}
		again, stamp, err := parseData(appendData(nil, d, s), maxMessage)
		if err != nil || stamp != s || again.Request != d.Request || again.Offset != d.Offset || !bytes.Equal(again.Payload, d.Payload) {
			t.Fatalf("%+v, %+v, %v", again, stamp, err)
		}
	})
}

type vectors struct {
	Background []struct {
		Name, Hex  string
		DecodeOnly bool `json:"decode_only"`
		Message    struct {
			Request  uint32
			Offset   uint16
			Sequence uint32
			SentAt   uint32 `json:"sent_at"`
			Echo     uint32
			Echoes   bool
			AckNow   bool `json:"ack_now"`
			Payload  string
		}
	}
	BackgroundMalformed []struct {
		Name, Hex string
		Reason    peer.Reason
		Message   int
	} `json:"background_malformed"`
	Acks []struct {
		Name, Hex string
		Ack       struct {
			Cumulative, Highest uint32
			Bitmap              string
			ReceivedAt          uint32 `json:"received_at"`
			Hold                uint32
		}
	}
	AcksMalformed []struct{ Name, Hex string } `json:"acks_malformed"`
}

func readVectors(t *testing.T) vectors { return spec.Vectors[vectors](t, "peer.json") }

func TestVectorsOfTheWire(t *testing.T) {
	v := readVectors(t)
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range v.Background {
		m, b := c.Message, unhex(c.Hex)
		want := peer.Data{Request: m.Request, Offset: m.Offset, SentAt: m.SentAt, Payload: unhex(m.Payload)}
		stamp := ledbat.Stamp{Sequence: m.Sequence, SentAt: m.SentAt, Echo: m.Echo, Echoes: m.Echoes, AckNow: m.AckNow}
		if got, s, err := parseData(b, maxMessage); err != nil || s != stamp || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %+v, %v", c.Name, got, s, err)
		}
		if got := appendData(nil, want, stamp); !c.DecodeOnly && !bytes.Equal(got, b) {
			t.Errorf("%s is written as %x", c.Name, got)
		}
	}
	for _, c := range v.BackgroundMalformed {
		most := c.Message
		if most == 0 {
			most = maxMessage
		}
		var bad *peer.MalformedError
		if _, _, err := parseData(unhex(c.Hex), most); !errors.As(err, &bad) || bad.Reason != c.Reason {
			t.Errorf("%s: %v, want %s", c.Name, err, c.Reason)
		}
	}
	for _, c := range v.Acks {
		a, ok := ledbat.ParseAck(unhex(c.Hex))
		want := ledbat.Ack{Cumulative: c.Ack.Cumulative, Highest: c.Ack.Highest, Bitmap: binary.BigEndian.Uint64(unhex(c.Ack.Bitmap)), ReceivedAt: c.Ack.ReceivedAt, Hold: c.Ack.Hold}
		if !ok || a != want || !bytes.Equal(want.Append(nil), unhex(c.Hex)) {
			t.Errorf("%s: %+v, %v", c.Name, a, ok)
		}
	}
	for _, c := range v.AcksMalformed {
		if a, ok := ledbat.ParseAck(unhex(c.Hex)); ok {
			t.Errorf("%s: %+v", c.Name, a)
		}
	}
}
