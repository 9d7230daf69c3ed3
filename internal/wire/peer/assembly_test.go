package peer

import (
	"bytes"
	"errors"
	"testing"
)

func TestAPieceComesTogetherInAnyOrder(t *testing.T) {
	var a Assembly
	for _, m := range []Data{{Offset: 4, Payload: []byte("efg")}, {Offset: 0, Payload: []byte("ab")}, {Offset: 2, Payload: []byte("cd")}} {
		if err := a.Add(m, 7); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Data, []byte("abcdefg")) || a.Received != 7 || a.Messages() != 3 {
		t.Errorf("%q, %d bytes in %d messages", a.Data, a.Received, a.Messages())
	}
}

func TestWhatDoesNotFitIntoItsPiece(t *testing.T) {
	var a Assembly
	if err := a.Add(Data{Offset: 2, Payload: []byte("cd")}, 100); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    Data
		want error
	}{
		{Data{Offset: 98, Payload: []byte("xyz")}, ErrBeyond},
		{Data{Offset: 3, Payload: []byte("d")}, ErrOverlap},
		{Data{Offset: 0, Payload: []byte("abc")}, ErrOverlap},
		{Data{Offset: 1, Payload: []byte("bcde")}, ErrOverlap},
	} {
		if err := a.Add(c.m, 100); !errors.Is(err, c.want) {
			t.Errorf("%q at %d: %v, want %v", c.m.Payload, c.m.Offset, err, c.want)
		}
	}
	if a.Received != 2 || a.Messages() != 1 {
		t.Errorf("what did not fit was counted: %d bytes in %d messages", a.Received, a.Messages())
	}
	for n := 1; n < MaxPieceMessages; n++ {
		if err := a.Add(Data{Offset: uint16(10 + n), Payload: []byte{1}}, 100); err != nil {
			t.Fatal(n, err)
		}
	}
	if err := a.Add(Data{Offset: 99, Payload: []byte{1}}, 100); !errors.Is(err, ErrCrumbs) {
		t.Errorf("one message too many: %v", err)
	}
}
