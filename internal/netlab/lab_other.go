//go:build !linux

package netlab

import (
	"errors"

	"github.com/leeway-video/leeway/internal/netlab/emulator"
)

// Available says why this process cannot make a lab.
func Available() error { return errors.New("netlab: network namespaces are there on Linux only") }

func (l *Lab) build(emulator.Config) error  { return Available() }
func (l *Lab) deviceDrops() (uint64, error) { return 0, Available() }

// processor is the machine's processor time since it started, in ticks.
type processor struct{ total, idle, steal uint64 }

func readProcessor() (processor, error) { return processor{}, Available() }

// Forget makes the gateway lose all mappings and permissions.
func (g *Gateway) Forget() error { return Available() }
