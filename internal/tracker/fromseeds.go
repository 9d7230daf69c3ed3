package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Seeds publish on subjects of their own (spec/cluster.md, "Who may say what"): the NATS servers keep a seed from publishing what only
// trackers say, and what a seed may publish is checked here.

// keptFor is how long after its start a tracker takes revocations from seeds, if it found no other tracker.
const keptFor = 5 * time.Minute

// Why a message of a seed was dropped.
const (
	seedMalformed = "malformed"
	seedStranger  = "stranger" // the sender is no seed that beats
	seedForeign   = "foreign"  // the signal of another than the sender, or no signal
	seedLate      = "late"     // kept revocations, for a tracker that is not new
)

var seedRefusals = []string{seedMalformed, seedStranger, seedForeign, seedLate}

func (t *Tracker) refuseSeed(reason string) { t.cfg.Metrics.Add(defSeedRefused, 1, reason) }

// isSeed says whether a seed with this ID beats. The ID of a tracker is no seed's, even if a beat of seeds names it.
func (t *Tracker) isSeed(id signal.ID) bool {
	return id != t.id && t.roster.serves(id) && !t.roster.lives(id)
}

// onSeedSignal takes signals of seeds for sessions held here, and nothing else that a delivery can be.
func (t *Tracker) onSeedSignal(data []byte, _ func([]byte) error) {
	d := &bus.Delivery{}
	switch err := bus.Decode(data, d); {
	case err != nil:
		t.refuseSeed(seedMalformed)
		return
	case d.Kind != bus.KindSignal, d.Stream == nil, d.Signal.Role != "seed", d.Signal.From != d.Stream.From, d.Signal.Hops != 0:
		t.refuseSeed(seedForeign)
		return
	case !t.isSeed(d.Stream.From):
		t.refuseSeed(seedStranger)
		return
	}
	for _, d := range t.courier.Take(d.Stream, d) {
		t.handleDelivery(d)
	}
}

func (t *Tracker) onSeedAck(data []byte, _ func([]byte) error) {
	var a bus.Ack
	switch err := bus.Decode(data, &a); {
	case err != nil:
		t.refuseSeed(seedMalformed)
	case !t.isSeed(a.From):
		t.refuseSeed(seedStranger)
	default:
		t.courier.Acked(&a)
	}
}

// onKept takes revocations and switches that a seed kept on disk. A tracker that found another one at its start has them from there,
// and takes none from seeds: a seed could make them up. What is new is published, for trackers and seeds that do not have it.
func (t *Tracker) onKept(data []byte, _ func([]byte) error) {
	if !t.cfg.Now().Before(t.keptUntil) {
		t.refuseSeed(seedLate)
		return
	}
	var m bus.RevokeMessage
	if bus.Decode(data, &m) != nil {
		t.refuseSeed(seedMalformed)
		return
	}
	if t.takeRevocations(&m) {
		t.publish(bus.SubjectRevoke, &m)
	}
}
