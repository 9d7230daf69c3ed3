package webtorrent

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

type vector struct {
	Name    string         `json:"name"`
	Raw     string         `json:"raw"`
	OK      bool           `json:"ok"`
	Decoded map[string]any `json:"decoded"`
	Field   string         `json:"field"`
}

func vectors(t testing.TB) []vector {
	return spec.Vectors[struct{ Requests []vector }](t, "webtorrent.json").Requests
}

func text(id ID) string { return hex.EncodeToString(id[:]) }

// shown is a request as the vectors have it.
func shown(r *Request) map[string]any {
	switch r.Kind {
	case Scrape:
		hashes := []any{}
		for _, h := range r.Hashes {
			hashes = append(hashes, text(h))
		}
		return map[string]any{"kind": "scrape", "hashes": hashes, "own": r.Own}
	case Answer:
		return map[string]any{
			"kind": "answer", "info_hash": text(r.InfoHash), "peer_id": text(r.PeerID),
			"to_peer_id": text(r.To), "offer_id": text(r.OfferID), "sdp": string(r.SDP),
		}
	}
	offers := []any{}
	for _, o := range r.Offers {
		offers = append(offers, map[string]any{"offer_id": text(o.ID), "sdp": string(o.SDP)})
	}
	return map[string]any{
		"kind": "announce", "info_hash": text(r.InfoHash), "peer_id": text(r.PeerID), "event": eventNames[r.Event],
		"complete": r.Complete, "partial": r.Partial, "full": r.Full, "offers": offers,
	}
}

func refused(t *testing.T, v vector, err error) {
	t.Helper()
	var e *jsonscan.Problem
	if !errors.As(err, &e) || e.Field != v.Field {
		t.Errorf("%s: %v, want a problem of field %q", v.Name, err, v.Field)
	}
}

func TestRequests(t *testing.T) {
	requests := vectors(t)
	var r Request // one for all: nothing of a message may be left in the next
	for _, v := range requests {
		err := Decode([]byte(v.Raw), &r)
		if !v.OK {
			refused(t, v, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := shown(&r); !reflect.DeepEqual(got, v.Decoded) {
			t.Errorf("%s:\n  got  %v\n  want %v", v.Name, got, v.Decoded)
		}
		again := AppendRequest(nil, &r)
		if !json.Valid(again) {
			t.Errorf("%s: written as %q", v.Name, again)
		}
		if err := Decode(again, &r); err != nil || !reflect.DeepEqual(shown(&r), v.Decoded) {
			t.Errorf("%s: does not survive encoding: %v\n  got  %v\n  want %v", v.Name, err, shown(&r), v.Decoded)
		}
	}
}

func TestARefusedMessageSaysWhatItIsAbout(t *testing.T) {
	var r Request
	hash := ID([]byte("12345678901234567890"))
	err := Decode([]byte(`{"action":"announce","info_hash":"12345678901234567890","peer_id":"secret"}`), &r)
	if err == nil || !r.HasHash || r.InfoHash != hash || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, about %v", err, r.InfoHash)
	}
	if err := Decode([]byte(`{"action":"announce","info_hash":"1234567890123456789"}`), &r); err == nil || r.HasHash {
		t.Errorf("%v, about %v", err, r.InfoHash)
	}
}

func TestSizes(t *testing.T) {
	announce := func(pad int) []byte {
		return []byte(`{"action":"announce","info_hash":"12345678901234567890","peer_id":"12345678901234567890","x":"` + strings.Repeat("x", pad) + `"}`)
	}
	var r Request
	fits := MaxMessage - len(announce(0))
	if err := Decode(announce(fits), &r); err != nil {
		t.Error(err)
	}
	if Decode(announce(fits+1), &r) == nil {
		t.Error("a message above the limit was taken")
	}
}

// announce is what a client of the field sends: five offers of an SDP of the usual size.
func announce() []byte {
	sdp := SDP(`"` + strings.Repeat(`a=candidate:1 1 udp 2 10.0.0.1 4 typ host\r\n`, 16) + `"`)
	r := Request{Kind: Announce, InfoHash: ID{1, 2, 0xff}, PeerID: ID{3}, Event: Started}
	for i := range 5 {
		r.Offers = append(r.Offers, Offer{ID{byte(i)}, sdp})
	}
	return AppendRequest(nil, &r)
}

func TestDecodingAllocatesNothing(t *testing.T) {
	b, out := announce(), make([]byte, 0, 4096)
	var r Request
	if n := testing.AllocsPerRun(100, func() {
		if err := Decode(b, &r); err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Offers {
			out = AppendReply(out[:0], &Reply{Kind: Offered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: o.ID, SDP: o.SDP})
		}
	}); n > 0 {
		t.Errorf("%.0f allocations for an announce and its offers", n)
	}
}

// BenchmarkDecode has the standard library's decoder for a baseline: ratio is ours over it.
func BenchmarkDecode(b *testing.B) {
	raw := announce()
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		var r Request
		for b.Loop() {
			if err := Decode(raw, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			var m struct {
				Action   string `json:"action"`
				InfoHash string `json:"info_hash"`
				PeerID   string `json:"peer_id"`
				Offers   []struct {
					ID    string `json:"offer_id"`
					Offer struct{ Type, SDP string }
				}
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	requests := vectors(f)
	for _, v := range requests {
		f.Add([]byte(v.Raw))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, back Request
		if err := Decode(b, &r); err != nil {
			if len(err.Error()) > 256 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is not JSON and was taken", b)
		}
		once := AppendRequest(nil, &r)
		if len(once) > MaxMessage {
			return
		}
		if err := Decode(once, &back); err != nil {
			t.Fatalf("%q is not decoded again: %v", once, err)
		}
		if !reflect.DeepEqual(shown(&r), shown(&back)) || !bytes.Equal(once, AppendRequest(nil, &back)) {
			t.Fatalf("%q is another one after encoding: %q", b, once)
		}
	})
}
