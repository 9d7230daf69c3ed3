package emulator

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Link is what one direction of a line does to packets. Sizes are those of IP packets, headers included.
//
// A packet waits in the queue, is sent at Rate, may be lost on the way, and arrives Delay (and jitter) after its last
// bit was sent. The zero Link passes everything at once.
type Link struct {
	// Rate in bits per second; 0 is no limit.
	Rate int64
	// Delay one way.
	Delay time.Duration
	// Queue bounds the bytes that wait. The packet that is being sent does not wait.
	Queue int
	// Fair has a queue for each flow (5-tuple), served by deficit round robin; the longest loses. Otherwise there is one queue, and what
	// does not fit is dropped.
	Fair bool
	// Loss is the share of packets lost at random after they were sent: they took their time on the link.
	Loss float64
	// LossBurst is the mean number of packets that are lost in a row, 0 and 1 meaning independent losses.
	LossBurst float64
	// Jitter is added to Delay, evenly spread over 0 … Jitter. Packets stay in order unless Reorder is set.
	Jitter time.Duration
	// Reorder lets jitter change the order of packets.
	Reorder bool
	// SpikeEvery and Spike hold everything on the way for Spike, at random moments SpikeEvery apart in the mean, and
	// then release it in a burst, as a busy radio does.
	SpikeEvery, Spike time.Duration
	// Ledger, if it is above 0, has every packet of at least so many bytes noted, in the order in which they were sent, with whether it
	// was lost. What the queue drops is never sent and not noted.
	Ledger int
	// Seed of everything random here; 0 lets the lab choose one that depends on its own seed and on the link.
	Seed uint64
}

// Check returns what is impossible about a link.
func (l Link) Check() error {
	share := func(v float64) bool { return v >= 0 && v <= 1 } // false for NaN
	var errs []error
	if l.Rate < 0 || l.Queue < 0 || l.Ledger < 0 || l.Delay < 0 || l.Jitter < 0 || l.Spike < 0 || l.SpikeEvery < 0 {
		errs = append(errs, errors.New("a rate, queue or time is negative"))
	}
	if l.Rate > 0 && l.Queue == 0 {
		errs = append(errs, errors.New("a rate needs a queue: Queue is the number of bytes that may wait for the link"))
	}
	if !share(l.Loss) {
		errs = append(errs, fmt.Errorf("loss %v is not a share between 0 and 1", l.Loss))
	}
	if l.LossBurst != 0 && !(l.LossBurst >= 1) || math.IsInf(l.LossBurst, 0) {
		errs = append(errs, fmt.Errorf("loss burst %v: the mean number of losses in a row is at least 1", l.LossBurst))
	}
	if l.Spike > 0 && l.SpikeEvery == 0 {
		errs = append(errs, errors.New("spikes need SpikeEvery"))
	}
	return errors.Join(errs...)
}

// Counters of one direction, since the lab started; the two maxima since the last mark.
type Counters struct {
	Packets, Bytes     uint64 // that came to the link
	Sent, SentBytes    uint64 // that left the queue and were sent, lost ones included
	Delivered          uint64 // that left the link at its far end
	QueueDrops         uint64 // dropped because the queue was full
	Lost               uint64 // lost on the way
	Reordered          uint64 // that left before one sent earlier
	Busy               time.Duration
	MaxQueueBytes      int
	MaxQueuePackets    int
	QueueBytes, Flying int // now: waiting; on the way
}

// Since returns what was counted after an earlier state. The maxima are already since the last mark, and what waits or
// is on the way is of this moment.
func (c Counters) Since(earlier Counters) Counters {
	c.Packets -= earlier.Packets
	c.Bytes -= earlier.Bytes
	c.Sent -= earlier.Sent
	c.SentBytes -= earlier.SentBytes
	c.Delivered -= earlier.Delivered
	c.QueueDrops -= earlier.QueueDrops
	c.Lost -= earlier.Lost
	c.Reordered -= earlier.Reordered
	c.Busy -= earlier.Busy
	return c
}

// link is the state of one direction. Times are those of the engine's clock, and never go back.
type link struct {
	Link
	queue   queue
	sending *Packet
	free    time.Duration // when the packet in sending has been sent
	line    line
	random  *rand.Rand
	bad     bool          // in a run of losses
	spike   time.Duration // when the next spike begins
	newest  uint64        // highest sequence number delivered, for Reordered
	counts  Counters
	ledger  []bool        // lost or not, of the packets that Ledger names, since the link has its properties
	drop    func(*Packet) // gives a packet back
}

func newLink(cfg Link, drop func(*Packet)) *link {
	l := &link{drop: drop, random: rand.New(rand.NewPCG(cfg.Seed, 0x6c696e6b))}
	l.set(cfg, 0)
	return l
}

