package seed

import (
	"context"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

// alone is the fleet of a seed without one.
type alone struct{}

func (alone) Join(Local, int64)                                        {}
func (alone) Says() *bus.SeedFleet                                     { return nil }
func (alone) Heard(*bus.SeedBeat) bool                                 { return false }
func (alone) Asked(swarm.ID, segment.ID)                               {}
func (alone) Warm() bool                                               { return true }
func (alone) WarmUp(context.Context)                                   {}
func (alone) Drain()                                                   {}
func (alone) Linger()                                                  {}
func (alone) Expire() int                                              { return 1 }
func (alone) Segment(context.Context, Wanted) (*sibling.Answer, error) { return nil, nil }
