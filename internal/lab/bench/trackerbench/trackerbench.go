// Package trackerbench is `leeway-lab bench tracker`: what one core of a tracker does. Server and driver are processes of their
// own on cores of their own; both ends speak TLS over loopback. bittorrent-tracker from npm goes through the same minutes
// under the same driver.
package trackerbench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "tracker",
	About: "Announces, offers and answers over TLS: what one core of a tracker does, beside bittorrent-tracker.",
	Roles: map[string]bench.Role{"server": serverRole, "driver": driverRole, "burden": burdenRole},
	Cases: append([]bench.Case{
		{
			Name: "webtorrent", About: "1,000 sockets in 100 swarms, five offers with each announce; the rival in the same run.",
			Needs: twoCores, Figures: append(figures(), rivalFigures...),
			Run: speed{protocol: loadgen.WebTorrent, path: torrentPath, sessions: 1000, swarms: 100, offers: 5, warm: 2 * time.Second, long: 6 * time.Second, perSecond: 500, rival: true}.run,
		},
		{
			Name: "native", About: "The same of leeway.v1: sessions leave, join, and offer to the peers that they are introduced to.",
			Needs: twoCores, Figures: figures(),
			Run: speed{protocol: loadgen.Native, path: "/", sessions: 1000, swarms: 100, offers: 5, warm: 2 * time.Second, long: 6 * time.Second, perSecond: 500}.run,
		},
		idling("idle/plain", "without TLS", false, "<= 12288"),
		idling("idle/tls", "with TLS", true, ""),
		{
			Name: "short", About: "webtorrent, for development: 200 sockets, a few seconds, no rival.", Extra: true,
			Needs: twoCores, Figures: figures(),
			Run: speed{protocol: loadgen.WebTorrent, path: torrentPath, sessions: 200, swarms: 20, offers: 5, warm: 500 * time.Millisecond, long: 2 * time.Second, perSecond: 500}.run,
		},
	}, overloads()...),
}

func figures() []bench.Figure {
	return []bench.Figure{
		{
			Name: "responses_per_second_per_core", Unit: "1/s", Goal: ">= 87000",
			Reference: &bench.Reference{Value: 87_000, Source: "aquatic_ws, one core of such a machine, TLS"},
		},
		{Name: "responses_per_second", Unit: "1/s"},
		{Name: "server_busy", Unit: "cores"},
		{Name: "refused_permille"},
		{Name: "p50_seconds", Unit: "s"},
		{Name: "p99_seconds", Unit: "s"},
	}
}

var rivalFigures = []bench.Figure{
	{Name: "vs_bittorrent_tracker", Goal: ">= 3", Optional: true}, // it may be missing
	{
		Name: "bittorrent_tracker_responses_per_second_per_core", Unit: "1/s",
		Reference: &bench.Reference{Value: 21_700, Source: "the same, one core of such a machine, TLS"},
	},
	{Name: "bittorrent_tracker_p99_seconds", Unit: "s"},
}

// leastBusy is how much of its core the server has to have for a claim. The driver does as much work for a response as the
// server does, in a process that is not the one to be made fast: it is the limit of both.
const leastBusy = 0.4

const (
	serverCore = "0"
	driverCore = "1"
)

func twoCores(context.Context) error {
	if runtime.NumCPU() < 2 {
		return errors.New("server and driver need a core each; this process has one")
	}
	for _, tool := range []string{"taskset", "chrt"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not here; apt-get install util-linux", tool)
		}
	}
	return nil
}

// on starts a child on one core, and Go with one core's worth of threads.
func on(core string) bench.Command {
	return func(name string, arg ...string) (*exec.Cmd, func() error) {
		cmd := exec.Command("taskset", append([]string{"-c", core, name}, arg...)...)
		return cmd, cmd.Start
	}
}

// speed is a case of messages.
type speed struct {
	protocol         loadgen.Protocol
	path             string
	sessions, swarms int
	offers           int
	warm, long       time.Duration // of the closed loop
	perSecond        int           // announces, when times are taken
	rival            bool
}

// outcome is what one server did.
type outcome struct {
	busy, paced loadgen.Result
	cpu         float64 // seconds of the server in busy
}

// perCore is responses for each second of a core that the server had: the driver's own limits do not enter.
func (o outcome) perCore() float64 { return float64(o.busy.Responses()) / o.cpu }

func (c speed) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	pair, err := newCertificate()
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, pair.Remove()) }()
	ours, err := c.measure(ctx, r, pair, startServer)
	if err != nil {
		return sample, err
	}
	b := ours.busy
	sample.Values = map[string]float64{
		"responses_per_second_per_core": ours.perCore(), "responses_per_second": float64(b.Responses()) / b.Seconds,
		"server_busy": ours.cpu / b.Seconds, "refused_permille": 1000 * float64(b.Failures) / float64(b.Responses()+b.Failures),
		"p50_seconds": ours.paced.P50.Seconds(), "p99_seconds": ours.paced.P99.Seconds(),
	}
	if ours.cpu < leastBusy*b.Seconds {
		sample.Void = fmt.Sprintf("the server had %.2f of its core: waking up was most of its work, or others had the machine", ours.cpu/b.Seconds)
	}
	if !c.rival {
		return sample, nil
	}
	theirs, err := c.measure(ctx, r, pair, startRival)
	var missing *missingError
	if errors.As(err, &missing) {
		r.Logf("  no rival: %v", missing)
		return sample, nil
	}
	if err != nil {
		return sample, err
	}
	sample.Values["bittorrent_tracker_responses_per_second_per_core"] = theirs.perCore()
	sample.Values["bittorrent_tracker_p99_seconds"] = theirs.paced.P99.Seconds()
	sample.Values["vs_bittorrent_tracker"] = ours.perCore() / theirs.perCore()
	return sample, nil
}

// measure runs one server under the driver.
func (c speed) measure(ctx context.Context, r *bench.Run, pair *hosted.Certificate, start starter) (o outcome, err error) {
	server, err := start(ctx, r, pair, true)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	driver, err := startDriver(r, orders{
		Protocol: c.protocol, Address: server.address, Path: c.path, CA: pair.Cert, Sessions: c.sessions, Swarms: c.swarms, Offers: c.offers,
	})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, driver.Stop()) }()
	if o.paced, _, err = driver.phase(ctx, phase{PerSecond: c.perSecond, Long: c.long / 2}, server.pid); err != nil {
		return o, err
	}
	o.busy, o.cpu, err = driver.phase(ctx, phase{Warm: c.warm, Long: c.long}, server.pid)
	r.Logf("  %s: %.0f responses/s with %.2f of a core: %.0f a core; %d acks, %d offers, %d answers, %d refused; announce %s, p99 %s",
		server.name, float64(o.busy.Responses())/o.busy.Seconds, o.cpu/o.busy.Seconds, o.perCore(),
		o.busy.Acks, o.busy.Offered, o.busy.Answered, o.busy.Failures, o.paced.P50, o.paced.P99)
	return o, err
}
