package probebench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

var twoWays = []netstat.Direction{netstat.Down, netstat.Up}

// capacity is what a check says a line carries.
func capacity(c checker, rate int64) bench.Case {
	const rtt = 20 * ms
	agrees := "<= 0.004"
	if rate < 10*mbit { // probes of responsiveness are a hundredth of what the line carries
		agrees = ""
	}
	return bench.Case{
		Name:  fmt.Sprintf("capacity/%dm-%s", rate/mbit, c.name),
		About: fmt.Sprintf("Throughput on a line of %d Mbit/s and 20 ms each way; the larger error of both ways, of what TCP can carry there.", rate/mbit),
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "capacity_error_ratio", Goal: "<= 0.03"},
			{Name: "bytes_error_ratio", Goal: agrees, Reference: thesis("K10: bytes and time beside the browser's", 0.004)},
			{Name: "throughput_down", Unit: "bit/s"}, {Name: "throughput_up", Unit: "bit/s"},
		},
		Run: on(both(rate, rtt), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			meters := map[netcheck.Phase]*meter{netcheck.Download: newMeter(s.line.Down), netcheck.Upload: newMeter(s.line.Up)}
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime, begins: func(p netcheck.Phase) {
				if m := meters[p]; m != nil {
					m.begin()
				}
			}})
			if err != nil {
				return nil, err
			}
			values := map[string]float64{}
			worst, apart := 0.0, 0.0
			for i, d := range twoWays {
				carried, err := meters[[]netcheck.Phase{netcheck.Download, netcheck.Upload}[i]].rate()
				if err != nil {
					return nil, err
				}
				v, err := got.value(netstat.Throughput, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.3f of %.3f Mbit/s; %.3f by the line", d, v/mbit, possible(rate)/mbit, possible(carried)/mbit)
				values["throughput_"+string(d)] = v
				worst, apart = max(worst, math.Abs(v/possible(rate)-1)), max(apart, math.Abs(v/possible(carried)-1))
			}
			values["capacity_error_ratio"], values["bytes_error_ratio"] = worst, apart
			return values, nil
		}),
	}
}

// efficiency is K8: RFC 6349's of a download, beside the line's own count of packets that it dropped after the ramp-up.
func efficiency(loss float64) bench.Case {
	const rate, rtt = 20 * mbit, 10 * ms
	path := both(rate, rtt)
	path.Down.Loss, path.Up.Loss = loss, loss
	published := map[float64]float64{0: 100, 0.01: 99.05, 0.05: 94.85}
	return bench.Case{
		Name:  fmt.Sprintf("K8/loss-%g", 100*loss),
		About: fmt.Sprintf("TCP efficiency of a download on 20 Mbit/s and 10 ms with %g %% of loss, beside what the line has dropped.", 100*loss),
		Figures: []bench.Figure{
			{Name: "efficiency_error_points", Unit: "points", Goal: "<= 0.3"},
			{Name: "tcp_efficiency", Unit: "percent", Reference: thesis("K8", published[loss])},
		},
		Run: on(path, nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			ramped := make(chan counted, 1)
			got, err := terminal.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download}, duration: longTime, begins: func(p netcheck.Phase) {
				if p == netcheck.Download {
					time.AfterFunc(longTime/rampUpShare, func() { ramped <- count(s.line.Down) })
				}
			}})
			if err != nil {
				return nil, err
			}
			v, err := got.value(netstat.TCPEfficiency, netstat.Down)
			if err != nil {
				return nil, err
			}
			before, after := <-ramped, count(s.line.Down)
			if err := errors.Join(before.err, after.err); err != nil {
				return nil, err
			}
			carried := after.Since(before.Counters)
			true := 100 * (1 - float64(carried.Lost+carried.QueueDrops)/float64(carried.Packets))
			r.Logf("  %.3f %%, %.3f by the line", v, true)
			return map[string]float64{"tcp_efficiency": v, "efficiency_error_points": math.Abs(v - true)}, nil
		}),
	}
}

// counted are a line's counters at a moment.
type counted struct {
	netlab.Counters
	err error
}

func count(d *netlab.Direction) (c counted) {
	c.Counters, c.err = d.Counters()
	return c
}

// packetSizes are K9's: of the server's device, and of the client's.
var packetSizes = [][2]int{{1500, 1500}, {1500, 552}, {552, 1500}, {743, 743}}

// packets is K9: the largest packet of the path.
func packets() bench.Case {
	return bench.Case{
		Name: "K9", About: "The largest packet, with devices of 1500/1500, 1500/552, 552/1500 and 743/743 bytes; how many of them are exact each way.",
		Figures: []bench.Figure{{Name: "path_mtu_exact", Goal: "== 8", Reference: thesis("K9", 8)}},
		Run: atAnyTime(on(both(20*mbit, 10*ms), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			exact := 0
			for _, size := range packetSizes {
				for i, host := range []*netlab.Host{s.server, s.client} {
					out, err := host.Command(ctx, "ip", "link", "set", "dev", "eth0", "mtu", fmt.Sprint(size[i])).CombinedOutput()
					if err != nil {
						return nil, fmt.Errorf("packets of %d bytes: %w: %s", size[i], err, out)
					}
				}
				got, err := terminal.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: netcheck.MinDuration})
				if err != nil {
					return nil, err
				}
				for _, d := range twoWays {
					v, err := got.value(netstat.PathMTU, d)
					if err != nil {
						return nil, err
					}
					r.Logf("  %d/%d, %s: %.0f", size[0], size[1], d, v)
					if v == float64(min(size[0], size[1])) {
						exact++
					}
				}
			}
			return map[string]float64{"path_mtu_exact": float64(exact)}, nil
		})),
	}
}

// marks is K11: which bits of a mark are seen, each way, over both families.
func marks() bench.Case {
	const mark, bits = 63, 6
	return bench.Case{
		Name: "K11", About: "DSCP 63: the bits that the server reads on the client's packets and the client on the server's, over IPv4 and IPv6; the fewest.",
		Figures: []bench.Figure{{Name: "dscp_bits", Goal: "== 6", Reference: thesis("K11", bits)}},
		Run: atAnyTime(on(both(20*mbit, 10*ms), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			fewest := bits
			for _, at := range []struct{ v6 bool }{{false}, {true}} {
				p := plan{phases: []netcheck.Phase{netcheck.Classes}, duration: netcheck.MinDuration, dscp: []int{mark}, server: s.server.Addr()}
				if at.v6 {
					p.server = s.server.Addr6()
				}
				got, err := terminal.run(ctx, r, s, p)
				if err != nil {
					return nil, err
				}
				for _, class := range got.Classes {
					for _, seen := range [][][2]int64{class.Up, class.Down} {
						r.Logf("  %s: marks and packets %v", p.server, seen)
						fewest = min(fewest, bitsOf(seen, mark))
					}
				}
				if len(got.Classes) == 0 {
					fewest = 0
				}
			}
			return map[string]float64{"dscp_bits": float64(fewest)}, nil
		})),
	}
}

// bitsOf is how many bits of a mark nearly all packets have.
func bitsOf(seen [][2]int64, mark int64) (n int) {
	all, counts := int64(0), [6]int64{}
	for _, one := range seen {
		all += one[1]
		for bit := range counts {
			if one[0]>>bit&1 == mark>>bit&1 {
				counts[bit] += one[1]
			}
		}
	}
	for _, c := range counts {
		if all > 0 && 10*c >= 9*all { // what connects before the mark is set has none
			n++
		}
	}
	return n
}
