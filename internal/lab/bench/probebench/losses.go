package probebench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// waste is how a line loses packets.
type waste struct {
	name        string
	loss, burst float64
}

var wastes = []waste{{"0.1", 0.001, 1}, {"1", 0.01, 1}, {"5", 0.05, 1}, {"5-bursts", 0.05, 3}}

const (
	lineRate  = 20 * mbit
	lineTrip  = 20 * ms
	messages  = 4000
	interval  = 2500 // µs
	lineQueue = 1 << 20
)

// losing is K4: loss by messages of a data channel, beside the line's own list of the packets that it has lost.
func losing(w waste) bench.Case {
	link := netlab.Link{Rate: lineRate, Delay: lineTrip / 2, Queue: lineQueue, Loss: w.loss, LossBurst: w.burst}
	return bench.Case{
		Name:  "K4/loss-" + w.name,
		About: fmt.Sprintf("%d messages each way at once, %g %% lost (%g in a row in the mean), beside the line's own list of the packets that it lost.", messages, 100*w.loss, w.burst),
		Figures: []bench.Figure{
			{Name: "loss_error_points", Unit: "points", Goal: "<= 0.1"},
			{Name: "loss_period_exact", Goal: "== 1"}, {Name: "loss_distance_exact", Goal: "== 1"}, {Name: "lost", Unit: "messages"},
		},
		Run: on(netlab.Both(link), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			seen, err := s.exchange(ctx, r, link)
			if err != nil {
				return nil, err
			}
			v := map[string]float64{"loss_error_points": 0, "loss_period_exact": 1, "loss_distance_exact": 1, "lost": 0}
			for _, one := range seen {
				true := wasted(one.ledger)
				r.Logf("  %s: %d lost of %d, the line has lost %d", one.direction, one.Pattern.Lost, one.Pattern.Sent, len(true.distances))
				loss := float64(one.Pattern.Lost) / float64(one.Pattern.Sent)
				v["loss_error_points"] = max(v["loss_error_points"], 100*math.Abs(loss-float64(len(true.distances))/float64(len(one.ledger))))
				v["lost"] += float64(one.Pattern.Lost)
				if !slices.Equal(one.Pattern.Periods, true.periods) {
					v["loss_period_exact"] = 0
				}
				if !slices.Equal(one.Pattern.Distances, true.distances) {
					v["loss_distance_exact"] = 0
				}
			}
			return v, nil
		}),
	}
}

// reordering is a path that only reorders: nothing of it is loss.
func reordering() bench.Case {
	link := netlab.Link{Rate: lineRate, Delay: lineTrip / 2, Queue: lineQueue, Jitter: 8 * ms, Reorder: true}
	return bench.Case{
		Name: "K4/reordered", About: "A path that loses nothing and delivers messages up to 8 ms later than others, on 20 ms: messages that count as lost, and those that count as reordered.",
		Figures: []bench.Figure{{Name: "lost", Unit: "messages", Goal: "== 0"}, {Name: "reordered", Unit: "messages", Goal: "> 0"}, {Name: "reorder_extent", Unit: "messages"}},
		Run: on(netlab.Both(link), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			seen, err := s.exchange(ctx, r, link)
			if err != nil {
				return nil, err
			}
			v := map[string]float64{"lost": 0, "reordered": 0, "reorder_extent": 0}
			for _, one := range seen {
				v["lost"] += float64(one.Pattern.Lost)
				v["reordered"] += float64(len(one.Pattern.Reordered))
				for _, late := range one.Pattern.Reordered {
					v["reorder_extent"] = max(v["reorder_extent"], float64(late.Extent))
				}
			}
			return v, nil
		}),
	}
}

// account is what was seen of the messages of a direction, and what the line knows of them.
type account struct {
	direction netstat.Direction
	netstat.Pattern
	ledger []bool // lost or not, by message
}

// pattern is RFC 3357's of a line's list.
type pattern struct {
	distances []int64
	periods   []netstat.Period
}

// wasted computes the pattern from the list itself.
func wasted(lost []bool) (p pattern) {
	last := -1
	for i, gone := range lost {
		switch {
		case !gone:
			continue
		case last < 0:
			p.distances = append(p.distances, 0)
		default:
			p.distances = append(p.distances, int64(i-last))
		}
		if last >= 0 && last == i-1 {
			p.periods[len(p.periods)-1].Length++
		} else {
			p.periods = append(p.periods, netstat.Period{First: int64(i), Length: 1})
		}
		last = i
	}
	return p
}

// exchange has messages cross a line both ways at once. Each is a packet, in their order: the first packets of their size after the line
// began its list are the messages.
func (s *stage) exchange(ctx context.Context, r *bench.Run, link netlab.Link) (_ []account, err error) {
	child, err := r.Start(s.command(ctx), benchName, roleLine, "line")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, child.Stop()) }()
	if _, err := ask(child, lineSetup{URL: s.url(s.server.Addr()), Addr: s.client.Addr()}); err != nil {
		return nil, err
	}
	link.Ledger = netcheck.MessageSize
	if err := errors.Join(s.set(netlab.Both(link)), s.lab.Mark()); err != nil { // from here on packets of that size are messages
		return nil, err
	}
	said, err := ask(child, lineSetup{})
	if err != nil {
		return nil, err
	}
	accounts := []account{{direction: netstat.Up, Pattern: said.Up}, {direction: netstat.Down, Pattern: said.Down}}
	for i, d := range []*netlab.Direction{s.line.Up, s.line.Down} {
		lost, err := d.Ledger()
		if err != nil {
			return nil, err
		}
		if len(lost) < messages {
			return nil, fmt.Errorf("%s: %d packets for %d messages", d.Name, len(lost), messages)
		}
		accounts[i].ledger = lost[:messages]
	}
	return accounts, nil
}

// ask tells the client's end something and hears what it says then.
func ask(child *bench.Process, setup lineSetup) (said lineWord, err error) {
	if err := errors.Join(child.Send(setup), child.Receive(&said)); err != nil {
		return said, err
	}
	if said.Error != "" {
		return said, errors.New(said.Error)
	}
	return said, nil
}
