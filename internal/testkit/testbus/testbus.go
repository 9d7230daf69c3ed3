// Package testbus has the bus of tests of several rooms.
package testbus

import (
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
