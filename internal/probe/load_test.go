package probe

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// lined is the fate of packets on a line of a rate each way.
func lined(bytesPerSecond float64, delay time.Duration) *testkit.Air {
	ways := map[netip.AddrPort]*testkit.Line{
		netip.MustParseAddrPort(clientAt): {Rate: bytesPerSecond}, netip.MustParseAddrPort(serverAt): {Rate: bytesPerSecond},
	}
	const around = 28 // bytes of IPv4 and UDP
	return &testkit.Air{Fate: func(from, _ netip.AddrPort, b []byte) (time.Duration, bool) {
		now := time.Now()
		return ways[from].Pass(now, len(b)+around).Sub(now) + delay, true
	}}
}

// TestALoadThatGivesWayFindsTheLine: each way, on a line that nothing else uses; and every byte is paid for.
func TestALoadThatGivesWayFindsTheLine(t *testing.T) {
	for _, d := range []quality.Direction{quality.Down, quality.Up} {
		t.Run(string(d), func(t *testing.T) {
			const rate = 250_000 // bytes/s
			inAir(t, Config{}, lined(rate, 20*time.Millisecond), func(t *testing.T, w *airWorld) {
				l, err := w.line("", 0)
				if err != nil {
					t.Fatal(err)
				}
				heard := 0
				counts, err := l.Load(t.Context(), d, 6*time.Second, func([]netstat.Count) { heard++ })
				if err != nil {
					t.Fatal(err)
				}
				if free := netcheck.Fastest(counts) / 8 * 1253 / 1156; free < 0.9*rate || free > 1.02*rate || heard < 40 {
					t.Errorf("%.0f bytes/s are free of %d; progress %d times", free, rate, heard)
				}
				<-time.After(time.Second)
				l.Close()
				w.ends(qualityTest, endComplete, 1)
				total := float64(counts[len(counts)-1].Bytes)
				if paid := w.metrics.Value(mBytes, string(d)); paid < total*(packetBytes+packetCost)/packetBytes || paid > 1.3*total {
					t.Errorf("%.0f bytes came, %.0f are paid for", total, paid)
				}
			})
		})
	}
}

// laden is a client that has asked for a load, and is told that it begins.
func (w *airWorld) laden(d quality.Direction) *raw {
	w.t.Helper()
	r := w.raw()
	if err := r.OpenLane(); err != nil {
		w.t.Fatal(err)
	}
	r.load(w.t, 1, d)
	<-time.After(time.Second)
	if !r.heard(`{"type":"ready","stream":1}`) {
		w.t.Fatalf("the server said %q", r.said)
	}
	return r
}

func (r *raw) load(t *testing.T, stream uint16, d quality.Direction) {
	t.Helper()
	b, err := quality.EncodeControl(quality.Load{Stream: stream, Direction: d, Time: 5_000_000})
	if err == nil {
		err = r.Say(b)
	}
	if err != nil {
		t.Error(err)
	}
}

// dataMessage is a message of a load.
func dataMessage(sequence uint32, payload int) []byte {
	b := make([]byte, background.Header+payload)
	b[0] = background.DataType
	binary.BigEndian.PutUint32(b[7:], sequence)
	return b
}

