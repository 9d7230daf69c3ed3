package ledbat_test

import (
	"encoding/binary"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// FuzzAcks plays a receiver that says what it likes, on two links: flight never goes below zero or apart from the sum of the links that
// are not late, the window keeps its bounds, impossible acks change nothing, and with nothing in flight something may be sent soon.
func FuzzAcks(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 2, 0, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 2, 255, 255, 255, 255, 9, 9, 9, 9, 9, 9, 3, 200, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := ledbat.NewSender(ledbat.Config{})
		paths := []*ledbat.Path{c.Open(0, ledbat.PathConfig{}), c.Open(0, ledbat.PathConfig{Payload: 1156})}
		now := int64(1)
		take := func(n int) []byte {
			b := make([]byte, n)
			script = script[copy(b, script):]
			return b
		}
		for len(script) > 0 {
			op := take(1)[0]
			p := paths[op>>4&1]
			now += int64(op>>5) * 20_000
			switch op & 15 {
			case 0, 1, 2, 3, 4:
				if size := p.MessageSize(); mayAt(p, now, size) {
					p.OnSent(now, size, int64(op&1)*5000)
				}
			case 5:
				if d := p.Deadline(); d > 0 {
					now = max(now, d)
					p.OnTimeout(now)
				}
			case 6:
				p.Reset(now)
			case 14:
				c.Eager(p == paths[0])
			case 15:
				c.Beside(now, 1+64*int64(take(1)[0]))
			default:
				fuzzAck(t, c, p, now, take(12))
			}
			check(t, c, paths, now)
		}
		for _, p := range paths {
			for d := p.Deadline(); d > 0; d = p.Deadline() {
				now = max(now, d)
				p.OnTimeout(now)
			}
		}
		check(t, c, paths, now)
	})
}

func mayAt(p *ledbat.Path, now, size int64) bool {
	ok, _ := p.MaySend(now, size)
	return ok
}

func fuzzAck(t *testing.T, c *ledbat.Sender, p *ledbat.Path, now int64, b []byte) {
	before := c.Stats()
	highest := uint32(int8(b[1])) // near what may have been sent, below zero too
	out := p.OnAck(now, ledbat.Ack{
		Cumulative: highest - uint32(int8(b[0])), Highest: highest, Bitmap: uint64(b[2])<<56 | uint64(b[3]),
		ReceivedAt: binary.BigEndian.Uint32(b[4:]), Hold: binary.BigEndian.Uint32(b[8:]) >> (b[8] % 32),
	})
	if out.Problem != "" && c.Stats() != before {
		t.Fatalf("an impossible ack (%s) did something: %+v, then %+v", out.Problem, before, c.Stats())
	}
	if out.Acked < 0 || out.Lost < 0 || out.Sampled && (out.RTT <= 0 || out.RTT > now) {
		t.Fatalf("%+v", out)
	}
}

// besideMost is the longest time (µs) by which what goes out outside the controller puts off a message.
const besideMost = 100_000

func check(t *testing.T, c *ledbat.Sender, paths []*ledbat.Path, now int64) {
	s := c.Stats()
	if s.Window < ledbat.MinWindow || s.Window > ledbat.MaxWindow || s.PacingRate < 0 || s.Queuing < 0 {
		t.Fatalf("%+v", s)
	}
	sum := int64(0)
	for _, p := range paths {
		if flight := p.Flight(); flight < 0 {
			t.Fatalf("flight of a link %d", flight)
		} else if !p.Late() {
			sum += flight
		}
	}
	if s.Flight != sum {
		t.Fatalf("flight of the host %d, of its links %d", s.Flight, sum)
	}
	for i, p := range paths {
		if s.Flight > 0 || p.Late() {
			continue
		}
		if ok, at := p.MaySend(now, 1200); !ok && (at == 0 || at > now+ledbat.MaxInterval+besideMost) {
			t.Fatalf("nothing is in flight at %d, and nothing may be sent on link %d before %d", now, i, at)
		}
	}
}

// FuzzAcker compares an Acker with a set: it takes each sequence once, and its acks say what the set says.
func FuzzAcker(f *testing.F) {
	f.Add([]byte{0, 1, 3, 2, 2, 200, 9, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		a, came := ledbat.NewAcker(), map[uint32]bool{}
		var next, highest uint32
		for i, b := range script {
			seq := next + uint32(b%80)
			if seq >= 4096 { // farther than a hole may stay open
				return
			}
			if b >= 200 {
				next = seq
			}
			fresh := !came[seq]
			if taken := a.OnData(int64(i)*1000, 1200, ledbat.Stamp{Sequence: seq, AckNow: b%2 == 0}); taken != fresh {
				t.Fatalf("sequence %d: taken %v, want %v", seq, taken, fresh)
			}
			came[seq] = true
			highest = max(highest, seq)
			if a.Due() == 0 && fresh {
				t.Fatalf("sequence %d came and no ack is due", seq)
			}
			if b%7 != 0 {
				continue
			}
			if ack, ok := a.Make(int64(i) * 1000); ok {
				compare(t, ack, came, highest)
			}
		}
	})
}

func compare(t *testing.T, ack ledbat.Ack, came map[uint32]bool, highest uint32) {
	if ack.Highest != highest || came[ack.Cumulative] {
		t.Fatalf("%+v; the highest is %d, the cumulative one has come: %v", ack, highest, came[ack.Cumulative])
	}
	for seq := range ack.Cumulative {
		if !came[seq] {
			t.Fatalf("%+v covers %d, which has not come", ack, seq)
		}
	}
	for i := range uint32(64) {
		if bit := ack.Bitmap>>(63-i)&1 == 1; i+1 <= highest && bit != came[highest-1-i] {
			t.Fatalf("%+v: %d has come: %v", ack, highest-1-i, came[highest-1-i])
		}
	}
}
