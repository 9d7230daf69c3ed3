package viewer_test

import (
	"bytes"
	"context"
	"sync"

	"github.com/leeway-video/leeway/internal/wire/bus"
)

// stationBus is a bus in one process: each subscription gets its messages in order, on a goroutine of its own.
type stationBus struct {
	mu   sync.Mutex
	subs map[string]map[*busSub]bool // guarded by mu
	all  sync.WaitGroup
}

type busSub struct {
	in   chan busMessage
	done chan struct{}
}

type busMessage struct {
	data  []byte
	reply func([]byte) error
}

// Connected implements tracker.Bus and seed.Bus.
func (b *stationBus) Connected() bool { return true }

// Publish implements tracker.Bus and seed.Bus.
func (b *stationBus) Publish(subject string, data []byte) error {
	b.hand(subject, busMessage{bytes.Clone(data), nil})
	return nil
}

func (b *stationBus) hand(subject string, m busMessage) (taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs[subject] {
		s.in <- m
		taken = true
	}
	return taken
}

// Subscribe implements tracker.Bus and seed.Bus.
func (b *stationBus) Subscribe(subject string, f func(string, []byte, func([]byte) error)) (func(), error) {
	s := &busSub{in: make(chan busMessage, 1<<12), done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = map[string]map[*busSub]bool{}
	}
	if b.subs[subject] == nil {
		b.subs[subject] = map[*busSub]bool{}
	}
	b.subs[subject][s] = true
	b.all.Go(func() {
		defer close(s.done)
		for m := range s.in {
			f(subject, m.data, m.reply)
		}
	})
	return func() {
		b.mu.Lock()
		if b.subs[subject][s] {
			delete(b.subs[subject], s)
			close(s.in)
		}
		b.mu.Unlock()
		<-s.done
	}, nil
}

// Request implements tracker.Bus and seed.Bus: without a subscription there is no revocation to tell of.
func (b *stationBus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	answers := make(chan []byte, 8)
	reply := func(answer []byte) error {
		answers <- bytes.Clone(answer)
		return nil
	}
	if !b.hand(subject, busMessage{bytes.Clone(data), reply}) {
		return bus.Encode(&bus.RevokeList{})
	}
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *stationBus) close() { b.all.Wait() }
