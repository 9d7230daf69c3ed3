package trackerbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	idleSockets = 15_000
	idleDrivers = 2 // for no process may have more files than that
	idleSettle  = 3 * time.Second
	// crowdRetries is how often a session comes back that is not let in, as clients do.
	crowdRetries = 10
	// liveSessions announce themselves, livePerSecond times together, while the others say nothing.
	liveSessions, livePerSecond = 200, 500
	liveLong                    = 5 * time.Second
	// announceGoal is how soon a tracker full of viewers answers one, however many come at once.
	announceGoal = "<= 0.05"
)

// idling is the case of sockets that joined and say nothing.
func idling(name, how string, secure bool, goal string) bench.Case {
	return bench.Case{
		Name: name, About: fmt.Sprintf("%d WebTorrent sockets %s, all connecting at once, that joined a swarm and say nothing: resident memory of each, and how soon others are answered meanwhile.", idleSockets, how),
		Figures: []bench.Figure{
			{Name: "rss_bytes_per_idle_connection", Unit: "bytes", Goal: goal}, {Name: "p99_seconds", Unit: "s", Goal: announceGoal},
			{Name: "connected_seconds", Unit: "s"}, {Name: "bittorrent_tracker_rss_bytes_per_idle_connection", Unit: "bytes"},
		},
		Needs: twoCores,
		Run: func(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
			pair, err := newCertificate()
			if err != nil {
				return sample, err
			}
			defer func() { err = errors.Join(err, pair.Remove()) }()
			ours, err := idle(ctx, r, pair, startServer, secure)
			if err != nil {
				return sample, err
			}
			sample.Values = map[string]float64{
				"rss_bytes_per_idle_connection": ours.each, "p99_seconds": ours.live.P99.Seconds(), "connected_seconds": ours.connected.Seconds(),
			}
			theirs, err := idle(ctx, r, pair, startRival, secure)
			var missing *missingError
			if errors.As(err, &missing) {
				r.Logf("  no rival: %v", missing)
				return sample, nil
			}
			sample.Values["bittorrent_tracker_rss_bytes_per_idle_connection"] = theirs.each
			return sample, err
		},
	}
}

// idled is what a server did with sockets that say nothing.
type idled struct {
	each      float64        // bytes
	connected time.Duration  // until the last had its ack
	live      loadgen.Result // of those that speak meanwhile
}

func idle(ctx context.Context, r *bench.Run, pair *hosted.Certificate, start starter, secure bool) (o idled, err error) {
	server, err := start(ctx, r, pair, secure)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	ask := orders{Protocol: loadgen.WebTorrent, Address: server.address, Path: torrentPath, Sessions: liveSessions, Swarms: liveSessions / 10, Offers: 2}
	if secure {
		ask.CA = pair.Cert
	}
	live, err := startDriver(r, ask) // and whatever the first connections bring with them
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, live.Stop()) }()
	before, err := proc.Resident(server.pid)
	if err != nil {
		return o, err
	}
	began := time.Now()
	crowd, retried, err := startCrowd(r, ask)
	defer func() { err = errors.Join(err, stopAll(crowd)) }()
	if err != nil {
		return o, err
	}
	o.connected = time.Since(began)
	if !sleep.For(ctx, idleSettle) {
		return o, ctx.Err()
	}
	after, err := proc.Resident(server.pid)
	if err != nil {
		return o, err
	}
	o.each = float64(after-before) / idleSockets
	o.live, _, err = live.phase(ctx, phase{PerSecond: livePerSecond, Long: liveLong}, server.pid)
	r.Logf("  %s: all there after %s, %d came back; %.1f MB before, %.1f MB after: %.0f bytes a connection; announce %s, p99 %s", server.name,
		o.connected.Round(time.Millisecond), retried, float64(before)/1e6, float64(after)/1e6, o.each, o.live.P50, o.live.P99)
	return o, err
}

// startCrowd opens idleSockets in several processes, all of a process at once, and returns when the last is there.
func startCrowd(r *bench.Run, ask orders) (crowd []*driver, retried int64, err error) {
	ask.Sessions, ask.Swarms, ask.Offers, ask.Opening, ask.Retries = idleSockets/idleDrivers, idleSockets/10, 0, idleSockets, crowdRetries
	for i := range idleDrivers {
		ask.First = liveSessions + i*ask.Sessions
		d, err := sendFrom(r, behindOthers, ask)
		if err != nil {
			return crowd, retried, err
		}
		crowd = append(crowd, d)
	}
	for _, d := range crowd {
		there, err := d.receive()
		if err != nil {
			return crowd, retried, err
		}
		retried += there.Retried
	}
	return crowd, retried, nil
}

func stopAll(drivers []*driver) (err error) {
	for _, d := range drivers {
		err = errors.Join(err, d.Stop())
	}
	return err
}
