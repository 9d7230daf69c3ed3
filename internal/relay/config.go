// Package relay is the service behind `leeway turn`: which users may have an allocation, how many, where their packets may go and
// how fast (spec/turn.md). It speaks no TURN; an adapter asks it.
//
// Nothing is kept of a user that holds no allocation, so that memory follows the allocations and not the usernames seen.
package relay

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
)

// carriedOn is for how long after its expiry a username may carry an allocation on.
const carriedOn = 24 * time.Hour

// Config of a relay. Zero values take those of Defaults.
type Config struct {
	Secrets access.RelaySecrets // in force; at least one
	Reach   access.Reach        // which peers may be reached

	MaxAllocations int
	MaxPerUser     int   // allocations
	MaxPerAddress  int   // allocations and connections of one address of clients
	MaxConnections int   // TCP and TLS
	Rate           int64 // bytes per second in all, both directions together; 0 is unlimited
	AllocationRate int64 // bytes per second of one allocation, both directions together; 0 is unlimited

	Now     func() time.Time
	Log     *slog.Logger
	Metrics metric.Sink
}

// Defaults is what zero values of a Config stand for. A user may have twice as many allocations as a viewer has links, over two addresses.
func Defaults() Config {
	return Config{MaxAllocations: 10_000, MaxPerUser: 40, MaxPerAddress: 1000, MaxConnections: 10_000}
}

func (c *Config) complete() error {
	if len(c.Secrets) == 0 {
		return errors.New("relay: no secret is configured (turn.secrets; make one: leeway secret)")
	}
	d := Defaults()
	c.MaxAllocations = cmp.Or(c.MaxAllocations, d.MaxAllocations)
	c.MaxPerUser = cmp.Or(c.MaxPerUser, d.MaxPerUser)
	c.MaxPerAddress = cmp.Or(c.MaxPerAddress, d.MaxPerAddress)
	c.MaxConnections = cmp.Or(c.MaxConnections, d.MaxConnections)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Metrics = cmp.Or(c.Metrics, metric.Discard)
	return nil
}
