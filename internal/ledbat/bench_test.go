package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// BenchmarkAck is what the controller costs: two messages sent, received and acked, on one of twenty links with 64 messages in
// flight. Beside it, per message, the bytes are encrypted, checksummed and digested.
func BenchmarkAck(b *testing.B) {
	c := ledbat.NewSender(ledbat.Config{})
	var paths [20]*ledbat.Path
	var ackers [20]*ledbat.Acker
	for i := range paths {
		paths[i], ackers[i] = c.Open(0, ledbat.PathConfig{Payload: payload}), ledbat.NewAcker()
	}
	now := int64(1)
	type sent struct {
		at    int64
		stamp ledbat.Stamp
	}
	var queues [20][]sent
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		i := n % len(paths)
		for range 2 {
			now += 50
			queues[i] = append(queues[i], sent{now, paths[i].OnSent(now, 16_184, 0)})
		}
		if len(queues[i]) < 64 {
			continue
		}
		for _, m := range queues[i][:2] {
			ackers[i].OnData(m.at+20_000, 16_184, m.stamp)
		}
		queues[i] = append(queues[i][:0], queues[i][2:]...)
		if ack, ok := ackers[i].Make(now); ok {
			paths[i].OnAck(now+20_000, ack)
		}
	}
}
