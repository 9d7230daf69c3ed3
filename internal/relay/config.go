// Package relay is the service behind `leeway turn`: which users may have an allocation, how many, where their packets may go and
// how fast (spec/turn.md). It speaks no TURN; an adapter asks it.
//
// Nothing is kept of a user that holds no allocation, so that memory follows the allocations and not the usernames seen.
package relay

import (
	"errors"
	"log/slog"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
)

// carriedOn is for how long after its expiry a username may carry an allocation on.
const carriedOn = 24 * time.Hour

// Config of a relay. Zero values take the defaults named.
type Config struct {
	Secrets access.RelaySecrets // in force; at least one
	Reach   access.Reach        // which peers may be reached

	MaxAllocations int   // 10,000
	MaxPerUser     int   // allocations; 40: twice as many as a viewer has links, over two addresses
	MaxPerAddress  int   // allocations and connections of one address of clients; 1,000
	MaxConnections int   // TCP and TLS; 10,000
	Rate           int64 // bytes per second in all, both directions together; 0 is unlimited
	AllocationRate int64 // bytes per second of one allocation, both directions together; 0 is unlimited

	Now     func() time.Time
	Log     *slog.Logger
	Metrics metric.Sink
}

func (c *Config) complete() error {
	if len(c.Secrets) == 0 {
		return errors.New("relay: no secret is configured (turn.secrets; make one: leeway secret)")
	}
	for _, n := range []struct {
		v *int
		d int
	}{{&c.MaxAllocations, 10_000}, {&c.MaxPerUser, 40}, {&c.MaxPerAddress, 1000}, {&c.MaxConnections, 10_000}} {
		if *n.v == 0 {
			*n.v = n.d
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = metric.Discard
	}
	return nil
}
