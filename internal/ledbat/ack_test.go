package ledbat_test

import (
	"bytes"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// FuzzParseAck: what is read is written back to the same bytes, and nothing else is read.
func FuzzParseAck(f *testing.F) {
	f.Add(ledbat.Ack{Cumulative: 1, Highest: 9, Bitmap: 1 << 63, ReceivedAt: 1 << 31, Hold: 25_000}.Append(nil))
	f.Add([]byte{ledbat.AckType})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := ledbat.ParseAck(b)
		if ok != (len(b) == ledbat.AckLen && b[0] == ledbat.AckType) {
			t.Fatalf("%x: ok is %v", b, ok)
		}
		if ok && !bytes.Equal(a.Append(nil), b) {
			t.Fatalf("%x became %x", b, a.Append(nil))
		}
	})
}

// TestAcksTellWhatCame: what one end's Acker says is what the other end's Path takes out of its flight.
func TestAcksTellWhatCame(t *testing.T) {
	p := ledbat.NewSender(ledbat.Config{}).Open(0, ledbat.PathConfig{})
	acker := ledbat.NewAcker()
	for i := range int64(6) {
		stamp := p.OnSent(1000*i, 1200, 0)
		if i == 1 { // lost on the way
			continue
		}
		if !acker.OnData(50_000+1000*i, 1200, stamp) || acker.OnData(50_000+1000*i, 1200, stamp) {
			t.Fatalf("message %d: not taken once", i)
		}
	}
	ack, ok := acker.Make(60_000)
	if want := (ledbat.Ack{Cumulative: 1, Highest: 5, Bitmap: 0b11101 << 59, ReceivedAt: 55_000, Hold: 5_000}); !ok || ack != want {
		t.Fatalf("ack is %+v, want %+v", ack, want)
	}
	out := p.OnAck(110_000, ack)
	want := ledbat.Outcome{Acked: 6000, Messages: 5, Lost: 1200, Sampled: true, RTT: 100_000}
	if out != want || p.Flight() != 0 {
		t.Errorf("%+v, want %+v; flight %d", out, want, p.Flight())
	}
	if again := p.OnAck(111_000, ack); again != (ledbat.Outcome{}) {
		t.Errorf("the same ack again did %+v", again)
	}
}

// TestForegroundIsAcknowledgedLessOften: with every eighth message instead of every second, and no later than background; but not
// where little comes.
func TestForegroundIsAcknowledgedLessOften(t *testing.T) {
	const gap, warm = 3_000, 200
	for _, c := range []struct {
		foreground bool
		bytes      int64
		every      int64
	}{{false, 1200, 2}, {true, 1200, 8}, {true, 150, 2}} {
		acker := ledbat.NewAcker()
		acker.Foreground = c.foreground
		p := ledbat.NewSender(ledbat.Config{}).Open(0, ledbat.PathConfig{})
		now := int64(1_000_000)
		next := func() {
			now += gap
			stamp := p.OnSent(now, c.bytes, 0)
			stamp.AckNow = false
			acker.OnData(now, c.bytes, stamp)
		}
		for range warm {
			next()
			if due := acker.Due(); due != 0 && due <= now {
				acker.Make(now)
			}
		}
		acker.Make(now)
		alone := now + gap + 25_000
		for n := range c.every {
			next()
			want := alone
			if n == c.every-1 {
				want = now
			}
			if got := acker.Due(); got != want {
				t.Errorf("foreground %v, %d bytes, message %d: due at %d, want %d", c.foreground, c.bytes, n+1, got, want)
			}
		}
	}
}
