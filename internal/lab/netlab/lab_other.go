//go:build !linux

package netlab

import (
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
)

// Available says why this process cannot make a lab.
func Available() error { return errors.New("netlab: network namespaces are there on Linux only") }

func (l *Lab) build(emulator.Config) error  { return Available() }
func (l *Lab) deviceDrops() (uint64, error) { return 0, Available() }

// processor is how long the machine's processors have been idle or taken away.
type processor struct {
	idle, steal time.Duration
	count       int
}

func readProcessor() (processor, error) { return processor{}, Available() }

// Forget makes the gateway lose all mappings and permissions.
func (g *Gateway) Forget() error { return Available() }

// Move takes a host to another gateway.
func (h *Host) Move(*Gateway) error { return Available() }
