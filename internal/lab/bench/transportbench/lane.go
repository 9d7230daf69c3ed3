package transportbench

import (
	"fmt"
	"math"
	"sync"
)

// lane is what drives the links of one end, besides foreground bursts.
type lane interface {
	add(e *linkEnd)            // a link is open
	start()                    // send, or ask
	asked(e *linkEnd, n int)   // the sender's: the other end wants n bytes more
	data(e *linkEnd, b []byte) // the receiver's
	ack(e *linkEnd, b []byte)  // the sender's
	foreground(on bool)        // a burst begins, or has gone out
	close()
}

func newLane(s *linkStack) (lane, error) {
	switch s.setup.Kind {
	case foreground:
		return &foregroundLane{stack: s}, nil
	case idle:
		if s.setup.Paced {
			return newBackgroundLane(s), nil
		}
		return noLane{}, nil
	case ledbatLane, rfcLane, asked:
		return newBackgroundLane(s), nil
	}
	return nil, fmt.Errorf("no lane is called %q", s.setup.Kind)
}

// noLane carries nothing but foreground bursts.
type noLane struct{}

func (noLane) add(*linkEnd)          {}
func (noLane) start()                {}
func (noLane) data(*linkEnd, []byte) {}
func (noLane) ack(*linkEnd, []byte)  {}
func (noLane) asked(*linkEnd, int)   {}
func (noLane) foreground(bool)       {}
func (noLane) close()                {}

// foregroundLane sends without end on every link, as fast as the foreground may.
type foregroundLane struct {
	noLane
	stack *linkStack

	mu   sync.Mutex
	ends []*linkEnd // guarded by mu
}

func (l *foregroundLane) add(e *linkEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, e)
}

func (l *foregroundLane) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ends {
		l.stack.wg.Go(func() { e.send(math.MaxInt) })
	}
}
