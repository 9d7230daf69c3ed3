package turnbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/proc"
)

// Server and clients have a core each.
const (
	serverCore = "0"
	clientCore = "1"
)

const (
	floodClients = 8
	firstRate    = 10_000    // packets a second that are sent at first; there and back the server relays twice as many
	lastRate     = 2_000_000 // beyond what any server does on one core
	refine       = 4         // halvings between the last rate that went well and the first that did not
	floodLoss    = 10        // permille that a rate that goes well stays below
	floodTime    = time.Second
)

func twoCores(context.Context) error {
	if runtime.NumCPU() < 2 {
		return errors.New("server and clients need a core each; this process has one")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return errors.New("taskset is not here; apt-get install util-linux")
	}
	return nil
}

// onCore starts the clients on their core.
func onCore(name string, arg ...string) (*exec.Cmd, func() error) {
	cmd := exec.Command("taskset", append([]string{"-c", clientCore, name}, arg...)...)
	return cmd, cmd.Start
}

// order tells the clients what to send; the first one also by way of which server.
type order struct {
	Server          netip.AddrPort
	Size, PerSecond int
	Long            time.Duration
}

// clientsRole is a gang in a process of its own.
func clientsRole(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	g, err := newGang()
	if err != nil {
		return err
	}
	defer g.close()
	return bench.Obey(in, func(o order) error {
		for i := len(g.lines); i < floodClients; i++ {
			l, err := openLine(netip.MustParseAddrPort("127.0.0.1:0"), o.Server, g.peer.LocalAddr(), fmt.Sprint("client", i))
			if err != nil {
				return errors.Join(err, out.Write(tally{Error: err.Error()}))
			}
			g.join(l)
		}
		t, err := g.send(ctx, o.Size, o.PerSecond, o.Long)
		if err != nil {
			t.Error = err.Error()
		}
		return out.Write(t)
	})
}

// flood is a case of packets of one size, more and more, until a hundredth is lost.
type flood struct{ size int }

// floodFigures are of one size; the reference is of 120 bytes.
func floodFigures(size int) []bench.Figure {
	rate := bench.Figure{Name: "packets_per_second", Unit: "1/s"}
	if size == 128 {
		rate.Reference = &bench.Reference{Value: 45_000, Source: "pion/turn#288: 40 to 50 thousand of 120 bytes for a UDP listener"}
	}
	return []bench.Figure{
		rate, {Name: "coturn_packets_per_second", Unit: "1/s"}, {Name: "packets_vs_coturn"},
		{Name: "loss_permille", Goal: "<= 10"}, {Name: "coturn_loss_permille"},
		{Name: "packets_per_core", Unit: "1/s"}, {Name: "coturn_packets_per_core", Unit: "1/s"}, {Name: "cpu_vs_coturn"},
	}
}

func floods(sizes ...int) (all []bench.Case) {
	for _, size := range sizes {
		all = append(all, bench.Case{
			Name: fmt.Sprint("flood/", size), Extra: true, Needs: twoCores,
			About:   fmt.Sprintf("As many packets of %d bytes as come back but for a hundredth, server and clients on a core each. coturn in the same run.", size),
			Figures: floodFigures(size), Run: flood{size}.run,
		})
	}
	return all
}

func (c flood) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	ours, err := c.measure(ctx, r, startLeeway)
	if err != nil {
		return sample, err
	}
	if sample.Void = ours.void(); ours.best == 0 {
		return sample, nil
	}
	best := ours.well[ours.best]
	sample.Values = map[string]float64{
		"packets_per_second": best.perSecond(), "loss_permille": best.loss(), "packets_per_core": best.perCore(),
	}
	if !hasRival(r) {
		return sample, nil
	}
	theirs, err := c.measure(ctx, r, startCoturn)
	if err != nil {
		return sample, err
	}
	if void := theirs.void(); void != "" {
		sample.Void = void
	}
	if theirs.best == 0 {
		return sample, nil
	}
	rival := theirs.well[theirs.best]
	sample.Values["coturn_packets_per_second"] = rival.perSecond()
	sample.Values["coturn_loss_permille"], sample.Values["coturn_packets_per_core"] = rival.loss(), rival.perCore()
	sample.Values["packets_vs_coturn"] = sample.Values["packets_per_second"] / sample.Values["coturn_packets_per_second"]
	if rate := ours.common(theirs); rate > 0 {
		sample.Values["cpu_vs_coturn"] = theirs.well[rate].perCore() / ours.well[rate].perCore()
	}
	return sample, nil
}

