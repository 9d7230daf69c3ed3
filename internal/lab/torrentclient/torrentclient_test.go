package torrentclient

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/jsonscan"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

type vector struct {
	Name    string         `json:"name"`
	Raw     string         `json:"raw"`
	OK      bool           `json:"ok"`
	Written bool           `json:"written"`
	Decoded map[string]any `json:"decoded"`
	Field   string         `json:"field"`
}

func vectors(t testing.TB) []vector {
	return spec.Vectors[struct{ Replies []vector }](t, "webtorrent.json").Replies
}

func text(id webtorrent.ID) string { return hex.EncodeToString(id[:]) }

func shown(r *webtorrent.Reply) map[string]any {
	switch r.Kind {
	case webtorrent.Ack:
		return map[string]any{
			"kind": "ack", "info_hash": text(r.InfoHash), "interval": float64(r.Interval),
			"complete": float64(r.Complete), "incomplete": float64(r.Incomplete),
		}
	case webtorrent.Scraped:
		files := []any{}
		for _, f := range r.Files {
			files = append(files, map[string]any{
				"info_hash": text(f.InfoHash), "complete": float64(f.Complete), "incomplete": float64(f.Incomplete), "downloaded": float64(f.Downloaded),
			})
		}
		return map[string]any{"kind": "scraped", "files": files}
	case webtorrent.Failure:
		return map[string]any{"kind": "failure", "info_hash": text(r.InfoHash), "reason": string(r.Reason), "interval": float64(r.Interval)}
	}
	kind := "offered"
	if r.Kind == webtorrent.Answered {
		kind = "answered"
	}
	return map[string]any{"kind": kind, "info_hash": text(r.InfoHash), "peer_id": text(r.PeerID), "offer_id": text(r.OfferID), "sdp": string(r.SDP)}
}

func TestReplies(t *testing.T) {
	replies := vectors(t)
	var r webtorrent.Reply
	for _, v := range replies {
		err := Decode([]byte(v.Raw), &r)
		if !v.OK {
			var e *jsonscan.Problem
			if !errors.As(err, &e) || e.Field != v.Field {
				t.Errorf("%s: %v, want a problem of field %q", v.Name, err, v.Field)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := shown(&r); !reflect.DeepEqual(got, v.Decoded) {
			t.Errorf("%s:\n  got  %v\n  want %v", v.Name, got, v.Decoded)
		}
		if got := webtorrent.AppendReply(nil, &r); v.Written && string(got) != v.Raw {
			t.Errorf("%s: written as\n  %s\nwant\n  %s", v.Name, got, v.Raw)
		}
	}
}

func FuzzDecode(f *testing.F) {
	replies := vectors(f)
	for _, v := range replies {
		f.Add([]byte(v.Raw))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, back webtorrent.Reply
		if Decode(b, &r) != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is not JSON and was taken", b)
		}
		once := webtorrent.AppendReply(nil, &r)
		if err := Decode(once, &back); err != nil || !reflect.DeepEqual(shown(&r), shown(&back)) {
			t.Fatalf("%q is another one after encoding, %q: %v", b, once, err)
		}
	})
}

func TestDecodingAllocatesNothing(t *testing.T) {
	sdp := webtorrent.SDP(`"` + strings.Repeat(`a=candidate:1 1 udp 2 10.0.0.1 4 typ host\r\n`, 16) + `"`)
	b := webtorrent.AppendReply(nil, &webtorrent.Reply{Kind: webtorrent.Offered, InfoHash: webtorrent.ID{1, 2, 0xff}, SDP: sdp})
	var r webtorrent.Reply
	if n := testing.AllocsPerRun(100, func() {
		if err := Decode(b, &r); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%.0f allocations for an offer", n)
	}
}
