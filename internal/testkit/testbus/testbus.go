// Package testbus has the bus of tests of several rooms.
package testbus

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/natsbus"
)

// Open is a real bus that ends with the test, which then has no goroutine left that it did not begin with.
func Open(t *testing.T) *natsbus.Bus {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	b, err := natsbus.Open(natsbus.Config{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.Close()
		goleak.VerifyNone(t, leaks)
	})
	return b
}

// Lossy is a bus that loses some of what is published on it, and some answers.
type Lossy struct {
	*natsbus.Bus
	mu   sync.Mutex
	lose func(subject string) bool // guarded by mu
}

// Lose says what is lost from now on; nil: nothing is.
func (l *Lossy) Lose(lose func(subject string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = lose
}

func (l *Lossy) loses(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lose != nil && l.lose(subject)
}

// Publish publishes what is not lost.
func (l *Lossy) Publish(subject string, data []byte) error {
	if l.loses(subject) {
		return nil
	}
	return l.Bus.Publish(subject, data)
}

// Request asks. The other side has heard a question whose answer is lost.
func (l *Lossy) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	answer, err := l.Bus.Request(ctx, subject, data)
	if err == nil && l.loses(subject) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, err
}
