package trackerbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	// underLong is how long the honest sessions are watched in quiet, and then under load.
	underLong = 8 * time.Second
	// floodLong is as long as it takes the largest queue to fill for a client that does not read.
	floodLong = 2 * underLong
	// beatWait is how long a tracker may keep what it has counted to itself.
	beatWait = 2500 * time.Millisecond
	// honestNet and burdenNet are the third numbers of the addresses that sessions come from.
	honestNet, burdenNet = 0, 1
	burdenAddresses      = 4
)

// burdens are what a flood has of each kind: sockets, and messages or connections a second of all of them.
var burdens = []burden{
	{loadgen.HalfOpen, 5000, 1000}, {loadgen.Malformed, 50, 500}, {loadgen.Oversized, 20, 50}, {loadgen.Flood, 50, 10_000}, {loadgen.Deaf, 10, 300},
}

type burden struct {
	Kind                loadgen.Kind
	Sessions, PerSecond int
}

// overloads are the cases of too much.
func overloads() []bench.Case {
	quiet, busy := bench.Figure{Name: "quiet_p99_seconds", Unit: "s"}, bench.Figure{Name: "server_busy", Unit: "cores"}
	// Viewers that come are no attack: what is asked is what is asked with them connected.
	stormed := []bench.Figure{
		{Name: "p99_seconds", Unit: "s", Goal: announceGoal}, {Name: "p99_ratio"}, quiet, busy, {Name: "connected_seconds", Unit: "s"}, {Name: "retried"},
	}
	flooded := []bench.Figure{{Name: "beside_p99_seconds", Unit: "s"}, {Name: "p99_ratio", Goal: "<= 2"}, {Name: "p99_seconds", Unit: "s"}, quiet, busy}
	for _, name := range []string{"half_open", "malformed", "oversized", "flood", "slow", "connects"} {
		flooded = append(flooded, bench.Figure{Name: name + "_refused", Goal: ">= 1"})
	}
	return []bench.Case{
		{
			Name: "storm", About: fmt.Sprintf("%d sockets connect over TLS all at once: what %d others notice that announce themselves.", idleSockets, liveSessions),
			Needs: twoCores, Figures: stormed, Run: storm,
		},
		{
			Name: "flood", About: fmt.Sprintf("Half-open connections, messages that are none, too large or too many, and readers that do not read, all together, with the limits of `leeway tracker`: what %d honest sessions notice.", liveSessions),
			Needs: twoCores, Figures: flooded, Run: flood,
		},
	}
}

// watched is a server and honest sessions that announce themselves.
type watched struct {
	service service
	server  *process
	child   *bench.Process
	live    *driver
	ask     orders
	quiet   loadgen.Result
}

// watch runs f once it is known how the honest sessions fare in quiet.
func watch(ctx context.Context, r *bench.Run, limits bool, f func(*watched) error) (err error) {
	pair, err := newCertificate()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.Remove()) }()
	w := &watched{service: service{Cert: pair.Cert, Key: pair.Key, Limits: limits}}
	if w.server, w.child, err = startServiceOn(on(serverCore), r, w.service); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.server.stop()) }()
	w.ask = orders{
		Protocol: loadgen.WebTorrent, Address: w.server.address, Path: torrentPath, CA: pair.Cert, Network: honestNet,
		Sessions: liveSessions, Swarms: liveSessions / 10, Offers: 2,
	}
	if w.live, err = startDriver(r, w.ask); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.live.Stop()) }()
	if w.quiet, _, err = w.live.phase(ctx, phase{PerSecond: livePerSecond, Long: underLong}, w.server.pid); err != nil {
		return err
	}
	return f(w)
}

// under watches the honest sessions again.
func (w *watched) under(ctx context.Context, long time.Duration) (map[string]float64, error) {
	r, busy, err := w.live.phase(ctx, phase{PerSecond: livePerSecond, Long: long}, w.server.pid)
	return map[string]float64{
		"p99_ratio": r.P99.Seconds() / w.quiet.P99.Seconds(), "p99_seconds": r.P99.Seconds(), "quiet_p99_seconds": w.quiet.P99.Seconds(),
		"server_busy": busy / long.Seconds(),
	}, err
}

