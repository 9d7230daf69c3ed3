package probebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	strangers  = 1000            // sockets at a time, of one host
	returnsIn  = 2 * time.Second // after the server has refused or ended one
	refusedSum = "leeway_probe_refused_total{"
)

// lie is a client's measurement of what it cannot have received.
const lie = `{"AppInfo":{"ElapsedTime":1,"NumBytes":9007199254740991}}`

// crowd is a check beside a host that has a thousand sockets at the server: some say nothing, some begin downloads and read none of
// them, some report what is not true. What they are refused is counted, and the check of another client finds its line as it is.
func crowd() bench.Case {
	const rate, rtt = 20 * mbit, 20 * ms
	return bench.Case{
		Name: "crowd",
		About: fmt.Sprintf("Throughput and baseline on 20 Mbit/s and 20 ms beside another host with %d sockets at the server: a third says nothing, a third begins downloads and reads none of them, a third reports lies.",
			strangers),
		Figures: []bench.Figure{
			{Name: "capacity_error_ratio", Goal: "<= 0.03"}, {Name: "baseline_rtt_error_seconds", Unit: "s", Goal: "<= 0.0005"},
			{Name: "refused", Unit: "requests", Goal: "> 0"},
		},
		Run: within(func(s *stage, core *netlab.Router) {
			own(both(rate, rtt))(s, core)
			s.neighbor, _ = s.lab.Attach("strangers", core, both(rate, rtt))
		}, nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			disperse := s.throng(ctx)
			defer disperse()
			if !sleep.For(ctx, settle) {
				return nil, ctx.Err()
			}
			before, err := s.refused(ctx)
			if err != nil {
				return nil, err
			}
			got, err := terminal.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime})
			if err != nil {
				return nil, err
			}
			after, err := s.refused(ctx)
			if err != nil {
				return nil, err
			}
			idle, err := got.value(netstat.BaselineRTT, netstat.Down)
			if err != nil {
				return nil, err
			}
			values := map[string]float64{"refused": after - before, "baseline_rtt_error_seconds": math.Abs(idle - rtt.Seconds())}
			for _, d := range twoWays {
				v, err := got.value(netstat.Throughput, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.3f of %.3f Mbit/s", d, v/mbit, possible(int64(rate))/mbit)
				values["capacity_error_ratio"] = max(values["capacity_error_ratio"], math.Abs(v/possible(int64(rate))-1))
			}
			return values, nil
		}),
	}
}

// throng has the strangers come, and come back, until it is told to stop.
func (s *stage) throng(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	kinds := []func(context.Context){s.mute, s.deaf, s.liar}
	var work sync.WaitGroup
	for i := range strangers {
		work.Go(func() {
			sleep.For(ctx, returnsIn*time.Duration(i)/strangers) // not all at once: a line of 20 Mbit/s has many of their handshakes a second
			for come := kinds[i%len(kinds)]; ctx.Err() == nil; sleep.For(ctx, returnsIn) {
				come(ctx)
			}
		})
	}
	return func() {
		cancel()
		work.Wait()
	}
}

// mute connects and says nothing until the server ends it.
func (s *stage) mute(ctx context.Context) {
	c, err := s.neighbor.DialContext(ctx, "tcp", net.JoinHostPort(s.server.Addr().String(), strconv.Itoa(s.ports().probe)))
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// deaf begins a download and reads none of it.
func (s *stage) deaf(ctx context.Context) {
	b, err := s.strange(ctx, "/ndt/v7/download")
	if err != nil {
		return
	}
	sleep.For(ctx, 2*longTime) // the server cuts it before
	b.Close(true)
}

// liar begins an upload and says of itself what is not true, for as long as it is heard.
func (s *stage) liar(ctx context.Context) {
	b, err := s.strange(ctx, "/ndt/v7/upload")
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { b.Close(true) })()
	for ctx.Err() == nil {
		if b.Send(false, []byte(lie)) != nil {
			break
		}
	}
	b.Close(true)
}

// strange opens a WebSocket of a stranger.
func (s *stage) strange(ctx context.Context, path string) (*wsconn.Bulk, error) {
	bulk := wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: patience}
	return bulk.DialBulk(ctx, "ws"+strings.TrimPrefix(s.url(s.server.Addr()), "http")+path, wsconn.DialConfig{NetDial: s.neighbor.DialContext})
}

// refused is how much the server has refused so far.
func (s *stage) refused(ctx context.Context) (sum float64, err error) {
	client := http.Client{Transport: &http.Transport{DialContext: s.server.DialContext, DisableKeepAlives: true}, Timeout: patience}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ports().admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, fmt.Errorf("metrics of the server: %w", err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(all)) {
		if !strings.HasPrefix(line, refusedSum) {
			continue
		}
		_, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("metrics of the server: %q", line), err)
		}
		sum += n
	}
	return sum, nil
}
