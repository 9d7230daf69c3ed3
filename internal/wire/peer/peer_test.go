package peer

import (
	"bytes"
	"errors"
	"testing"
)

func TestAppendRefusesWhatDecodeWould(t *testing.T) {
	for name, m := range map[string]Message{
		"hello without versions":  Hello{MaxRequests: 1},
		"have of nothing":         Have{},
		"bitmap of another size":  Have{[]HaveEntry{{State: HoldsPartial, Pieces: 9, Bitmap: []byte{1}}}},
		"256 IDs":                 Cancel{make([]uint32, 256)},
		"oversized certificate":   Certificate{Raw: make([]byte, MaxCertificate+1)},
		"payload behind a piece":  Data{Offset: 1, Payload: make([]byte, PieceSize)},
		"length without a reason": CertificateNone{ObjectLength: 1},
	} {
		dst := []byte("kept")
		got, err := Append(dst, m)
		var e *MalformedError
		if !errors.As(err, &e) || !bytes.Equal(got, dst) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestDecodeDataHoldsThePlan(t *testing.T) {
	b, err := Append(nil, Data{Request: 1, Payload: make([]byte, 1190)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeData(b, 1200); err == nil {
		t.Error("1201 bytes passed a plan of 1200")
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := DecodeData(b, 1201); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("DecodeData allocates %v times", n)
	}
}

func TestBitmap(t *testing.T) {
	b := make([]byte, BitmapLen(10))
	for _, i := range []int{0, 7, 9} {
		BitmapSet(b, i)
	}
	for i := range 20 {
		if BitmapHas(b, i) != (i == 0 || i == 7 || i == 9) {
			t.Errorf("piece %d of %x", i, b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Messages {
		f.Add(int(channelNamed(c.Channel)), unhex(f, c.Hex))
	}
	for _, c := range v.Malformed {
		f.Add(int(channelNamed(c.Channel)), unhex(f, c.Hex))
	}
	for _, c := range v.Parts {
		f.Add(int(Control), unhex(f, c.Hex))
	}
	for _, c := range v.PartsMalformed {
		f.Add(int(Control), unhex(f, c.Hex))
	}
	f.Fuzz(func(t *testing.T, channel int, b []byte) {
		m, err := Decode(Channel(channel), b)
		if IsUnknown(err) {
			m, err = DecodeParts(Channel(channel), b)
		}
		if err != nil {
			var e *MalformedError
			if !IsUnknown(err) && !errors.As(err, &e) {
				t.Fatalf("error of no class: %v", err)
			}
			return
		}
		out, err := Append(nil, m)
		if err != nil {
			t.Fatalf("decoded %+v does not encode: %v", m, err)
		}
		if m.Type() == TypeHello {
			b = b[:len(out)] // trailing bytes of a hello are room for later versions
		}
		if !bytes.Equal(out, b) {
			t.Fatalf("%x became %x", b, out)
		}
	})
}
