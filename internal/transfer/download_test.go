package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

func target(got map[int][]byte, rejected *[]peer.RejectReason) *Target {
	t := &Target{Segment: peer.ID{7}, Length: int64(len(content)) - 100, Piece: func(i int, d []byte) { got[i] = d }}
	t.Rejected = func(_ int, r peer.RejectReason) { *rejected = append(*rejected, r) }
	for from := 0; from < int(t.Length); from += peer.PieceSize {
		t.Digests = append(t.Digests, sha256.Sum256(content[from:min(from+peer.PieceSize, int(t.Length))]))
	}
	return t
}

func TestPiecesArriveInAnyOrderAndAreVerified(t *testing.T) {
	got, rejected := map[int][]byte{}, []peer.RejectReason(nil)
	var sent []peer.Message
	d := NewDownload(func(m peer.Message) { sent = append(sent, m) }, time.Now)
	tg := target(got, &rejected)
	ids := d.Request(tg, peer.Foreground, 0, 4, 1)
	part := func(id uint32, piece, from, to int) peer.Data {
		return peer.Data{Request: id, Offset: uint16(from), Payload: content[piece*peer.PieceSize+from : piece*peer.PieceSize+to]}
	}
	for _, m := range []peer.Data{part(ids[0], 0, 8000, 16384), part(ids[1], 4, 0, 16284), part(ids[0], 0, 0, 4000), part(ids[0], 0, 4000, 8000)} {
		if err := d.Data(m); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got[0], content[:16384]) || len(got[4]) != 16284 {
		t.Errorf("pieces %d and %d bytes", len(got[0]), len(got[4]))
	}
	d.Reject(peer.Reject{Reason: peer.RejectBusy, IDs: []uint32{ids[2], ids[0], 999}})
	if !slices.Equal(rejected, []peer.RejectReason{peer.RejectBusy}) {
		t.Errorf("rejected %v", rejected)
	}
}

func TestBadDataIsBlamed(t *testing.T) {
	var rejected []peer.RejectReason
	d := NewDownload(func(peer.Message) {}, time.Now)
	tg := target(map[int][]byte{}, &rejected)
	var ending *LinkError
	id := d.Request(tg, peer.Foreground, 0)[0]
	if err := d.Data(peer.Data{Request: id, Payload: make([]byte, 16384)}); !errors.As(err, &ending) || ending.Close != peer.CloseBadPiece {
		t.Errorf("wrong bytes: %v", err)
	}
	id = d.Request(tg, peer.Foreground, 0)[0]
	_ = d.Data(peer.Data{Request: id, Payload: content[:100]})
	if err := d.Data(peer.Data{Request: id, Offset: 99, Payload: content[:2]}); err == nil {
		t.Error("overlapping data was taken")
	}
	id = d.Request(tg, peer.Foreground, 4)[0]
	if err := d.Data(peer.Data{Request: id, Offset: 16284, Payload: content[:1]}); err == nil {
		t.Error("data beyond a short last piece was taken")
	}
	id = d.Request(tg, peer.Foreground, 1)[0]
	d.Cancel(id)
	if err := d.Data(peer.Data{Request: id, Payload: content[:50]}); err != nil || d.Wasted() != 50 {
		t.Errorf("data of a canceled request: %v, wasted %d", err, d.Wasted())
	}
	var err error
	for range 65 {
		err = d.Data(peer.Data{Request: 12345, Payload: content[:16384]})
	}
	if !errors.As(err, &ending) || ending.Close != peer.CloseLimit {
		t.Errorf("more than 1 MiB of unsolicited data: %v", err)
	}
}
