package turnbench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/proc"
)

const (
	usualPorts = 65535 - 49152 + 1 // and as many allocations, in a family
	spareFiles = 1500              // of a process beside those of allocations
	spareInUse = 3000              // ports of lowPort and above that others have
	mostMany   = 45_000
	perAddress = 1000 // clients of one address: a relay's quota
	clientPort = 20_000
)

// many is a case of more allocations than there are ports in the usual range.
type many struct {
	few             int // that carry packets, alone and then among all the others
	size, perSecond int
	long            time.Duration
}

func manyFigures() []bench.Figure {
	return []bench.Figure{
		{Name: "allocations", Goal: fmt.Sprint(">= ", usualPorts+1)}, {Name: "coturn_allocations"},
		{Name: "allocations_per_second", Unit: "1/s"}, {Name: "coturn_allocations_per_second", Unit: "1/s"},
		{Name: "p99_allocation_seconds", Unit: "s"}, {Name: "coturn_p99_allocation_seconds", Unit: "s"},
		{Name: "bytes_per_allocation", Unit: "B"}, {Name: "coturn_bytes_per_allocation", Unit: "B"}, {Name: "memory_vs_coturn"},
		{Name: "cpu_among_many"}, {Name: "coturn_cpu_among_many"}, {Name: "cpu_vs_coturn"},
		{Name: "loss_permille", Goal: "<= 1"}, {Name: "coturn_loss_permille"},
	}
}

// room is how many allocations this machine's limits leave a process, and what the limit is.
func room() (count int, why string) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, err.Error()
	}
	ports := 65535 - lowPort + 1 - spareInUse
	count = int(min(files.Max, mostMany+spareFiles)) - spareFiles
	why = fmt.Sprintf("a process may have %d files, the most that this one can raise to", files.Max)
	if count >= mostMany {
		why = fmt.Sprintf("%d are enough to see", mostMany)
	}
	if ports < count {
		count, why = ports, fmt.Sprintf("ports from %d on are relayed, and %d of them left to others", lowPort, spareInUse)
	}
	return count / perAddress * perAddress, why
}

func enoughFiles(context.Context) error {
	if count, why := room(); count <= usualPorts {
		return fmt.Errorf("room for %d allocations, and more than %d are asked for: %s", count, usualPorts, why)
	}
	return nil
}

func (c many) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	count, why := room()
	r.Logf("  %d allocations at ports from %d on, no more: %s", count, lowPort, why)
	ours, err := c.measure(ctx, r, startLeeway, count)
	if err != nil {
		return sample, err
	}
	sample.Values = map[string]float64{
		"allocations": float64(ours.granted), "allocations_per_second": ours.perSecond, "p99_allocation_seconds": ours.p99.Seconds(),
		"bytes_per_allocation": ours.bytes, "cpu_among_many": ours.among.cpu() / ours.alone.cpu(), "loss_permille": ours.among.loss(),
	}
	sample.Void = ours.void(c)
	if !hasRival(r) {
		return sample, nil
	}
	theirs, err := c.measure(ctx, r, startCoturn, count)
	if err != nil {
		return sample, err
	}
	for name, v := range map[string]float64{
		"coturn_allocations": float64(theirs.granted), "coturn_allocations_per_second": theirs.perSecond,
		"coturn_p99_allocation_seconds": theirs.p99.Seconds(), "coturn_bytes_per_allocation": theirs.bytes, "memory_vs_coturn": ours.bytes / theirs.bytes,
		"coturn_cpu_among_many": theirs.among.cpu() / theirs.alone.cpu(), "cpu_vs_coturn": ours.among.cpu() / theirs.among.cpu(),
		"coturn_loss_permille": theirs.among.loss(),
	} {
		sample.Values[name] = v
	}
	if void := theirs.void(c); void != "" {
		sample.Void = void
	}
	return sample, nil
}

// spent is what packets took.
type spent struct {
	tally
	seconds float64 // of processors
}

// cpu is seconds for a packet relayed.
func (s spent) cpu() float64 { return s.seconds / float64(s.Sent+s.Back) }

// crowded is what one server did.
type crowded struct {
	name         string
	granted      int
	perSecond    float64
	p99          time.Duration
	bytes        float64 // of memory, an allocation
	alone, among spent
}

func (m crowded) void(c many) string {
	if !m.alone.keeps(c.perSecond) || !m.among.keeps(c.perSecond) {
		return m.name + ": the clients did not keep their pace: others had the machine"
	}
	return ""
}

// clientAt is the address of a client: each has a port of its own, so that none is another one's that has gone.
func clientAt(i int) netip.AddrPort {
	n := i / perAddress
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), uint16(clientPort+i%perAddress))
}

func (c many) measure(ctx context.Context, r *bench.Run, start starter, count int) (m crowded, err error) {
	server, err := start(ctx, r, setup{allocations: count + 1}) // one while it came up
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	at, err := netip.ParseAddrPort(server.address)
	if err != nil {
		return m, err
	}
	g, err := newGang()
	if err != nil {
		return m, err
	}
	defer g.close()
	for i := range c.few {
		l, err := openLine(clientAt(i), at, g.peer.LocalAddr(), fmt.Sprint("client", i))
		if err != nil {
			return m, err
		}
		g.join(l)
	}
	m = crowded{name: server.name, granted: c.few}
	if m.alone, err = c.carry(ctx, g, server.pid); err != nil {
		return m, err
	}
	if err := m.fill(ctx, server, g, at, count); err != nil {
		return m, err
	}
	m.among, err = c.carry(ctx, g, server.pid)
	r.Logf("  %s: %d allocations, %.0f a second, %.0f bytes each; %.1f µs a packet, %.1f with %d alone", m.name, m.granted, m.perSecond, m.bytes,
		1e6*m.among.cpu(), 1e6*m.alone.cpu(), c.few)
	return m, err
}

// fill asks for all the other allocations. Their clients go, and leave them: a relay keeps them for ten minutes.
func (m *crowded) fill(ctx context.Context, server *server, g *gang, at netip.AddrPort, count int) error {
	before, err := proc.Resident(server.pid)
	if err != nil {
		return err
	}
	var took []time.Duration
	began := time.Now()
	for i := m.granted; i < count && ctx.Err() == nil; i++ {
		asked := time.Now()
		l, err := openLine(clientAt(i), at, g.peer.LocalAddr(), fmt.Sprint("client", i))
		if err != nil {
			return fmt.Errorf("after %d allocations: %w", m.granted, err)
		}
		took = append(took, time.Since(asked))
		m.granted++
		if err := l.Close(); err != nil {
			return err
		}
	}
	m.perSecond = float64(len(took)) / time.Since(began).Seconds()
	slices.Sort(took)
	m.p99 = took[len(took)*99/100]
	after, err := proc.Resident(server.pid)
	m.bytes = float64(after-before) / float64(len(took))
	return errors.Join(err, ctx.Err())
}

// carry sends packets over the few.
func (c many) carry(ctx context.Context, g *gang, pid int) (s spent, err error) {
	if _, err := g.send(ctx, c.size, c.perSecond, c.long/4); err != nil { // the first are slower
		return s, err
	}
	before, err := proc.CPU(pid)
	if err != nil {
		return s, err
	}
	if s.tally, err = g.send(ctx, c.size, c.perSecond, c.long); err != nil {
		return s, err
	}
	after, err := proc.CPU(pid)
	s.seconds = after - before
	return s, err
}
