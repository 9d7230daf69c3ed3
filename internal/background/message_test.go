package background

import (
	"bytes"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
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
		if err != nil || stamp != s || again.Request != d.Request || !bytes.Equal(again.Payload, d.Payload) {
			t.Fatalf("%+v, %+v, %v", again, stamp, err)
		}
	})
}
