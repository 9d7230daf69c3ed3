package turnbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
)

// usernames is a case of users who come and go.
type usernames struct{ count, warm int }

// grown is what they left behind in a server.
type grown struct{ perUser, resident, perSecond float64 }

func (c usernames) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	ours, err := c.measure(ctx, r, startLeeway)
	if err != nil {
		return sample, err
	}
	sample.Values = map[string]float64{"grown_bytes_per_user": ours.perUser, "resident_bytes": ours.resident, "users_per_second": ours.perSecond}
	if !hasRival(r) {
		return sample, nil
	}
	theirs, err := c.measure(ctx, r, startCoturn)
	if err != nil {
		return sample, err
	}
	sample.Values["coturn_grown_bytes_per_user"], sample.Values["coturn_resident_bytes"] = theirs.perUser, theirs.resident
	sample.Values["coturn_users_per_second"] = theirs.perSecond
	return sample, nil
}

func (c usernames) measure(ctx context.Context, r *bench.Run, start starter) (g grown, err error) {
	server, err := start(ctx, r, setup{})
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	round := func(from, to int) error {
		for i := from; i < to && ctx.Err() == nil; i++ {
			a, err := allocate(server.address, fmt.Sprint("user", i))
			if err != nil {
				return err
			}
			if err := a.Close(); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	if err := round(0, c.warm); err != nil {
		return g, err
	}
	before, err := bench.Resident(server.pid)
	if err != nil {
		return g, err
	}
	began := time.Now()
	if err := round(c.warm, c.warm+c.count); err != nil {
		return g, err
	}
	took := time.Since(began).Seconds()
	after, err := bench.Resident(server.pid)
	r.Logf("  %s: %d users in %.0f s, from %d to %d bytes", server.name, c.count, took, before, after)
	return grown{float64(after-before) / float64(c.count), float64(after), float64(c.count) / took}, err
}
