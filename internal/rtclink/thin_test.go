package rtclink

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// payloadShare is the part of full packets on a line that is payload of pieces, with messages of one packet.
const payloadShare = 0.9

// TestALinkFillsItsLine plays links alone, over SCTP as it is.
func TestALinkFillsItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		line *line
		took time.Duration
	}{
		"1 Mbit/s, 60 ms":          {&line{rate: 125e3, delay: 30 * time.Millisecond, queue: 32 << 10}, 20 * time.Second},
		"1 Mbit/s, 100 ms":         {&line{rate: 125e3, delay: 50 * time.Millisecond, queue: 32 << 10}, 20 * time.Second},
		"1 Mbit/s, 200 ms":         {&line{rate: 125e3, delay: 100 * time.Millisecond, queue: 32 << 10}, 20 * time.Second},
		"1 Mbit/s, 10 ms, a queue": {&line{rate: 125e3, delay: 5 * time.Millisecond, queue: 256 << 10}, 20 * time.Second},
		"50 Mbit/s, 50 ms":         {&line{rate: 6.25e6, delay: 25 * time.Millisecond, queue: 312_500}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bytes, silence := c.line.crowd(t, 1, c.took)
				if share := float64(bytes[0]) / c.took.Seconds() / c.line.rate; share < 0.95*payloadShare {
					t.Errorf("%.3f of the line is pieces", share)
				}
				if silence > time.Second || 100*c.line.full > c.line.sent {
					t.Errorf("silent for %s, %d of %d packets found the queue full", silence, c.line.full, c.line.full+c.line.sent)
				}
			})
		})
	}
}

// TestALinkFillsAnotherWay plays links whose packets take a longer or a shorter way from a moment on, of which the link hears.
func TestALinkFillsAnotherWay(t *testing.T) {
	for name, c := range map[string]struct{ from, to time.Duration }{
		"10 to 80 ms": {5 * time.Millisecond, 40 * time.Millisecond}, "80 to 10 ms": {40 * time.Millisecond, 5 * time.Millisecond},
		"40 ms, another port": {20 * time.Millisecond, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rate, took = 2.5e6, 10 * time.Second
				l := &line{rate: rate, delay: c.from, queue: 200_000}
				near, far := l.play(t)
				ctx, cancel := context.WithCancel(t.Context())
				var pump sync.WaitGroup
				pump.Go(func() { near.pump(ctx) })
				<-time.After(took / 2)
				l.goes(c.to)
				near.move()
				<-time.After(2 * time.Second)
				before, _ := far.came()
				<-time.After(took)
				after, _ := far.came()
				if share := float64(after-before) / took.Seconds() / rate; share < 0.95*payloadShare {
					t.Errorf("%.3f of the line is pieces", share)
				}
				cancel()
				near.end()
				far.end()
				pump.Wait()
			})
		})
	}
}

// TestManyLinksShareAThinLine: with a piece under way on each, a third of all packets were lost, retransmissions too, and
// a link was silent for 4 to 8 s of 30 while SCTP waited for its timeout again and again.
func TestManyLinksShareAThinLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links, took = 8, 30 * time.Second
		l := &line{rate: 125e3, delay: 30 * time.Millisecond, queue: 32 << 10}
		bytes, silence := l.crowd(t, links, took)
		sum := 0
		for _, b := range bytes {
			sum += b
		}
		t.Logf("pieces are %.3f of the line, %d packets of %d lost, longest silence %s", float64(sum)/took.Seconds()/l.rate, l.full, l.full+l.sent, silence)
		if share := float64(sum) / took.Seconds() / l.rate; share < 0.98*payloadShare {
			t.Errorf("%.3f of the line is pieces", share)
		}
		if lost := float64(l.full) / float64(l.full+l.sent); lost > 0.12 {
			t.Errorf("%.2f of the packets found the queue full", lost)
		}
		if least := slices.Min(bytes); least < sum/links/4 {
			t.Errorf("one link got %d bytes of %d", least, sum)
		}
	})
}

// TestALossyLineIsReadToItsEnd: whatever is lost, sent again and put in order, nothing that has come waits for a look that unread
// did not ask for.
func TestALossyLineIsReadToItsEnd(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.1} {
		synctest.Test(t, func(t *testing.T) {
			const messages = 400
			l := &line{rate: 1.25e6, delay: 20 * time.Millisecond, queue: 64 << 10, loss: loss, dice: rand.New(rand.NewPCG(1, 2))}
			near, far := l.play(t)
			message := make([]byte, peer.DefaultPlan.Message/2)
			for range messages {
				for !near.SendData(message) {
					<-near.drained
				}
			}
			<-time.After(time.Minute)
			if got, _ := far.came(); got != messages*len(message) {
				t.Errorf("%.2f lost on the way: %d of %d bytes were read", loss, got, messages*len(message))
			}
			far.mu.Lock()
			if loss == 0 && far.silence > 100*time.Millisecond {
				t.Errorf("nothing was read for %s, and nothing was lost", far.silence)
			}
			far.mu.Unlock()
			near.end()
			far.end()
		})
	}
}

// TestASegmentEndsWhenItsBytesAreThere plays what a seed does for a viewer that asks for one segment after the other. The last
// piece of a segment is shorter than the others. Where it went out as one message, on top of a bound that had been made for half of
// it, its end was lost, and the player waited for it for 0.3 to 0.6 s. So did a link that was made while the first segment came
// from the origin and had filled the queue, because it took the path for four times as long.
func TestASegmentEndsWhenItsBytesAreThere(t *testing.T) {
	const delay = 15 * time.Millisecond
	for name, l := range map[string]*line{
		"2 Mbit/s, linked beside the origin": {rate: 250e3, delay: delay, queue: 32 << 10, met: 110 * time.Millisecond},
		"4 Mbit/s, a queue of 45 ms":         {rate: 500e3, delay: delay, queue: 22_500},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, l.segments) })
	}
}

// segments sends segments of 41 pieces over a link, each when the one before it is there, and holds them to the line's rate.
func (l *line) segments(t *testing.T) {
	const whole, last = 40, 16168
	near, far := l.play(t)
	sent := 0
	send := func(piece int) {
		size := peer.CutSize(piece, near.Message())
		for at := 0; at < piece; at += size {
			message := make([]byte, min(size, piece-at)+peer.DataHeader)
			for !near.SendData(message) {
				<-near.drained
			}
			sent += len(message)
		}
	}
	send(900) // the first piece that proves the seed, while others have the line
	<-time.After(2 * time.Second)
	for segment := range 8 {
		begun := time.Now()
		for range whole {
			send(peer.PieceSize)
		}
		send(last)
		for got := 0; got < sent; got, _ = far.came() {
			<-time.After(time.Millisecond)
		}
		took := time.Since(begun) - 2*l.delay
		share := (whole*peer.PieceSize + last) / took.Seconds() / l.rate
		if segment > 0 && share < 0.99*payloadShare { // the first finds the path's rate
			t.Errorf("segment %d took %s: %.3f of the line was pieces", segment, took, share)
		}
	}
	if 100*l.full > l.sent {
		t.Errorf("%d packets found the queue full, %d did not", l.full, l.sent)
	}
	near.end()
	far.end()
}
