package transportbench

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// queueEvery is how often the emulator is asked what waits at the bottleneck.
const queueEvery = 10 * time.Millisecond

// standing is what waited at the bottleneck at a moment, as time.
type standing struct {
	at   time.Duration
	wait time.Duration
}

// standings are what the emulator had waiting.
type standings struct {
	mu  sync.Mutex
	all []standing // guarded by mu
}

// watchQueue takes down the emulator's own queue until ctx is done: what a packet that came at that moment waited.
func (r *record) watchQueue(ctx context.Context, line *netlab.Direction) {
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c, err := line.Counters(); err == nil { // the report fails the run if the emulator is gone
			r.stands(standing{time.Since(r.begun), r.scene.takes(c.QueueBytes)})
		}
	}
}

// takes is how long the bottleneck sends so many bytes.
func (s scene) takes(bytes int) time.Duration {
	return time.Duration(float64(bytes) * 8 / float64(s.line.Rate) * float64(time.Second))
}

func (q *standings) stands(s standing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, s)
}

// Bounds within which a sender's queuing delay is that of the queue, whichever is more.
const (
	signalBound = 10.0 // ms
	signalShare = 0.1
)

// followsGoal is for how much of the time that has to hold: the 95th percentile of what it is wrong by is within the bounds. The
// rest is for moments in which the machine was late, which is delay to a sender and none of the queue's.
const followsGoal = ">= 0.95"

// sampleGap is the longest time between two delays that a sender hears of, unless it has almost given up sending: acks
// wait 25 ms at most.
const sampleGap = 35 * time.Millisecond

// follows is the share of the delays that a sender told that are those of the emulator's queue. What a sender knows at a
// moment is the least that its packets waited which came to the queue between two round trips and one ago (the controller's
// filter covers half a round trip to a whole one); not sooner, and not longer ago than its samples are apart. So it lies
// between the least of all that time, and the least that it cannot have missed.
func (r *record) follows(flow int, from, to time.Duration) float64 {
	told, near := r.told(flow, from, to), 0
	for _, s := range told {
		least, most, ok := r.knows(s, r.scene.flows[flow].from+time.Duration(s.AtMS)*time.Millisecond)
		if !ok {
			continue
		}
		if s.Queuing >= least-max(signalBound, signalShare*least) && s.Queuing <= most+max(signalBound, signalShare*most) {
			near++
		}
	}
	return float64(near) / float64(max(len(told), 1))
}

// knows is between what, in milliseconds, a sender's queuing delay is at a moment if it is true.
func (r *record) knows(s state, at time.Duration) (least, most float64, ok bool) {
	trip, gap := time.Duration(s.RTT*float64(time.Millisecond)), sampleGap
	if s.Window < signalPacket { // a packet now and then
		gap += min(trip*signalPacket/time.Duration(max(s.Window, 1)), time.Second)
	}
	until := at - trip + sampleGap/2
	whole := r.stood(at-2*trip-gap-sampleGap, until)
	half := r.stood(at-trip*3/2-gap, until)
	if len(half) == 0 {
		return 0, 0, false
	}
	return ms(shortest(whole).Microseconds()), ms(shortest(longest(half, gap)).Microseconds()), true
}

// signalPacket is the controller's packet, bytes: with less of a window a sender sends one from time to time.
const signalPacket = 1200

// stood is what was seen of the queue in a time.
func (q *standings) stood(from, to time.Duration) []standing {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := sort.Search(len(q.all), func(i int) bool { return q.all[i].at >= from })
	last := sort.Search(len(q.all), func(i int) bool { return q.all[i].at > to })
	return q.all[first:max(first, last)]
}

func shortest(of []standing) time.Duration {
	least := of[0].wait
	for _, s := range of {
		least = min(least, s.wait)
	}
	return least
}

// longest has the longest wait of each stretch of a length; of all of them if they are shorter.
func longest(of []standing, length time.Duration) (most []standing) {
	for i, first := range of {
		high, j := first, i
		for ; j < len(of) && of[j].at-first.at < length; j++ {
			high.wait = max(high.wait, of[j].wait)
		}
		if j < len(of) || i == 0 {
			most = append(most, high)
		}
	}
	return most
}
