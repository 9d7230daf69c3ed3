package transportbench

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// TestMain makes the test binary an end of a flow where a bench asks for one.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

// TestEveryKindIsSeenBehindTheBottleneck plays a second and a half of each kind of flow on a line of its own.
func TestEveryKindIsSeenBehindTheBottleneck(t *testing.T) {
	if err := netlab.Available(); err != nil {
		t.Skip(err)
	}
	line := netlab.Link{Rate: 4_000_000, Delay: 5 * time.Millisecond, Queue: 30_000}
	bytes := []burst{{at: 200 * time.Millisecond, bytes: 50_000}}
	for _, f := range []flow{
		{kind: ledbatLane, peers: 2, bursts: bytes}, {kind: rfcLane}, {kind: asked, senders: 3}, {kind: foreground}, {kind: plain}, {kind: cubic}, {kind: reno, reverse: true},
		{kind: idle, bursts: bytes},
	} {
		t.Run(string(f.kind), func(t *testing.T) {
			t.Parallel()
			sc := scene{name: string(f.kind), line: line, length: 1500 * time.Millisecond, flows: []flow{f}}
			rec, _, err := sc.play(t.Context(), &bench.Run{Log: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if rate := rec.rate(0, sc.length, 0); rate < 20_000 {
				t.Errorf("%.0f bit/s behind the bottleneck", rate)
			}
			if n := len(rec.took(0)); n != len(f.bursts) {
				t.Errorf("%d foreground segments of %d arrived", n, len(f.bursts))
			}
			if base := rec.base(); base < 10*time.Millisecond || base > time.Second {
				t.Errorf("the witness's shortest round trip is %s", base)
			}
			if used := rec.cpu[0][len(rec.cpu[0])-1].seconds - rec.cpu[0][0].seconds; used < 0 || used > 60 || f.kind == foreground && used == 0 {
				t.Errorf("the flow's processes used %v s", used)
			}
			if f.kind == ledbatLane && rec.goodput(0, 0, sc.length) <= 0 {
				t.Errorf("nothing was acknowledged: %+v", rec.told(0, 0, sc.length))
			}
		})
	}
}

// sample is a record of two flows on 8 Mbit/s: the first has 3/4 of it and leaves after 2 s, the second has 1/4.
func sample() *record {
	r := newRecord(scene{line: netlab.Link{Rate: 8_000_000}, length: 4 * time.Second, flows: []flow{{kind: ledbatLane, to: 2 * time.Second}, {kind: cubic}}})
	for i := range 41 {
		at := time.Duration(i) * step
		r.times = append(r.times, at)
		r.sent[0] = append(r.sent[0], uint64(min(i, 20))*75_000)
		r.sent[1] = append(r.sent[1], uint64(i)*25_000)
		r.packets = append(r.packets, uint64(i)*100)
		r.drops = append(r.drops, uint64(i))
		r.echo(echo{at: at, rtt: 20*time.Millisecond + time.Duration(i)*time.Millisecond})
	}
	return r
}

func TestMeasures(t *testing.T) {
	r := sample()
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*0.99-1e-9 || got > want*1.01+1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("rate", r.rate(50*time.Millisecond, time.Second, 0), 6e6)
	near("used together", r.used(0, 2*time.Second, 0, 1), 1)
	near("used after", r.used(3*time.Second, 4*time.Second, 0, 1), 0.25)
	near("jain", r.jain(0, time.Second, 0, 1), 0.8)
	near("dropped", r.dropped(0, time.Second), 0.01)
	near("added p95", r.addedP(0.95, 0, 4*time.Second), 38)
	near("added p50 of the end", r.addedP(0.5, 3*time.Second, 4*time.Second), 35)
	gone := func(share float64) bool { return share < 0.1 }
	near("until gone", r.until(time.Second, 3*time.Second, 2*step, 0, gone).Seconds(), 1.2)
	near("never", r.until(0, time.Second, step, 1, gone).Seconds(), 1)
}

func TestWhatASenderSaysIsOfTheScenesTime(t *testing.T) {
	r := newRecord(scene{length: 3 * time.Second, flows: []flow{{from: time.Second}}})
	for i := range 10 {
		r.flow(0).state(state{AtMS: int64(i) * 100, Acked: int64(i) * 1000, Target: float64(i)})
	}
	if told := r.told(0, 1500*time.Millisecond, 1800*time.Millisecond); len(told) != 3 || told[0].AtMS != 500 {
		t.Errorf("%+v", told)
	}
	if got := r.goodput(0, 0, 3*time.Second); got < 0.0799 || got > 0.0801 {
		t.Errorf("goodput %v Mbit/s", got)
	}
	if got := r.target(0, 0, 3*time.Second); got != 5 {
		t.Errorf("median target %v", got)
	}
}

func TestThePlotIsWellFormed(t *testing.T) {
	svg := sample().plot("a < b")
	d := xml.NewDecoder(strings.NewReader(svg))
	lines := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if lines != 3 {
		t.Errorf("%d lines drawn, want the round trips and two flows", lines)
	}
}

// TestCasesHaveTheFiguresThatTheyPromise holds the names that others read, and the goals that are not negotiable.
func TestCasesHaveTheFiguresThatTheyPromise(t *testing.T) {
	want := map[string][]string{
		"1": {"link_utilization_alone", "added_delay_p95_vs_target", "tcp_kept_ratio"}, "2": {"tcp_kept_ratio", "tcp_kept_ratio_reno"},
		"4": {"yield_rtts", "recover_seconds"}, "5-two": {"jain_index"}, "6": {"latecomer_share"}, "7": {"base_drift_ms"},
		"8": {"goodput_mbps", "retransmitted_ratio"}, "9-one": {"goodput_mbps"}, "9-five": {"goodput_mbps"},
		"10": {"background_share_beside_tcp"}, "12-20": {"tcp_kept_ratio", "foreground_slowdown"}, "13-20": {"tcp_kept_ratio"},
	}
	seen := map[string]bool{}
	for _, c := range Bench.Cases {
		if seen[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		seen[c.Name] = true
		goals := map[string]string{}
		for _, f := range c.Figures {
			goals[f.Name] = f.Goal
		}
		for _, name := range want[c.Name] {
			if goals[name] == "" {
				t.Errorf("case %s: %s is missing, or its goal", c.Name, name)
			}
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("cases are missing: %v", want)
	}
}
