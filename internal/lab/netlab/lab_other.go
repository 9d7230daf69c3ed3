//go:build !linux

package netlab

import (
	"errors"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
)

// Available says why this process cannot make a lab.
func Available() error { return errors.New("netlab: network namespaces are there on Linux only") }

func (l *Lab) build(emulator.Config) error  { return Available() }
func (l *Lab) deviceDrops() (uint64, error) { return 0, Available() }

// Forget makes the gateway lose all mappings and permissions.
func (g *Gateway) Forget() error { return Available() }

// Move takes a host to another gateway.
func (h *Host) Move(*Gateway) error { return Available() }
