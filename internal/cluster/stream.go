package cluster

import (
	"maps"
	"slices"
	"time"
)

// GiveUp is how long a message is said again: afterwards nothing of a stream that has ended comes any more.
const GiveUp = 5 * time.Second

// Times and bounds of a stream (spec/cluster.md, "Signals").
const (
	firstAgain = 300 * time.Millisecond // until what is not acknowledged is said again; doubled each time
	maxKept    = 1024                   // messages of one stream that are not acknowledged
	maxAhead   = maxKept                // how far ahead of its turn a receiver takes a message
)

// Numbered is a message with its place in a stream.
type Numbered[M any] struct {
	N uint64
	M M
}

// Outbox is the sending end of a stream.
type Outbox[M any] struct {
	last  uint64    // number of the latest
	kept  []kept[M] // not acknowledged, in order; the last one's number is last
	again time.Time // when the first of kept is due
	wait  time.Duration
}

type kept[M any] struct {
	m  M
	at time.Time
}

// OutboxAfter makes one whose first message has the number after last.
func OutboxAfter[M any](last uint64) *Outbox[M] { return &Outbox[M]{last: last} }

// Last is the number of the latest message.
func (o *Outbox[M]) Last() uint64 { return o.last }

// Base is the lowest number that is kept: the receiver waits for nothing below it.
func (o *Outbox[M]) Base() uint64 { return o.last - uint64(len(o.kept)) + 1 }

// Waiting counts the messages that are not acknowledged.
func (o *Outbox[M]) Waiting() int { return len(o.kept) }

// Add takes a message in and numbers it; ok is false when there are too many.
func (o *Outbox[M]) Add(m M, now time.Time) (n uint64, ok bool) {
	if len(o.kept) >= maxKept {
		return 0, false
	}
	if len(o.kept) == 0 {
		o.wait = firstAgain
		o.again = now.Add(o.wait)
	}
	o.last++
	o.kept = append(o.kept, kept[M]{m, now})
	return o.last, true
}

// Acked notes that the receiver waits for number next.
func (o *Outbox[M]) Acked(next uint64, now time.Time) {
	n := int(min(next, o.last+1) - min(o.Base(), next))
	if n <= 0 {
		return
	}
	o.drop(n)
	o.wait = firstAgain
	o.again = now.Add(o.wait)
}

// drop forgets the first messages.
func (o *Outbox[M]) drop(n int) {
	clear(o.kept[:n])
	o.kept = o.kept[n:]
	if len(o.kept) == 0 {
		o.kept = nil
	}
}

// Due returns the messages that are to be said again, and those that are given up. can says whether anything can be said now.
func (o *Outbox[M]) Due(now time.Time, can bool) (again []Numbered[M], lost []M) {
	n := 0
	for n < len(o.kept) && now.Sub(o.kept[n].at) >= GiveUp {
		lost = append(lost, o.kept[n].m)
		n++
	}
	o.drop(n)
	if !can || len(o.kept) == 0 || now.Before(o.again) {
		return nil, lost
	}
	o.wait *= 2
	o.again = now.Add(o.wait)
	for i, k := range o.kept {
		// What was said a moment ago may be on its way.
		if now.Sub(k.at) >= firstAgain {
			again = append(again, Numbered[M]{o.Base() + uint64(i), k.m})
		}
	}
	return again, lost
}

// Inbox is the receiving end of a stream.
type Inbox[M any] struct {
	next  uint64 // the number that is waited for; 0 before the first message
	ahead map[uint64]M
}

// Next is the number that is waited for.
func (i *Inbox[M]) Next() uint64 { return i.next }

// Take takes a message in, and returns those whose turn it is now. base is the lowest number that still comes.
func (i *Inbox[M]) Take(n, base uint64, m M) (ready []M) {
	if n < i.next {
		return nil
	}
	if i.next == 0 {
		i.next = base
	}
	if n < max(i.next, base)+maxAhead {
		if i.ahead == nil {
			i.ahead = map[uint64]M{}
		}
		i.ahead[n] = m
	}
	// Numbers below base were given up: what came of them is acted on, the rest is not waited for.
	if i.next < base {
		for _, early := range slices.Sorted(maps.Keys(i.ahead)) {
			if early < base {
				ready = append(ready, i.ahead[early])
				delete(i.ahead, early)
			}
		}
		i.next = base
	}
	for m, ok := i.ahead[i.next]; ok; m, ok = i.ahead[i.next] {
		ready = append(ready, m)
		delete(i.ahead, i.next)
		i.next++
	}
	return ready
}
