package turnbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/lab/turnclient"
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
	again := 0
	round := func(from, to int) error {
		for i := from; i < to && ctx.Err() == nil; i++ {
			n, err := visit(server.address, fmt.Sprint("user", i))
			if err != nil {
				return err
			}
			again += n
		}
		return ctx.Err()
	}
	if err := round(0, c.warm); err != nil {
		return g, err
	}
	before, err := proc.Resident(server.pid)
	if err != nil {
		return g, err
	}
	began := time.Now()
	if err := round(c.warm, c.warm+c.count); err != nil {
		return g, err
	}
	took := time.Since(began).Seconds()
	after, err := proc.Resident(server.pid)
	r.Logf("  %s: %d users in %.0f s, from %d to %d bytes; asked again %d times", server.name, c.count, took, before, after, again)
	return grown{float64(after-before) / float64(c.count), float64(after), float64(c.count) / took}, err
}

// sockets is how many a user tries.
const sockets = 5

// visit takes an allocation and gives it back; again is how often another socket had to be tried. coturn still refuses an
// address whose allocation has just been given back, and the system deals ports anew after seconds.
func visit(server, user string) (again int, err error) {
	for ; again < sockets; again++ {
		var a *turnclient.Allocation
		if a, err = allocate(server, user); err == nil {
			return again, a.Close()
		}
	}
	return again, err
}
