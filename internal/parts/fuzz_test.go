package parts

import (
	"encoding/binary"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// FuzzHostile: two peers, one said to be a seed, say and send what they like. What is held of them stays within its bounds.
func FuzzHostile(f *testing.F) {
	var all []byte
	for op := range byte(12) {
		all = append(all, op, 1, 0, op, 2, 1, op, 3, 2)
	}
	f.Add(all)
	f.Add([]byte("\x06\x01\x00\x06\x01\x00\x06\x02\x00\x09\x00\x00\x09\x00\x01\x0b\x00\x00\x06\x01\x00"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		r := newRig()
		now := int64(0)
		for ; len(ops) >= 3; ops = ops[3:] {
			hostile(r, now, ops[0], ops[1], ops[2])
			r.settle(now)
			if now += int64(ops[2]) * 1000; ops[0] == 0xff {
				now += second
				r.Tick(now)
			}
			bounded(t, r)
		}
	})
}

// hostile does one thing.
func hostile(r *rig, now int64, op, a, b byte) {
	from := []ID{seed, other}[a&1]
	stream, stripe, turn := stream1, a>>1&3, uint32(b>>2)
	if a&8 != 0 {
		stream = segment.ID{b}
	}
	switch op % 13 {
	case 0, 1:
		r.Heard(now, from, peer.Follow{Stream: stream, On: b&1 == 0})
	case 2:
		r.Heard(now, from, peer.Place{Stream: stream, Stripe: stripe, Rank: uint64(b & 3), Path: []ID{from}, Room: b, Least: a})
	case 3:
		r.Heard(now, from, peer.Subscribe{Stream: stream, Stripe: stripe, Slots: b})
	case 4:
		r.Heard(now, from, peer.Unsubscribe{Stream: stream, Stripe: stripe})
	case 5:
		r.Heard(now, from, peer.End{Stream: stream, Stripe: stripe})
	case 6:
		raw := rawOf(turn)
		if a&16 != 0 {
			raw = binary.BigEndian.AppendUint16(nil, uint16(b))
		}
		r.Heard(now, from, peer.Part{Stream: stream, Push: uint32(a >> 4), Turn: turn, Raw: raw})
	case 7:
		id, _ := partOf(turn)
		r.Heard(now, from, peer.Enough{Stream: stream, Segment: id})
	case 8:
		r.Heard(now, from, peer.Hold{Stream: stream, On: b&1 == 0})
	case 9:
		r.sends(now, from, uint32(a>>4), turn&3, int(b&3))
	case 10:
		r.Data(now, from, peer.Data{Request: peer.PushedID(uint32(a>>4), int(b)), Offset: uint16(a) << 6, Payload: make([]byte, 1+int(b)<<5)})
	case 11:
		r.list(turn)
		r.Ask(now, turn, Wanted{Deadline: now + second, RTT: second / 10, Rate: 1_000_000})
	default:
		r.Gone(now, from)
		r.Linked(from, from == seed)
	}
}

func bounded(t *testing.T, r *rig) {
	t.Helper()
	if n := len(r.shelf.parts); n > 2*Kept+1 {
		t.Fatalf("%d parts", n)
	}
	for _, l := range r.links {
		early := 0
		for _, e := range l.early {
			for _, d := range e.data {
				early += len(d.Payload)
			}
		}
		if len(l.pushes) > mostPushes || len(l.pushes) != len(l.pushed) || len(l.out.told) > mostPushes || len(l.out.told) != len(l.out.tells) ||
			len(l.early) > mostEarly || early > mostAhead || len(l.open) > mostOpen || len(l.follows) > MaxStreams || len(l.held) > MaxStreams ||
			len(l.subscribed) > stripes*MaxStreams || len(l.out.handed) > mostHanded || l.out.waits > Backlog+MaxPart {
			t.Fatalf("%d pushes of %d, %d told of %d, %d early of %d bytes, %d open, %d follows, %d held, %d subscribed, %d handed, %d wait",
				len(l.pushes), len(l.pushed), len(l.out.told), len(l.out.tells), len(l.early), early, len(l.open), len(l.follows), len(l.held),
				len(l.subscribed), len(l.out.handed), l.out.waits)
		}
		waits := 0
		for _, q := range l.out.waiting {
			waits += len(q.data)
		}
		if waits != l.out.waits {
			t.Fatalf("%d bytes wait, %d are counted", waits, l.out.waits)
		}
	}
}
