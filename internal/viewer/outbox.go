package viewer

import (
	"slices"
	"time"
)

const (
	queueLength = 500 // outgoing messages kept while the tracker's rate limit holds them back
	reserved    = 4   // messages of a second that signals leave to all others: what strangers have this viewer say is not to hold up its own words
)

// outbox keeps what a session says within the tracker's rate.
type outbox struct {
	loop       Loop
	write      func([]byte)
	queue      [][]byte
	signals    [][]byte // wait for all others
	sent, rate int      // messages in this second, and how many may be
	second     func()   // stops the timer of its end
}

// limit sets the tracker's rate. The outbox stays one message below it, so that the tracker's clock never sees one too many.
func (o *outbox) limit(perSecond int) { o.rate = max(1, perSecond-1) }

// exhaust sends nothing more in this second.
func (o *outbox) exhaust() { o.sent = o.rate }

// put sends a message as soon as the rate allows. What does not fit into the queue is dropped.
func (o *outbox) put(b []byte, signal bool) {
	line := &o.queue
	if signal {
		line = &o.signals
	}
	if len(*line) < queueLength {
		*line = append(*line, b)
	}
	o.flush()
}

// flush sends what this second allows, and the rest in the next.
func (o *outbox) flush() {
	o.pass(&o.queue, o.rate)
	o.pass(&o.signals, max(1, o.rate-reserved))
	if o.second == nil {
		o.second = o.loop.After(time.Second, func() {
			o.second, o.sent = nil, 0
			if len(o.queue)+len(o.signals) > 0 {
				o.flush()
			}
		})
	}
}

// pass sends from one line until so many messages have left in this second.
func (o *outbox) pass(line *[][]byte, most int) {
	for o.sent < most && len(*line) > 0 {
		o.sent++
		o.write((*line)[0])
		*line = (*line)[1:]
	}
}

// rush sends everything at once: last words do not wait.
func (o *outbox) rush() {
	for _, b := range slices.Concat(o.queue, o.signals) {
		o.write(b)
	}
}

// clear forgets what has not been sent.
func (o *outbox) clear() {
	if o.second != nil {
		o.second()
	}
	o.second, o.sent, o.queue, o.signals = nil, 0, nil, nil
}
