package quality

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Messages []struct {
		Name, Hex   string
		Zeros, Size int
		Message     fields
		DecodeOnly  bool `json:"decode_only"`
	}
	Malformed []struct {
		Name, Hex string
		Zeros     int
		Reason    Reason
	}
	Controls []struct {
		Name, Text string
		Spaces     int
		Message    fields
		DecodeOnly bool `json:"decode_only"`
	}
	MalformedControls []struct {
		Name, Text, Field string
		Spaces            int
		Reason            Reason
	} `json:"malformed_controls"`
}

// fields are those of any message, as the vectors state them.
type fields struct {
	Type       string
	Stream     *uint16
	Sequence   uint32
	SentUS     int64 `json:"sent_us"`
	ReceivedUS int64 `json:"received_us"`
	EchoedUS   int64 `json:"echoed_us"`
	Direction  Direction
	Messages   int64
	IntervalUS int64 `json:"interval_us"`
	Size       int64
	TimeUS     int64 `json:"time_us"`
	Arrivals   [][3]int64
	Marks      *[][2]int64
	Code       Code
	Text       string
}

func (f fields) message() Message {
	p := Probe{*f.Stream, f.Sequence, f.SentUS}
	if f.Type == "probe" {
		return p
	}
	return Echo{p, f.ReceivedUS, f.EchoedUS}
}

func (f fields) control(t testing.TB) Control {
	switch f.Type {
	case "run":
		return Run{*f.Stream, f.Direction, f.Messages, f.IntervalUS, f.Size}
	case "load":
		return Load{*f.Stream, f.Direction, f.TimeUS}
	case "ready":
		return Ready{*f.Stream}
	case "sent":
		return Sent{*f.Stream}
	case "record":
		r := Record{Stream: *f.Stream}
		for _, a := range f.Arrivals {
			r.Arrivals = append(r.Arrivals, netstat.Arrival{Sequence: a[0], Sent: a[1], Received: a[2]})
		}
		return r
	case "end":
		e := End{Stream: *f.Stream}
		if f.Marks != nil {
			e.Marks = []Mark{}
			for _, m := range *f.Marks {
				e.Marks = append(e.Marks, Mark{m[0], m[1]})
			}
		}
		return e
	case "error":
		return Error{f.Stream, f.Code, f.Text}
	}
	t.Fatalf("a vector of type %q", f.Type)
	return nil
}

func read(t testing.TB) vectors { return spec.Vectors[vectors](t, "quality.json") }

func unhex(t testing.TB, s string, zeros int) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, zeros)...)
}

func TestVectorsOfMessages(t *testing.T) {
	v := read(t)
	for _, c := range v.Messages {
		raw, want := unhex(t, c.Hex, c.Zeros), c.Message.message()
		if got, err := Decode(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v", c.Name, got, err)
		}
		if got := want.Append([]byte{7}, c.Size); !c.DecodeOnly && !bytes.Equal(got[1:], raw) {
			t.Errorf("%s: encodes to %x", c.Name, got)
		}
	}
	for _, c := range v.Malformed {
		_, err := Decode(unhex(t, c.Hex, c.Zeros))
		if m := (&MalformedError{}); !errors.As(err, &m) || m.Reason != c.Reason {
			t.Errorf("%s: %v, want %s", c.Name, err, c.Reason)
		}
	}
}

func TestVectorsOfControls(t *testing.T) {
	v := read(t)
	for _, c := range v.Controls {
		raw, want := []byte(c.Text+strings.Repeat(" ", c.Spaces)), c.Message.control(t)
		if got, err := DecodeControl(raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", c.Name, got, err)
		}
		if got, err := EncodeControl(want); err != nil || !c.DecodeOnly && string(got) != c.Text {
			t.Errorf("%s: encodes to %s, %v", c.Name, got, err)
		}
	}
	for _, c := range v.MalformedControls {
		got, err := DecodeControl([]byte(c.Text + strings.Repeat(" ", c.Spaces)))
		if m := (&MalformedError{}); !errors.As(err, &m) || m.Reason != c.Reason || m.Field != c.Field || strings.Contains(err.Error(), c.Text) && c.Text != "" {
			t.Errorf("%s: %+v, %v, want %s %s", c.Name, got, err, c.Reason, c.Field)
		}
	}
	if _, err := DecodeControl([]byte("{\"type\":\"sent\",\"stream\":1,\"\xff\":1}")); err == nil {
		t.Error("text that is no UTF-8 is taken")
	}
}

// TestTheLargestRecordFits: a record of as many arrivals as may be, with the largest figures.
func TestTheLargestRecordFits(t *testing.T) {
	r := Record{Stream: 65535}
	for range MaxArrivals {
		r.Arrivals = append(r.Arrivals, netstat.Arrival{Sequence: MaxMessages - 1, Sent: MaxClock, Received: MaxClock})
	}
	b, err := EncodeControl(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeControl(b); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}

func FuzzDecode(f *testing.F) {
	v := read(f)
	for _, c := range v.Messages {
		f.Add(unhex(f, c.Hex, c.Zeros))
	}
	for _, c := range v.Malformed {
		f.Add(unhex(f, c.Hex, c.Zeros))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		again := m.Append(nil, len(b))
		if back, err := Decode(again); err != nil || back != m || len(again) != len(b) {
			t.Errorf("%x: %+v, then %+v, %v", b, m, back, err)
		}
	})
}

func FuzzDecodeControl(f *testing.F) {
	v := read(f)
	for _, c := range v.Controls {
		f.Add([]byte(c.Text))
	}
	for _, c := range v.MalformedControls {
		if len(c.Text) < 1024 {
			f.Add([]byte(c.Text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeControl(b)
		if err != nil {
			if m := (&MalformedError{}); !errors.As(err, &m) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := EncodeControl(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > MaxControl {
			return // text that grows by escaping
		}
		if back, err := DecodeControl(again); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %+v, then %s %+v, %v", b, c, again, back, err)
		}
	})
}
