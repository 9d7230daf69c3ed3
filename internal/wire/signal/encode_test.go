package signal

import (
	"bytes"
	"testing"
)

// sameAsReflected: what is written by hand is what encoding/json writes.
func sameAsReflected(t *testing.T, m Message) {
	t.Helper()
	got, ok := appendMessage([]byte("x"), m)
	if !ok {
		return
	}
	want, err := appendReflected([]byte("x"), m)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s\n  got  %s\n  want %s", m.Type(), got, want)
	}
}

func TestWhatIsWrittenByHandIsWhatReflectionWrites(t *testing.T) {
	byHand := map[string]bool{}
	for _, v := range vectors(t) {
		m, err := Decode([]byte(v.Raw))
		if err != nil {
			continue
		}
		if _, unknown := m.(*Unknown); unknown {
			continue
		}
		sameAsReflected(t, m)
		_, byHand[m.Type()] = appendMessage(nil, m)
	}
	for _, name := range []string{"signal", "introduce", "joined", "error"} {
		if !byHand[name] {
			t.Errorf("no %s of the vectors was written by hand", name)
		}
	}
	for _, m := range []Message{
		&Signal{}, &Introduce{}, &Joined{}, &Error{}, &Introduce{Peers: []Peer{}}, &Joined{Offered: []Offered{{Role: "viewer"}, {Role: "seed"}}},
		&Introduce{Peers: []Peer{{Role: "viewer"}, {Peer: ID{1}}, {Peer: ID{2}, Role: "seed"}}},
		&Signal{
			Request: 1 << 30, To: ID{1}, From: ID{2}, Role: "seed", Kind: "answer", SDP: "a=\r\n", Plan: &Plan{-1, 8, 1 << 20}, Early: true,
			Wanted: []ID{{3}, {4}}, Said: []Bytes{{}, nil, {1, 2, 3}}, Candidate: "c", Mid: "0", MLine: 7, Reason: "gone",
		},
		&Error{Request: 1, Code: "a", Message: "b", Hint: "c", RetryAfterMs: 5},
	} {
		sameAsReflected(t, m)
	}
}

// FuzzText: any text, be it UTF-8 or not, is written as encoding/json writes it.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n", `\"<>&/`, "\t\x00\x7f", "é\u2028", "\xff\xfe", "ab\xc3"} {
		f.Add(s, s, 1)
	}
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		sameAsReflected(t, &Signal{Kind: a, SDP: b, Candidate: a, MLine: n})
		sameAsReflected(t, &Error{Code: b, Message: a, RetryAfterMs: int64(n), Request: n})
	})
}
