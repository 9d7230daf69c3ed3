package tracker

import (
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// Seeds publish on subjects of their own (spec/cluster.md, "Users of the bus"): the NATS servers keep a seed from publishing what only
// trackers say, and what a seed may publish is checked here.

// Why a message of a seed was dropped.
const (
	seedMalformed = "malformed"
	seedStranger  = "stranger" // the sender is no seed that beats
	seedForeign   = "foreign"  // the signal of another than the sender, or no signal
	seedLate      = "late"     // kept revocations, for a tracker that is not new
)

var seedRefusals = []string{seedMalformed, seedStranger, seedForeign, seedLate}

// onSeedSignal takes signals of seeds for sessions held here, and nothing else that a delivery can be.
func (ds *deliveries) onSeedSignal(data []byte, _ func([]byte) error) {
	d := &bus.Delivery{}
	switch err := bus.Decode(data, d); {
	case err != nil:
		ds.refuseSeed(seedMalformed)
		return
	case d.Kind != bus.KindSignal, d.Stream == nil, d.Signal.Role != "seed", d.Signal.From != d.Stream.From, d.Signal.Hops != 0:
		ds.refuseSeed(seedForeign)
		return
	case !ds.isSeed(d.Stream.From):
		ds.refuseSeed(seedStranger)
		return
	}
	for _, d := range ds.streams.Take(d.Stream, d) {
		ds.handle(d)
	}
}

func (ds *deliveries) onSeedAck(data []byte, _ func([]byte) error) {
	var a bus.Ack
	switch err := bus.Decode(data, &a); {
	case err != nil:
		ds.refuseSeed(seedMalformed)
	case !ds.isSeed(a.From):
		ds.refuseSeed(seedStranger)
	default:
		ds.streams.Acked(&a)
	}
}
