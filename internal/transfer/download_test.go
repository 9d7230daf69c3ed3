package transfer

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// fetching is a download under test with what it told.
type fetching struct {
	*Download
	now    time.Time
	target *Target
	sent   []peer.Message
	whole  map[int][]byte
	wrong  []int
	wasted int
}

func (f *fetching) Arrived(o Order, data []byte, matches bool) {
	if matches {
		f.whole[o.Piece] = data
	} else {
		f.wrong = append(f.wrong, o.Piece)
	}
}

func (f *fetching) Wasted(n int) { f.wasted += n }

func newFetching() *fetching {
	f := &fetching{now: time.Unix(1000, 0), whole: map[int][]byte{}, target: &Target{Segment: segment.ID{7}}}
	size := len(content) - 100
	f.target.Certificate = &certificate.Certificate{Length: int64(size), Digests: certificate.DigestPieces(content[:size])}
	f.Download = NewDownload(func(m peer.Message) { f.sent = append(f.sent, m) }, func() time.Time { return f.now }, f)
	return f
}

func part(id uint32, piece, from, to int) peer.Data {
	return peer.Data{Request: id, Offset: uint16(from), Payload: content[piece*peer.PieceSize+from : piece*peer.PieceSize+to]}
}

func TestPiecesArriveInAnyOrderAndAreVerified(t *testing.T) {
	f := newFetching()
	ids := f.Request(f.target, peer.Foreground, "near", 0, 4, 1)
	if q := f.Queued(); q != 2*16384+16284 {
		t.Errorf("%d bytes are queued", q)
	}
	for _, m := range []peer.Data{part(ids[0], 0, 8000, 16384), part(ids[1], 4, 0, 16284), part(ids[0], 0, 0, 4000), part(ids[0], 0, 4000, 8000)} {
		if err := f.Data(m); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(f.whole[0], content[:16384]) || len(f.whole[4]) != 16284 {
		t.Errorf("pieces %d and %d bytes", len(f.whole[0]), len(f.whole[4]))
	}
	if o := f.Orders(); len(o) != 3 || !o[0].Checking || !o[1].Checking || o[2].Checking || f.Queued() != 16384 {
		t.Errorf("outstanding %+v, queued %d", o, f.Queued())
	}
	gone := f.Reject(peer.Reject{Reason: peer.RejectBusy, IDs: []uint32{ids[2], ids[0], 999}})
	if len(gone) != 1 || gone[0].Piece != 1 {
		t.Errorf("rejected %+v", gone)
	}
	f.Remove(ids[0])
	f.Remove(ids[1])
	if len(f.Orders()) != 0 || f.Queued() != 0 {
		t.Errorf("left over: %+v", f.Orders())
	}
}

func TestManyRequestsTravelInSeveralMessages(t *testing.T) {
	f := newFetching()
	f.target.Certificate.Length = 300 * peer.PieceSize
	pieces := make([]int, 300)
	for i := range pieces {
		pieces[i] = i
	}
	f.Request(f.target, peer.Background, "background", pieces...)
	if len(f.sent) != 2 || len(f.sent[0].(peer.Request).Requests) != 255 {
		t.Fatalf("%d messages", len(f.sent))
	}
	f.Promote(f.target.Segment, 3)
	if o := f.Orders()[3]; o.Lane != peer.Foreground {
		t.Errorf("after promotion: %+v", o)
	}
	f.Cancel(func(o Order) bool { return o.Piece != 3 })
	if len(f.sent) != 5 || len(f.Orders()) != 1 {
		t.Errorf("%d messages, %d left", len(f.sent), len(f.Orders()))
	}
}

func TestBadDataIsBlamed(t *testing.T) {
	f := newFetching()
	id := f.Request(f.target, peer.Foreground, "near", 0)[0]
	if err := f.Data(peer.Data{Request: id, Payload: make([]byte, 16384)}); err != nil || !slices.Equal(f.wrong, []int{0}) {
		t.Errorf("wrong bytes: %v, told of %v", err, f.wrong)
	}
	if err := f.Data(peer.Data{Request: id, Payload: content[:1]}); err == nil {
		t.Error("data of a whole piece was taken")
	}
	id = f.Request(f.target, peer.Foreground, "near", 0)[0]
	_ = f.Data(peer.Data{Request: id, Payload: content[:100]})
	if err := f.Data(peer.Data{Request: id, Offset: 99, Payload: content[:2]}); err == nil {
		t.Error("overlapping data was taken")
	}
	id = f.Request(f.target, peer.Foreground, "near", 4)[0]
	if err := f.Data(peer.Data{Request: id, Offset: 16284, Payload: content[:1]}); err == nil {
		t.Error("data beyond a short last piece was taken")
	}
	var err error
	for range 65 {
		err = f.Data(peer.Data{Request: 12345, Payload: content[:16384]})
	}
	var ending *LinkError
	if !errors.As(err, &ending) || ending.Close != peer.CloseLimit {
		t.Errorf("more than 1 MiB of unsolicited data: %v", err)
	}
}

func TestCanceledDataIsWastedForAMinute(t *testing.T) {
	f := newFetching()
	ids := f.Request(f.target, peer.Foreground, "near", 1, 2)
	_ = f.Data(part(ids[0], 1, 0, 40))
	f.Cancel(func(o Order) bool { return o.Piece == 1 })
	if err := f.Data(part(ids[0], 1, 40, 90)); err != nil || f.wasted != 90 {
		t.Errorf("data of a canceled request: %v, wasted %d", err, f.wasted)
	}
	f.now = f.now.Add(canceledFor + time.Second)
	if err := f.Data(part(ids[0], 1, 90, 100)); err != nil || f.wasted != 90 || f.unsolicited != 1024 {
		t.Errorf("a minute later: %v, wasted %d, unsolicited %d", err, f.wasted, f.unsolicited)
	}
	again := f.Request(f.target, peer.Foreground, "near", 3)[0]
	f.Cancel(func(o Order) bool { return o.ID == again })
	_ = f.Data(part(again, 3, 0, 16384))
	if _ = f.Data(part(again, 3, 0, 1)); f.wasted != 90+16384 || f.unsolicited != 2048 {
		t.Errorf("more than was canceled: wasted %d, unsolicited %d", f.wasted, f.unsolicited)
	}
	if n := f.LateBehind(); n != 0 {
		t.Errorf("%d bytes of the foreground came late in the background", n)
	}
	behind := f.Request(f.target, peer.Background, "background", 3)[0]
	f.Cancel(func(o Order) bool { return o.ID == behind })
	_ = f.Data(part(behind, 3, 0, 50))
	if n, again := f.LateBehind(), f.LateBehind(); n != 50 || again != 0 {
		t.Errorf("%d and %d bytes came of what had been taken back", n, again)
	}
	f.wasted = 90
	_ = f.Data(part(ids[1], 2, 0, 30))
	f.Close()
	if f.wasted != 120 || f.Queued() != 0 {
		t.Errorf("after the end: wasted %d, queued %d", f.wasted, f.Queued())
	}
}

func TestRateIsThatOfArrivalWhileSomethingIsOutstanding(t *testing.T) {
	f := newFetching()
	if f.Rate() != 0 || f.RTT() != unknownRTT {
		t.Errorf("at first: %d bytes/s, %v", f.Rate(), f.RTT())
	}
	ids := f.Request(f.target, peer.Foreground, "near", 0, 1, 2, 3)
	for i, id := range ids {
		f.now = f.now.Add(20 * time.Millisecond) // 16 KiB each 20 ms
		_ = f.Data(part(id, i, 0, 16384))
	}
	if r := f.Rate(); r != 819_200 {
		t.Errorf("%d bytes/s, want 819200", r)
	}
	if f.RTT() != 20*time.Millisecond {
		t.Errorf("round trip %v", f.RTT())
	}
	f.now = f.now.Add(time.Hour) // idle time is no part of it
	id := f.Request(f.target, peer.Foreground, "near", 0)[0]
	_ = f.Data(part(id, 0, 0, 16384))
	if r := f.Rate(); r != 819_200 {
		t.Errorf("%d bytes/s after an idle hour", r)
	}
	before := f.RTT()
	if f.RoundTrip(time.Hour); f.RTT() != (7*before+time.Second)/8 {
		t.Errorf("round trip %v after one of an hour", f.RTT())
	}
}

func TestTricklingDataDoNotPayForSilence(t *testing.T) {
	f := newFetching()
	sent := f.now
	id := f.Request(f.target, peer.Foreground, "near", 0)[0]
	for i := range 10 { // 100 bytes each second
		f.now = f.now.Add(time.Second)
		_ = f.Data(part(id, 0, 100*i, 100*(i+1)))
	}
	if got := f.Paid().Sub(sent); got != 1000*183*time.Microsecond {
		t.Errorf("1,000 bytes in ten seconds pay for %v", got)
	}
	_ = f.Data(part(id, 0, 1000, 16384))
	if got := f.Paid().Sub(sent); got != 16384*183*time.Microsecond {
		t.Errorf("a piece pays for %v", got)
	}
	id = f.Request(f.target, peer.Foreground, "near", 1)[0]
	_ = f.Data(part(id, 1, 0, 16384))
	if !f.Paid().Equal(f.now) {
		t.Errorf("data pay beyond now: %v", f.Paid().Sub(f.now))
	}
}
