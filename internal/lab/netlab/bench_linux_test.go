package netlab

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/vishvananda/netlink"
)

// The long forms: make bench-netlab. They print what docs/netlab.md quotes.
var bench = flag.Bool("netlab.bench", false, "measure the lab's accuracy at length, and the rates that it certifies")

// sheet is a table on standard output.
func sheet(t *testing.T, title string) *tabwriter.Writer {
	t.Helper()
	if !*bench {
		t.Skip("a long measurement: make bench-netlab")
	}
	fmt.Printf("\n%s\n", title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	t.Cleanup(func() { _ = w.Flush() })
	return w
}

func verdict(err error) string {
	if err != nil {
		return err.Error()
	}
	return "certified"
}

// TCP over one line at rising rates, until the lab does not certify any more: the highest rate that this machine can
// emulate, with sender and receiver on the same two cores.
func TestBenchRates(t *testing.T) {
	w := sheet(t, "kernel TCP (CUBIC), one flow, 1500-byte packets, 10 ms each way, one BDP of queue, 4 s each")
	fmt.Fprintln(w, "Mbit/s\tline used\tlate p50\tp99\tlongest\temulator, cores\tidle\tverdict")
	const delay = 10 * time.Millisecond
	for _, mbit := range []int64{10, 50, 100, 150, 200, 300, 400, 500, 600, 800, 1000} {
		rate := mbit * 1_000_000
		lab, a, b, line := pair(t, Both(Link{Rate: rate, Delay: delay, Queue: BDP(rate, 2*delay)}))
		listener := listen(t, b)
		for range 3 {
			if err := lab.Mark(); err != nil {
				t.Fatal(err)
			}
			transfer(t, a, listener, 4*time.Second)
			r, err := lab.Report()
			if err != nil {
				t.Fatal(err)
			}
			share := float64(r.Directions[line.Up.Name].SentBytes*8) / r.Took.Seconds() / float64(rate)
			fmt.Fprintf(w, "%d\t%.3f\t≤ %v\t≤ %v\t%v\t%.2f\t%.0f %%\t%s\n", mbit, share, r.Late.Quantile(0.5), r.Late.Quantile(0.99),
				r.Late.Max.Round(time.Microsecond), r.EmulatorCPU, 100*r.Idle, verdict(r.Certify()))
		}
		if err := lab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func listen(t *testing.T, h *Host) net.Listener {
	t.Helper()
	l, err := h.Listen(t.Context(), "tcp", netip.AddrPortFrom(h.Addr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// One-way delay of small packets over an idle line, by the kernel's stamps at the receiver.
func TestBenchDelay(t *testing.T) {
	w := sheet(t, "one-way delay less the line's own, 2000 packets of 200 bytes, 1 ms apart")
	fmt.Fprintln(w, "delay\tp1\tmedian\tp99\twithin 1 ms\tverdict")
	for _, delay := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond} {
		lab, a, b, _ := pair(t, Both(Link{Delay: delay}))
		from, to := udp(t, a), udp(t, b)
		got := collect(to)
		offer(from, to.addr(), 200, 1_600_000, 2*time.Second)
		var off []time.Duration
		near := 0
		for _, r := range got() {
			d := r.delay - delay
			off = append(off, d)
			if d.Abs() <= time.Millisecond {
				near++
			}
		}
		r, err := lab.Report()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(off)
		at := func(q float64) time.Duration { return off[int(q*float64(len(off)-1))].Round(time.Microsecond) }
		fmt.Fprintf(w, "%v\t%v\t%v\t%v\t%.2f %%\t%s\n", delay, at(0.01), at(0.5), at(0.99), 100*float64(near)/float64(len(off)), verdict(r.Certify()))
		if err := lab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// drainRate sends a burst and returns the rate at which it came out, in bits per second, and how many came.
func drainRate(from, to socket, size, burst int) (rate float64, came int) {
	got := collect(to)
	for i := range burst {
		from.send(to.addr(), i, size)
	}
	all := got()
	if len(all) < 2 {
		return 0, len(all)
	}
	return float64((len(all)-1)*size*8) / all[len(all)-1].at.Sub(all[0].at).Seconds(), len(all)
}

// The rate of a line against the kernel's own token bucket on a veth cable: the same burst, the same stamps.
func TestBenchAgainstTBF(t *testing.T) {
	w := sheet(t, "rate at which a burst drains, 1000-byte packets, three bursts each: this lab, and tc tbf on a veth cable")
	fmt.Fprintln(w, "Mbit/s\tnetlab\ttbf\tnetlab keeps of 50 packets of room\ttbf keeps")
	for _, mbit := range []int64{1, 10, 50, 100, 200} {
		const size = 1000
		rate := mbit * 1_000_000
		burst := int(max(100, mbit*40))
		_, a, b, line := pair(t, Both(Link{Rate: rate, Queue: burst * size}))
		from, to := udp(t, a), udp(t, b)
		bucketFrom, bucketTo, resize := bucket(t, rate)
		for range 3 {
			link := line.Up.Link()
			link.Queue = burst * size
			set(t, line.Up, link)
			resize(uint32(burst) * (size + 14))
			mine, _ := drainRate(from, to, size, burst)
			theirs, _ := drainRate(bucketFrom, bucketTo, size, burst)
			link.Queue = 50 * size
			set(t, line.Up, link)
			resize(50 * (size + 14))
			_, kept := drainRate(from, to, size, 200)
			_, bucketKept := drainRate(bucketFrom, bucketTo, size, 200)
			fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%d\t%d\n", mbit, mine/1e6, theirs/1e6, kept, bucketKept)
		}
	}
}

// bucket joins two hosts by a veth cable behind a gateway's bridge, with tbf at the sender. resize sets its queue in
// bytes; tbf counts Ethernet headers too.
func bucket(t *testing.T, rate int64) (from, to socket, resize func(bytes uint32)) {
	t.Helper()
	lab := newLab(t, Options{})
	g := lab.Gateway("g", GatewayConfig{NAT: PortRestricted})
	lab.Connect(g, lab.Router("core"), Path{})
	one, two := g.Host("one"), g.Host("two")
	start(t, lab)
	resize = func(bytes uint32) {
		err := one.withLinks(func(h *netlink.Handle) error {
			link, err := h.LinkByName(device)
			if err != nil {
				return err
			}
			return errors.Join(h.QdiscReplace(&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				Rate:       uint64(rate) / 8 * 1014 / 1000, // of Ethernet frames, to make the same rate of IP packets
				Limit:      bytes,
				Buffer:     netlink.Xmittime(uint64(rate)/8, 2000),
			}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return udp(t, one), udp(t, two), resize
}

func set(t *testing.T, d *Direction, link Link) {
	t.Helper()
	if err := d.Set(link); err != nil {
		t.Fatal(err)
	}
}
