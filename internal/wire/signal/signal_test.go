package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vector struct {
	Name    string         `json:"name"`
	From    string         `json:"from"`
	Raw     string         `json:"raw"`
	OK      bool           `json:"ok"`
	Decoded map[string]any `json:"decoded"`
	Field   string         `json:"field"`
}

func vectors(t testing.TB) []vector {
	return spec.Vectors[struct{ Messages []vector }](t, "signal.json").Messages
}

func TestVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vectors(t) {
		m, err := Decode([]byte(v.Raw))
		if !v.OK {
			var e *MalformedError
			if !errors.As(err, &e) || e.Field != v.Field {
				t.Errorf("%s: %v, want a problem of field %q", v.Name, err, v.Field)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		seen[m.Type()] = true
		compare(t, v, m)
	}
	for _, name := range Types {
		if !seen[name] {
			t.Errorf("no vector for type %s", name)
		}
	}
}

// compare holds a message against the vector's meaning, by way of its encoding.
func compare(t *testing.T, v vector, m Message) {
	t.Helper()
	if u, ok := m.(*Unknown); ok {
		if v.Decoded["unknown"] != true || v.Decoded["type"] != u.Name {
			t.Errorf("%s: type %q is unknown", v.Name, u.Name)
		}
		return
	}
	b, err := Encode(m)
	if err != nil {
		t.Errorf("%s: %v", v.Name, err)
		return
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if m.Type() == "signal" && v.Decoded["sdp_m_line_index"] == 0.0 { // 0 is left out when encoded
		got["sdp_m_line_index"] = 0.0
	}
	if !reflect.DeepEqual(got, v.Decoded) {
		t.Errorf("%s:\n  got  %v\n  want %v", v.Name, got, v.Decoded)
	}
	again, err := Decode(b)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("%s: does not survive encoding: %v", v.Name, err)
	}
}

func TestErrorsCarryTheRequestAndNoContent(t *testing.T) {
	_, err := Decode([]byte(`{"type":"join","id":12,"title":"t","role":"secret-role"}`))
	var e *MalformedError
	if !errors.As(err, &e) || e.Request != 12 || strings.Contains(e.Error(), "secret") {
		t.Errorf("%v (request %d)", err, e.Request)
	}
}

func TestEncodeRefusesWhatNoOneWouldRead(t *testing.T) {
	if _, err := Encode(&Hello{Version: 1, Token: strings.Repeat("x", MaxMessage)}); err == nil {
		t.Error("a message above the limit was encoded")
	}
	if _, err := Encode(&Unknown{Name: "sing"}); err == nil {
		t.Error("an unknown message was encoded")
	}
}

func TestIDForms(t *testing.T) {
	id := ID{0xde, 0xad, 15: 0xef}
	if back, err := swarm.ParseID(id.String()); err != nil || back != id {
		t.Errorf("base64url: %v %v", back, err)
	}
	if want := "dead" + strings.Repeat("00", 13) + "ef"; id.Hex() != want {
		t.Errorf("hex: %s, want %s", id.Hex(), want)
	}
	for _, s := range []string{"", "x", strings.Repeat("=", 22), strings.Repeat("A", 20) + "\r\n"} {
		if _, err := swarm.ParseID(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.Raw) < 4096 {
			f.Add([]byte(v.Raw))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if len(err.Error()) > 256 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if _, ok := m.(*Unknown); ok {
			return
		}
		again, err := Encode(m)
		if errors.Is(err, ErrTooLarge) {
			return // text grows by escaping
		}
		if err != nil {
			t.Fatalf("%s was decoded and is not encoded: %v", m.Type(), err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("%s is not decoded again: %v\n%s", m.Type(), err, again)
		}
		if twice, err := Encode(back); err != nil || !bytes.Equal(again, twice) {
			t.Fatalf("%s does not survive encoding: %v\n%s\n%s", m.Type(), err, again, twice)
		}
		if w, ok := m.(*Welcome); ok {
			w.Site = back.(*Welcome).Site // one value in two spellings
		}
		if !reflect.DeepEqual(m, back) {
			t.Fatalf("%s is another one after encoding:\n%s", m.Type(), again)
		}
	})
}