// rung is what a server did with one rate.
type rung struct {
	tally
	cpu float64 // seconds of the server
}

// perSecond is how many packets the server relayed, there and back.
func (s rung) perSecond() float64 { return float64(s.Sent+s.Back) / s.Seconds }

func (s rung) perCore() float64 { return float64(s.Sent+s.Back) / s.cpu }

// ladder is the rates that were tried with one server.
type ladder struct {
	name string
	well map[int]rung // that went well, by rate
	best int          // the highest of them; 0: none
	over rung         // the lowest that did not
	rate int          // its rate; 0: all went well
}

// void says why nothing is claimed: it was not the server that had enough.
func (l ladder) void() string {
	switch o := l.over; {
	case l.rate == 0:
		return fmt.Sprintf("%s: %d packets a second are the most that is tried", l.name, lastRate)
	case !o.keeps(l.rate):
		return fmt.Sprintf("%s: the clients sent %.0f of %d packets a second", l.name, float64(o.Sent)/o.Seconds, l.rate)
	case 2*o.Dropped > o.Sent-o.Back:
		return fmt.Sprintf("%s: of %d packets that were lost the clients' own sockets dropped %d", l.name, o.Sent-o.Back, o.Dropped)
	case l.best == 0:
		return fmt.Sprintf("%s lost %.0f permille at the first rate: others had the machine", l.name, o.loss())
	}
	return ""
}

// common is the highest rate at which two servers did well.
func (l ladder) common(m ladder) (rate int) {
	for r := range l.well {
		if _, ok := m.well[r]; ok {
			rate = max(rate, r)
		}
	}
	return rate
}

// climb goes up by halves until a rate does not go well, twice, and looks for the highest between that and the one before.
func (l *ladder) climb(try func(rate int) (rung, error)) error {
	well := func(rate int) (bool, error) {
		var s rung
		for range 2 { // a moment that others took is no limit
			var err error
			if s, err = try(rate); err != nil {
				return false, err
			}
			if s.keeps(rate) && s.loss() < floodLoss {
				l.well[rate], l.best = s, rate
				return true, nil
			}
		}
		l.over, l.rate = s, rate
		return false, nil
	}
	for rate := firstRate; rate <= lastRate; rate += rate / 2 {
		if ok, err := well(rate); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	for range refine {
		if l.best == 0 || l.rate == 0 {
			break
		}
		if _, err := well((l.best + l.rate) / 2); err != nil {
			return err
		}
	}
	return nil
}

func (c flood) measure(ctx context.Context, r *bench.Run, start starter) (l ladder, err error) {
	server, err := start(ctx, r, setup{core: serverCore})
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	at, err := netip.ParseAddrPort(server.address)
	if err != nil {
		return l, err
	}
	clients, err := r.Start(onCore, "turn", "clients", server.name)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, clients.Stop()) }()
	l = ladder{name: server.name, well: map[int]rung{}}
	err = l.climb(func(rate int) (s rung, err error) {
		before, err := proc.CPU(server.pid)
		if err != nil {
			return s, err
		}
		if err := clients.Send(order{Server: at, Size: c.size, PerSecond: rate, Long: floodTime}); err != nil {
			return s, err
		}
		if err := clients.Receive(&s.tally); err != nil {
			return s, err
		}
		if s.Error != "" {
			return s, errors.New(s.Error)
		}
		after, err := proc.CPU(server.pid)
		s.cpu = after - before
		return s, errors.Join(err, ctx.Err())
	})
	r.Logf("  %s: %d a second there and back of %d bytes; %d are too many: %d of %d came back, %d dropped at the clients",
		l.name, l.best, c.size, l.rate, l.over.Back, l.over.Sent, l.over.Dropped)
	return l, err
}
