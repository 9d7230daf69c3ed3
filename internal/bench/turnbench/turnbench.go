// Package turnbench is `leeway bench turn`: what relaying costs. The relay is a process of its own, asked over loopback by
// clients in this one; Debian's coturn goes through the same seconds under the same clients. Processor time is compared, not
// speed: on a machine of two cores the clients are the limit.
package turnbench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/turnd"
)

// secret is of servers that live for a measurement, on loopback.
const secret = "only-for-this-measurement-0123456789abcdef"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "turn",
	About: "What a relay costs: processor time for a gigabyte and for a packet, beside coturn; memory under usernames that come and go.",
	Cases: []bench.Case{
		{
			Name: "steady", About: "100 Mbit/s of 1,200 bytes from 20 clients to a peer that sends them back: 200 Mbit/s relayed. coturn in the same run.",
			Figures: figures("<= 1.25"), Run: traffic{size: 1200, perSecond: 100_000_000 / 8 / 1200, clients: 20, long: 5 * time.Second}.run,
		},
		{
			Name: "small", About: "The same with 120 bytes, 8,000 packets a second each way.",
			Figures: figures(""), Run: traffic{size: 120, perSecond: 8000, clients: 20, long: 5 * time.Second}.run,
		},
		{
			Name: "usernames", About: "100,000 users who come, are given an allocation, and go.", Extra: true,
			Figures: []bench.Figure{
				{Name: "grown_bytes_per_user", Unit: "B", Goal: "<= 100"}, {Name: "resident_bytes", Unit: "B"}, {Name: "users_per_second", Unit: "1/s"},
			},
			Run: usernames{count: 100_000, warm: 10_000}.run,
		},
	},
}

func figures(ratio string) []bench.Figure {
	return []bench.Figure{
		{Name: "cpu_vs_coturn", Goal: ratio},
		{Name: "cpu_seconds_per_gb", Unit: "s/GB"}, {Name: "coturn_cpu_seconds_per_gb", Unit: "s/GB"},
		{
			Name: "packets_per_core", Unit: "1/s",
			Reference: &bench.Reference{Value: 45_000, Source: "pion/turn#288: 40 to 50 thousand of 120 bytes for a UDP listener"},
		},
		{Name: "coturn_packets_per_core", Unit: "1/s"},
		{Name: "loss_permille", Goal: "<= 1"}, {Name: "coturn_loss_permille"},
	}
}

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
	if _, err := exec.LookPath("turnserver"); err != nil {
		r.Logf("  no coturn: apt-get install coturn")
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
	if want := float64(c.perSecond) * m.seconds; float64(m.sent) < 0.95*want {
		return fmt.Sprintf("the clients sent %d of %.0f packets: others had the machine", m.sent, want)
	}
	return ""
}

// measure has clients send by way of a server, and looks what that took.
func (c traffic) measure(ctx context.Context, r *bench.Run, start starter) (m measured, err error) {
	server, err := start(ctx, r)
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
	before, err := bench.CPU(server.pid)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := crowd.pace(ctx, c.size, c.perSecond, c.long); err != nil {
		return m, err
	}
	m.seconds = time.Since(began).Seconds()
	bench.Pause(ctx, 200*time.Millisecond) // what is on its way
	after, err := bench.CPU(server.pid)
	if err != nil {
		return m, err
	}
	m.sent, m.back = crowd.counts()
	m.sent, m.back, m.cpu = m.sent-sent, m.back-back, after-before
	r.Logf("  %s: %d packets, %d back, %.2f s of processors in %.1f s", server.name, m.sent, m.back, m.cpu, m.seconds)
	return m, nil
}

// usernames is a case of users who come and go.
type usernames struct{ count, warm int }

func (c usernames) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	server, err := startLeeway(ctx, r)
	if err != nil {
		return sample, err
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
		return sample, err
	}
	before, err := bench.Resident(server.pid)
	if err != nil {
		return sample, err
	}
	began := time.Now()
	if err := round(c.warm, c.warm+c.count); err != nil {
		return sample, err
	}
	took := time.Since(began).Seconds()
	after, err := bench.Resident(server.pid)
	sample.Values = map[string]float64{
		"grown_bytes_per_user": float64(after-before) / float64(c.count), "resident_bytes": float64(after), "users_per_second": float64(c.count) / took,
	}
	return sample, err
}

// allocate asks a server as a user would whose tracker minted the credentials.
func allocate(server, holder string) (*turnd.Allocation, error) {
	s, err := access.NewRelaySecret(secret)
	if err != nil {
		return nil, err
	}
	username, password := s.Mint("bench", holder, time.Now().Add(time.Hour))
	return turnd.Allocate(server, username, password)
}