// set gives the link other properties. Packets in the queue stay, those being sent or on the way keep their times.
func (l *link) set(cfg Link, now time.Duration) {
	old := l.queue
	l.Link = cfg
	l.queue, l.ledger = newQueue(cfg), nil
	for old != nil {
		p := old.pop()
		if p == nil {
			break
		}
		l.enqueue(p)
	}
	l.spike = now + l.untilSpike()
}

// arrive takes a packet in. The engine has already let everything happen that was due before now.
func (l *link) arrive(p *Packet, now time.Duration) {
	l.counts.Packets++
	l.counts.Bytes += uint64(p.Size)
	l.transmit(now)
	if l.sending != nil {
		l.enqueue(p)
		return
	}
	l.send(p, now)
	l.transmit(now) // without a rate it has been sent
}

func (l *link) enqueue(p *Packet) {
	l.queue.push(p, func(p *Packet) {
		l.counts.QueueDrops++
		l.drop(p)
	})
	bytes, packets := l.queue.size()
	l.counts.MaxQueueBytes = max(l.counts.MaxQueueBytes, bytes)
	l.counts.MaxQueuePackets = max(l.counts.MaxQueuePackets, packets)
}

// send begins to send a packet at the time at.
func (l *link) send(p *Packet, at time.Duration) {
	var took time.Duration
	if l.Rate > 0 {
		took = time.Duration(int64(p.Size) * 8 * int64(time.Second) / l.Rate)
	}
	l.sending = p
	l.free = at + took
	l.counts.Busy += took
}

// transmit lets the sending of packets go on until now. What was sent is on the line then, with the time at which it
// arrives, computed from the link's own times and never from when they were read.
func (l *link) transmit(now time.Duration) {
	for l.sending != nil && l.free <= now {
		p, at := l.sending, l.free
		l.sending = nil
		l.counts.Sent++
		l.counts.SentBytes += uint64(p.Size)
		p.seq = l.counts.Sent
		lost := l.lose()
		if l.Ledger > 0 && p.Size >= l.Ledger {
			l.ledger = append(l.ledger, lost)
		}
		if lost {
			l.counts.Lost++
			l.drop(p)
		} else {
			l.line.add(p, l.arrival(at))
		}
		if next := l.queue.pop(); next != nil {
			l.send(next, at)
		}
	}
}

// lose decides by a two-state chain: in the bad state everything is lost, and its mean length is LossBurst.
func (l *link) lose() bool {
	if l.Loss == 0 || l.Loss == 1 {
		return l.Loss == 1
	}
	burst := max(l.LossBurst, 1)
	if l.LossBurst <= 1 {
		return l.random.Float64() < l.Loss
	}
	stay, enter := 1-1/burst, min(l.Loss/(burst*(1-l.Loss)), 1)
	if l.bad {
		l.bad = l.random.Float64() < stay
	} else {
		l.bad = l.random.Float64() < enter
	}
	return l.bad
}

// arrival returns when a packet whose last bit was sent at the time at comes out.
func (l *link) arrival(at time.Duration) time.Duration {
	due := at + l.Delay
	release := due
	if l.Spike > 0 {
		for due >= l.spike+l.Spike {
			l.spike += l.Spike + l.untilSpike()
		}
		if due >= l.spike {
			release = l.spike + l.Spike
		}
	}
	if l.Jitter > 0 {
		due += time.Duration(l.random.Int64N(int64(l.Jitter) + 1))
	}
	due = max(due, release)
	if !l.Reorder {
		due = max(due, l.line.last)
	}
	return due
}

func (l *link) untilSpike() time.Duration {
	if l.Spike == 0 {
		return 0
	}
	return time.Duration(l.random.ExpFloat64() * float64(l.SpikeEvery))
}

// next returns a time before which nothing leaves the link.
func (l *link) next() (time.Duration, bool) {
	at, ok := l.line.next()
	if l.sending != nil && (!ok || l.Reorder) {
		sent := l.free + l.Delay
		if !ok || sent < at {
			return sent, true
		}
	}
	return at, ok
}

// leave returns a packet that leaves the link at or before now, with the time at which it does, or nil.
func (l *link) leave(now time.Duration) (*Packet, time.Duration) {
	at, ok := l.line.next()
	if !ok || at > now {
		return nil, 0
	}
	p := l.line.pop()
	l.counts.Delivered++
	if p.seq < l.newest {
		l.counts.Reordered++
	}
	l.newest = max(l.newest, p.seq)
	return p, at
}

func (l *link) snapshot() Counters {
	c := l.counts
	c.QueueBytes, _ = l.queue.size()
	c.Flying = len(l.line.packets)
	return c
}
