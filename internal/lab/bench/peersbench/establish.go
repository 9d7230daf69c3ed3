package peersbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// way is one of the paper's paths: the client's access, and that of the end that serves.
type way struct {
	name     string
	from, to access
	about    string
}

var ways = []way{
	{"21m-wlan", hspa, wlan, "21 Mbit/s HSPA+ to WLAN"},
	{"256k-wlan", slow3G, wlan, "256 kbit/s 3G to WLAN"},
	{"21m-256k", hspa, slow3G, "21 Mbit/s HSPA+ to 256 kbit/s 3G"},
	{"wlan-21m", wlan, hspa, "WLAN to 21 Mbit/s HSPA+"},
	{"wlan-256k", wlan, slow3G, "WLAN to 256 kbit/s 3G"},
	{"256k-21m", slow3G, hspa, "256 kbit/s 3G to 21 Mbit/s HSPA+"},
	{"phone-phone", wlan, wlan, "two telephones in the WLAN"},
	{"pc-pc", pc, pc, "two PCs"},
	{"phone-pc", wlan, pc, "a telephone in the WLAN to a PC"},
}

// tripsCount is the shortest round trip where round trips are judged: on shorter ways the time of the processors is what is seen.
const tripsCount = 50 * time.Millisecond

// establishing is the case of one pair on one way.
func establishing(k kinds, w way) bench.Case {
	rtt := trip(w.from, w.to)
	goal := ""
	if k.ours() && rtt >= tripsCount {
		if goal = "<= 4"; k.inBrowser() {
			goal = "<= 6"
		}
	}
	return bench.Case{
		Name:  fmt.Sprintf("H1/%s-%s", w.name, k.name),
		About: fmt.Sprintf("%s, %s, %d ms round trip; signals by a server 20 ms away from the middle.", k.about, w.about, rtt.Milliseconds()),
		Needs: k.needs(), Extra: k.inBrowser(),
		Figures: []bench.Figure{
			{Name: "round_trips", Goal: goal}, {Name: "ms", Unit: "ms", Reference: papers["H1"].beside(w.name, k.besides())},
			{Name: "ms_sd", Unit: "ms"}, {Name: "after_signaling", Unit: "ms"}, {Name: "links"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			e, err := establish(ctx, r, k, w, iterations(establishIterations))
			if err != nil {
				return bench.Sample{}, err
			}
			ms, deviation := spread(e.times)
			after, _ := spread(e.after)
			r.Logf("  %s: %.0f ± %.0f ms; %.0f ms after signaling", w.name, ms, deviation, after)
			return bench.Sample{Void: e.void, Values: map[string]float64{
				"ms": ms, "ms_sd": deviation, "after_signaling": after, "round_trips": after / float64(rtt.Milliseconds()), "links": float64(len(e.times)),
			}}, nil
		},
	}
}

// established is what was seen of links that opened one after the other.
type established struct {
	times, after []float64 // ms, by link
	ledger       ledger    // of all of them together
	void         string
}

// warmLinks are established before those that count: the first of a process finds nothing in its caches, and a browser's page nothing
// compiled. The paper's loop has them in its means.
const warmLinks = 1

// establish opens links one after the other, and ends each before the next.
func establish(ctx context.Context, r *bench.Run, k kinds, w way, n int) (*established, error) {
	s, err := build(uint64(r.Number)+1, abroad, w.from, w.to)
	if err != nil {
		return nil, err
	}
	defer s.lab.Close()
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	places := s.places(ctx)
	ends, err := openSession(ctx, r, k, k.plan(), listener, places[0], places[1])
	if err != nil {
		return nil, err
	}
	defer ends.close()
	e := &established{}
	for i := range warmLinks + n {
		if i == warmLinks {
			if err := s.lab.Mark(); err != nil {
				return nil, err
			}
		}
		before, err := s.ledger()
		if err != nil {
			return nil, err
		}
		seen, err := ends.link(ctx, i, 1, func(int) int { return 1 })
		if err != nil {
			return nil, fmt.Errorf("link %d: %w", i, err)
		}
		after, err := s.ledger()
		if err != nil {
			return nil, err
		}
		if i >= warmLinks {
			e.times, e.after = append(e.times, seen[0].ms()), append(e.after, seen[0].after())
			e.ledger = e.ledger.plus(after.less(before))
		}
		if err := ends.drop(i, 1); err != nil {
			return nil, err
		}
	}
	e.void, err = s.lab.Void()
	return e, err
}