func storm(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	err = watch(ctx, r, false, func(w *watched) (err error) {
		began := time.Now()
		var crowd []*driver
		var retried int64
		connected := make(chan time.Duration, 1)
		failed := make(chan error, 1)
		go func() {
			var err error
			crowd, retried, err = startCrowd(r, w.ask)
			connected <- time.Since(began)
			failed <- err
		}()
		sample.Values, err = w.under(ctx, underLong)
		took := <-connected
		err = errors.Join(err, <-failed)
		defer func() { err = errors.Join(err, stopAll(crowd)) }()
		if err != nil {
			return err
		}
		sample.Values["connected_seconds"], sample.Values["retried"] = took.Seconds(), float64(retried)
		r.Logf("  %d sockets there after %s, %d came back; announce p99 %.6f s, in quiet %s", idleSockets, took.Round(time.Millisecond), retried, sample.Values["p99_seconds"], w.quiet.P99)
		return nil
	})
	return sample, err
}

func flood(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	err = watch(ctx, r, true, func(w *watched) (err error) {
		beside, err := w.beside(ctx, r)
		if err != nil {
			return err
		}
		p, err := sendBurden(r, w.ask)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Stop()) }()
		if sample.Values, err = w.under(ctx, floodLong); err != nil {
			return err
		}
		sample.Values["beside_p99_seconds"] = beside["p99_seconds"]
		if !sleep.For(ctx, beatWait) {
			return ctx.Err()
		}
		var counted map[string]float64
		if err := errors.Join(w.child.Send(struct{}{}), w.child.Receive(&counted)); err != nil {
			return err
		}
		for name, reason := range map[string]string{
			"half_open": "half-open", "malformed": "bad-message", "oversized": "oversized", "flood": "rate-limited", "slow": "slow", "connects": "rate",
		} {
			sample.Values[name+"_refused"] = counted[reason]
		}
		r.Logf("  announce p99 %.6f s, in quiet %s, beside another's flood %.6f s; refused: %v",
			sample.Values["p99_seconds"], w.quiet.P99, beside["p99_seconds"], counted)
		return nil
	})
	return sample, err
}

// beside watches the honest sessions while another server has the flood, which lives where the flood does: what they notice
// then is the machine's.
func (w *watched) beside(ctx context.Context, r *bench.Run) (values map[string]float64, err error) {
	other, _, err := startServiceOn(behindOthers, r, service{Cert: w.service.Cert, Key: w.service.Key, Limits: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.stop()) }()
	ask := w.ask
	ask.Address = other.address
	p, err := sendBurden(r, ask)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	return w.under(ctx, underLong)
}

// sendBurden has a process be a burden that the honest sessions are asked to talk to.
func sendBurden(r *bench.Run, ask orders) (*bench.Process, error) {
	p, err := r.Start(behindOthers, "tracker", "burden", "burden")
	if err != nil {
		return nil, err
	}
	ask.Network, ask.Addresses, ask.Burdens = burdenNet, burdenAddresses, burdens
	if err := p.Send(ask); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// behindOthers starts a child on the driver's core, which it has when no other process wants it, and gives up at once when one
// does: what the honest sessions notice is to be the server's doing. (A nice process keeps a processor for a slice of more
// than a millisecond from a process that wakes up.)
func behindOthers(name string, arg ...string) (cmd *exec.Cmd, start func() error) {
	return on(driverCore)("chrt", append([]string{"--idle", "0", name}, arg...)...)
}

// burdenRole is a burden in every way until its input ends.
func burdenRole(_ context.Context, in *json.Decoder, _ *bench.Writer) error {
	var o orders
	if err := in.Decode(&o); err != nil {
		return err
	}
	c, err := o.config()
	if err != nil {
		return err
	}
	var all []*loadgen.Assault
	defer func() {
		for _, a := range all {
			a.End()
		}
	}()
	for _, b := range o.Burdens {
		c.Sessions = b.Sessions
		a, err := loadgen.Assail(c, b.Kind, b.PerSecond)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	var end any
	_ = in.Decode(&end)
	return nil
}

var refusalLine = regexp.MustCompile(`(?m)^leeway_tracker_(?:rejected|webtorrent_refused)_total\{(?:reason|code)="([^"]+)"\} (\S+)$`)

// refusals is what a server has refused, by reason, as Prometheus would read it.
func refusals(registry *promreg.Registry) map[string]float64 {
	var page body
	registry.Handler().ServeHTTP(&page, &http.Request{Method: http.MethodGet, Header: http.Header{}})
	counted := map[string]float64{}
	for _, m := range refusalLine.FindAllSubmatch(page.Bytes(), -1) {
		n, _ := strconv.ParseFloat(string(m[2]), 64)
		counted[string(m[1])] += n
	}
	return counted
}

// body is a response that is kept.
type body struct{ bytes.Buffer }

// Header implements http.ResponseWriter.
func (*body) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter.
func (*body) WriteHeader(int) {}
