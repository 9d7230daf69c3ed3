package turnbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/sleep"
)

// late is below which part of their pace clients are too late for a claim.
const late = 0.95

// traffic is a case of packets that are sent back.
type traffic struct {
	size, perSecond, clients int
	long                     time.Duration
}

func (c traffic) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	ours, err := c.measure(ctx, r, startLeeway)
	if err != nil {
		return sample, err
	}
	sample.Values = map[string]float64{
		"cpu_seconds_per_gb": ours.perGB(c.size), "packets_per_core": ours.perCore(), "loss_permille": ours.loss(),
	}
	if late := ours.late(c); late != "" {
		sample.Void = late
	}
	if !hasRival(r) {
		return sample, nil
	}
	theirs, err := c.measure(ctx, r, startCoturn)
	if err != nil {
		return sample, err
	}
	sample.Values["coturn_cpu_seconds_per_gb"], sample.Values["coturn_packets_per_core"] = theirs.perGB(c.size), theirs.perCore()
	sample.Values["coturn_loss_permille"] = theirs.loss()
	sample.Values["cpu_vs_coturn"] = ours.perGB(c.size) / theirs.perGB(c.size)
	if late := theirs.late(c); late != "" && sample.Void == "" {
		sample.Void = late
	}
	return sample, nil
}

// measured is what one server did.
type measured struct {
	sent, back int64
	seconds    float64
	cpu        float64 // seconds of the server
}

// relayed is how many packets the server passed on: to the peer, and back.
func (m measured) relayed() float64       { return float64(m.sent + m.back) }
func (m measured) perGB(size int) float64 { return m.cpu / (m.relayed() * float64(size) / 1e9) }
func (m measured) perCore() float64       { return m.relayed() / m.cpu }
func (m measured) loss() float64          { return 1000 * float64(m.sent-m.back) / float64(m.sent) }

// late says that the clients did not keep their pace, so that nothing is claimed.
func (m measured) late(c traffic) string {
	if want := float64(c.perSecond) * m.seconds; float64(m.sent) < late*want {
		return fmt.Sprintf("the clients sent %d of %.0f packets: others had the machine", m.sent, want)
	}
	return ""
}

// measure has clients send by way of a server, and looks what that took.
func (c traffic) measure(ctx context.Context, r *bench.Run, start starter) (m measured, err error) {
	server, err := start(ctx, r, setup{})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	peer, err := openPeer()
	if err != nil {
		return m, err
	}
	defer peer.close()
	crowd, err := gather(c.clients, server.address, peer.addr())
	if err != nil {
		return m, err
	}
	defer crowd.close()
	if err := crowd.pace(ctx, c.size, c.perSecond, time.Second); err != nil { // channels are bound meanwhile
		return m, err
	}
	sent, back := crowd.counts()
	before, err := proc.CPU(server.pid)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := crowd.pace(ctx, c.size, c.perSecond, c.long); err != nil {
		return m, err
	}
	m.seconds = time.Since(began).Seconds()
	sleep.For(ctx, 200*time.Millisecond) // what is on its way
	after, err := proc.CPU(server.pid)
	if err != nil {
		return m, err
	}
	m.sent, m.back = crowd.counts()
	m.sent, m.back, m.cpu = m.sent-sent, m.back-back, after-before
	r.Logf("  %s: %d packets, %d back, %.2f s of processors in %.1f s", server.name, m.sent, m.back, m.cpu, m.seconds)
	return m, nil
}
