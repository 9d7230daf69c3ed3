package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// victim is the honest end of a link.
type victim struct {
	candidates chan transfer.Candidate
	control    chan []byte
	data       chan []byte
	closed     chan peer.CloseReason
}

func (v *victim) Candidate(c transfer.Candidate) { v.candidates <- c }
func (v *victim) Open()                          {}
func (v *victim) Drain()                         {}
func (v *victim) Closed(r peer.CloseReason)      { v.closed <- r }
func (v *victim) Control(b []byte)               { offer(v.control, b) }
func (v *victim) Data(b []byte)                  { offer(v.data, b) }

// offer copies b into c, or drops it when c is not read: garbage comes by the thousand.
func offer(c chan []byte, b []byte) {
	select {
	case c <- append([]byte(nil), b...):
	default:
	}
}

func attackOn(t *testing.T, behave string) (*victim, transfer.Link) {
	t.Helper()
	host, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{
		candidates: make(chan transfer.Candidate, 64), control: make(chan []byte, 64), data: make(chan []byte, 64),
		closed: make(chan peer.CloseReason, 1),
	}
	l, err := newLink(func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.pc.GracefulClose()
		_ = host.Close()
	})
	id := segment.NewID("e2e", segment.WholeName("/a.ts"))
	a := &attack{
		behave: behave, wire: l, note: func(string, any) {}, random: rand.New(rand.NewPCG(1, 2)),
		film: &film{order: []segment.ID{id}, bodies: map[segment.ID][]byte{id: make([]byte, 40000)}},
	}
	l.ready = func() { go func() { _ = a.open() }() }
	l.handle = func(b []byte) { _ = a.control(b) }
	sdp, err := l.offer()
	if err != nil {
		t.Fatal(err)
	}
	link, answer, err := host.Answer(transfer.Description{SDP: sdp, Plan: l.plan}, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.accept(answer.SDP); err != nil {
		t.Fatal(err)
	}
	for c := range v.candidates {
		if c.End {
			break
		}
		if err := l.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: c.Candidate}); err != nil {
			t.Fatal(err)
		}
	}
	return v, link
}

func TestChannelsWithoutEndAreStopped(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("link", func(t *testing.T) {
		v, _ := attackOn(t, "channels")
		select {
		case r := <-v.closed:
			if r != peer.CloseProtocol {
				t.Fatalf("closed as %s, want %s", r, peer.CloseProtocol)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the link is still open")
		}
	})
}

func TestFlipChangesExactlyOneBit(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("link", func(t *testing.T) {
		v, link := attackOn(t, "flip")
		<-v.control // hello
		have, err := peer.Decode(peer.Control, <-v.control)
		if err != nil {
			t.Fatal(err)
		}
		entry := have.(peer.Have).Entries[0]
		if entry.State != peer.HoldsComplete || entry.Pieces != 3 {
			t.Fatalf("announced %+v", entry)
		}
		b, err := peer.Append(nil, peer.Request{Segment: entry.Segment, Requests: []peer.PieceRequest{{ID: 7, Piece: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		link.SendControl(b)
		bits := 0
		for got := 0; got < 40000-2*segment.PieceSize; {
			d, err := peer.DecodeData(<-v.data, link.MaxMessage())
			if err != nil {
				t.Fatal(err)
			}
			got += len(d.Payload)
			for _, x := range d.Payload {
				for ; x != 0; x &= x - 1 {
					bits++
				}
			}
		}
		if bits != 1 {
			t.Fatalf("%d bits differ, want 1", bits)
		}
	})
}
