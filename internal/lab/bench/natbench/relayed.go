package natbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/viewer"
)

var relayedFigures = []bench.Figure{
	{Name: "relayed_before", Unit: "bytes", Goal: "<= 0"},
	{Name: "peer_relay", Unit: "bytes", Goal: "> 0"},
	{Name: "peer_direct", Unit: "bytes", Goal: "<= 0"},
	{Name: "offload", Unit: "of 1", Goal: "<= 0"},
	{Name: "first_picture", Unit: "s"},
	{Name: "stalls", Unit: "", Goal: "<= 0"},
	{Name: "tracker_relay", Unit: "bytes", Goal: "> 0"},
	{Name: "tracker_direct", Unit: "bytes", Goal: "<= 0"},
}

// relayed is relaying of viewers that are headless, or Chromium.
func relayed(by ends) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		return relaying(ctx, r, row{a: symmetric, b: symmetric, by: by})
	}
}

// relaying has a viewer fill its buffer, and then the seed be out of reach and the origin fail. A viewer that comes now, behind a
// symmetric NAT as the first is, plays by way of the relay or not at all.
func relaying(ctx context.Context, r *bench.Run, w row) (sample bench.Sample, err error) {
	s, err := build(ctx, r, []row{w})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	first, err := s.enter(ctx, r, 0, w, false)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, first.stop()) }()
	if err := first.until(ctx, "a full buffer", time.Minute, func(s viewer.Summary) bool { return s.BufferMs > 25_000 && s.StoreBytes > 0 }); err != nil {
		return sample, err
	}
	// A second while all is well: it links to the first by the relay, and asks nothing of it.
	calm, err := s.enter(ctx, r, 0, w, true)
	if err != nil {
		return sample, err
	}
	linked := calm.until(ctx, "a relayed link, and film", time.Minute, func(s viewer.Summary) bool { return wayOf(s) == byRelay && s.BufferMs > 20_000 })
	before, _ := calm.all()
	if err := errors.Join(linked, calm.stop()); err != nil {
		return sample, err
	}
	if err := s.outage(ctx); err != nil {
		return sample, err
	}
	late, err := s.enter(ctx, r, 0, w, true)
	if err != nil {
		return sample, err
	}
	plays := late.until(ctx, "ten seconds of film", time.Minute, func(s viewer.Summary) bool { return s.PositionMs > 10_000 })
	said, _ := late.all()
	told := s.hearsOfRelay(ctx, plays == nil)
	if err := errors.Join(told, late.stop()); err != nil {
		return sample, err
	}
	if len(said) == 0 || len(before) == 0 {
		return sample, errors.Join(plays, errors.New("a viewer said nothing"))
	}
	last := said[len(said)-1]
	r.Logf("newcomer: bytes %v, links %v, reasons %v, failures %v, %v", last.Stats.Bytes, last.Linked, last.Stats.Reasons, last.Stats.LinkFailures, plays)
	sums, err := s.named.Metrics()
	if err != nil {
		return sample, err
	}
	return bench.Sample{Values: map[string]float64{
		"relayed_before": float64(before[len(before)-1].Stats.Bytes["peer_relay"]),
		"peer_relay":     float64(last.Stats.Bytes["peer_relay"]), "peer_direct": float64(last.Stats.Bytes["peer"]), "offload": last.Offload,
		"first_picture": float64(last.Stats.StartupMs) / 1000, "stalls": float64(last.Stats.Stalls),
		"tracker_relay": float64(sums(received, `source="peer"`, `path="relay"`)), "tracker_direct": float64(sums(received, `source="peer"`, `path="direct"`)),
	}}, nil
}

const received = "leeway_viewer_received_bytes_total"

// hearsOfRelay waits until the tracker has heard of relayed bytes, if there are any: a viewer says so every ten seconds, and a
// browser that is ended says no last word.
func (s *stage) hearsOfRelay(ctx context.Context, any bool) error {
	for deadline := time.Now().Add(patience); any; {
		sums, err := s.named.Metrics()
		if err != nil || sums(received, `source="peer"`, `path="relay"`) > 0 || time.Now().After(deadline) {
			return err
		}
		if !sleep.For(ctx, time.Second/2) {
			return ctx.Err()
		}
	}
	return nil
}

// outage has the site's seed be out of reach, and its origin fail.
func (s *stage) outage(ctx context.Context) error {
	cut := s.sites[s.named].Command(ctx, "iptables", "-A", "INPUT", "-p", "udp", "-j", "DROP")
	if out, err := cut.CombinedOutput(); err != nil {
		return fmt.Errorf("cut off the seed: %w: %s", err, out)
	}
	return s.named.Fault("500")
}