// TestWhatAClientMustNotSendOnALane: the first such message ends the connection.
func TestWhatAClientMustNotSendOnALane(t *testing.T) {
	ack := ledbat.Ack{Cumulative: 1 << 30, Highest: 1 << 30}.Append(nil)
	for name, c := range map[string]struct {
		way  quality.Direction // empty: there is no load
		send func(r *raw) bool
	}{
		"data before a load":        {"", func(r *raw) bool { return r.SendBackground(dataMessage(0, 100)) }},
		"data against a load":       {quality.Down, func(r *raw) bool { return r.SendBackground(dataMessage(0, 100)) }},
		"an ack of what never went": {quality.Down, func(r *raw) bool { return r.SendBackground(ack) }},
		"an ack against a load":     {quality.Up, func(r *raw) bool { return r.SendBackground(ack) }},
		"a short message":           {quality.Up, func(r *raw) bool { return r.SendBackground([]byte{background.DataType}) }},
		"a long message":            {quality.Up, func(r *raw) bool { return r.SendBackground(dataMessage(0, peer.PieceSize)) }},
		"another type":              {quality.Up, func(r *raw) bool { return r.SendBackground([]byte{7, 7}) }},
		"sent of a load down":       {quality.Down, func(r *raw) bool { return r.Say([]byte(`{"type":"sent","stream":1}`)) == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			inAir(t, Config{}, lined(500_000, 5*time.Millisecond), func(t *testing.T, w *airWorld) {
				var r *raw
				if c.way == "" {
					r = w.raw()
					if err := r.OpenLane(); err != nil {
						t.Fatal(err)
					}
				} else {
					r = w.laden(c.way)
				}
				if !c.send(r) {
					t.Fatal("the line has ended before")
				}
				<-r.gone
				w.ends(qualityTest, endProtocol, 1)
				r.Close()
			})
		})
	}
}

// TestLoadsOfALineAreBounded: one, for its time, on a channel that has to be there.
func TestLoadsOfALineAreBounded(t *testing.T) {
	inAir(t, Config{}, lined(500_000, 5*time.Millisecond), func(t *testing.T, w *airWorld) {
		r := w.laden(quality.Up)
		r.load(t, 1, quality.Up)
		r.load(t, 2, quality.Down)
		<-time.After(time.Second)
		if !r.heard(`{"type":"error","stream":1,"code":"busy"`) || !r.heard(`{"type":"error","stream":2,"code":"limit"`) {
			t.Errorf("the server said %q", r.said)
		}
		<-time.After(5*time.Second + quality.SpareTime) // the load ends without the client's sent
		if !r.heard(`{"type":"end","stream":1`) {
			t.Errorf("the server said %q", r.said)
		}
		if !r.SendBackground(dataMessage(0, 100)) { // late, and dropped
			t.Error("the line has ended")
		}
		<-r.gone
		w.ends(qualityTest, endTimeout, 1)
		r.Close()

		r = w.raw()
		r.load(t, 3, quality.Down)
		<-time.After(quality.IdleTime + time.Second)
		if !r.heard(`{"type":"error","stream":3,"code":"limit"`) {
			t.Errorf("without a channel the server said %q", r.said)
		}
		r.Close()
		w.server.ended.Wait()
	})
}

// TestALoadPaysForItsBytes: it ends when its address has used up its day.
func TestALoadPaysForItsBytes(t *testing.T) {
	const most = 512 << 10
	for _, d := range []quality.Direction{quality.Down, quality.Up} {
		t.Run(string(d), func(t *testing.T) {
			inAir(t, Config{DailyBytes: most}, lined(500_000, 5*time.Millisecond), func(t *testing.T, w *airWorld) {
				l, err := w.line("", 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.Load(t.Context(), d, 10*time.Second, func([]netstat.Count) {}); err == nil {
					t.Error("the load has run to its end")
				}
				w.ends(qualityTest, endBytes, 1)
				if got := w.metrics.Value(mBytes, string(d)); got > most {
					t.Errorf("%v bytes have moved", got)
				}
				l.Close()
			})
		})
	}
}

// TestALoadEndsWithTheServerAndWithItsClient: what runs is told and cut, and a client that goes leaves nothing behind.
func TestALoadEndsWithTheServerAndWithItsClient(t *testing.T) {
	inAir(t, Config{}, lined(500_000, 5*time.Millisecond), func(t *testing.T, w *airWorld) {
		r := w.laden(quality.Down)
		r.Close()
		w.ends(qualityTest, endClient, 1)
		r = w.laden(quality.Up)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.server.Drain(ctx)
		<-r.gone
		if !r.heard(`"code":"ending"`) {
			t.Errorf("the server said %q", r.said)
		}
		w.ends(qualityTest, endDraining, 1)
		r.Close()
	})
}
