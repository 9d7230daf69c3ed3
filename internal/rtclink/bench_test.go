package rtclink

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/baseline/bare"
)

const benchMessage = 16384

// BenchmarkLink sends messages over a link within one process and prints what that is in messages over a tuned bare
// pion data channel of the same run: its rate ÷ theirs.
func BenchmarkLink(b *testing.B) {
	theirs := bareRate(b)
	seed, viewer := benchHost(b, false), benchHost(b, true)
	sender, receiver := newEnd(), newEnd()
	var got atomic.Int64
	all := make(chan struct{})
	want := int64(b.N) * benchMessage
	receiver.data = func(m []byte) {
		if got.Add(int64(len(m))) == want {
			close(all)
		}
	}
	connect(b, viewer, seed, receiver, sender)
	message := make([]byte, benchMessage)
	b.SetBytes(benchMessage)
	b.ReportAllocs()
	b.ResetTimer()
	begun := time.Now()
	for range b.N {
		for !sender.link.SendData(message) {
			<-sender.drained
		}
	}
	<-all
	b.StopTimer()
	b.ReportMetric(float64(want)/time.Since(begun).Seconds()/theirs, "×bare")
}

func benchHost(b *testing.B, own bool) *Host {
	b.Helper()
	h, err := Listen(Config{Listen: "127.0.0.1:0", SocketPerLink: own})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

// bareRate is bytes per second over a tuned data channel of pion's.
func bareRate(b *testing.B) float64 {
	b.Helper()
	const bytes = 64 << 20
	var got atomic.Int64
	all := make(chan struct{})
	peers := make([]*bare.Peer, 2)
	for i := range peers {
		p, err := bare.New(bare.Config{
			Addr: netip.MustParseAddr("127.0.0.1"), Tuned: true, Channels: 1, Message: benchMessage, Buffer: 1 << 20,
			Received: func(n int) {
				if total := got.Add(int64(n)); total >= bytes && total-int64(n) < bytes {
					close(all)
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close() //nolint:errcheck // a baseline that has done its work
		peers[i] = p
	}
	offer, err := peers[0].Offer()
	if err != nil {
		b.Fatal(err)
	}
	answer, err := peers[1].Answer(offer)
	if err == nil {
		err = peers[0].Accept(answer)
	}
	if err != nil {
		b.Fatal(err)
	}
	<-peers[0].Opened()
	<-peers[1].Opened()
	begun := time.Now()
	peers[1].Pump()
	<-all
	return bytes / time.Since(begun).Seconds()
}

// BenchmarkPortsEnd is one port's end while so many end together: what it costs does not grow with how many there are.
func BenchmarkPortsEnd(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				m := bareMux()
				ports := make([]*port, n)
				for i := range ports {
					ports[i] = m.testPort(b, fmt.Sprint(i))
					m.claim(ports[i], testAddr(i), true)
				}
				b.StartTimer()
				for _, p := range ports {
					m.remove(p)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/port")
		})
	}
}
