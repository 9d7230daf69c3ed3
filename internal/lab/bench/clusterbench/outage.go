package clusterbench

import (
	"context"
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
)

// losing is the case of all NATS servers killed, and started anew after a time.
func losing(name string, s scale, away time.Duration, extra bool) bench.Case {
	return bench.Case{
		Name: name, About: s.about("kill -9 of all three NATS servers, which are back after " + away.String()), Extra: extra,
		Figures: everyRun(
			bench.Figure{Name: "link_ends"}, bench.Figure{Name: "link_ends_lost", Goal: "<= 0"},
			bench.Figure{Name: "sessions_lost_their_socket", Goal: "<= 0"}, bench.Figure{Name: "sessions_absent", Goal: "<= 0"},
			bench.Figure{Name: "local_introductions_right_seconds", Unit: "s", Goal: "<= 15"}, bench.Figure{Name: "local_swarms_wrong", Goal: "<= 0"},
			bench.Figure{Name: "introductions_right_seconds", Unit: "s", Goal: "<= 15"}, bench.Figure{Name: "swarms_wrong", Goal: "<= 0"},
		),
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			return staged(ctx, r, s, func(st *stage) (bench.Sample, error) { return st.lose(ctx, r, away) })
		},
	}
}

// settles is how long a swarm whose home moves may be wrong: a short outage may end just when trackers take each other for dead.
const settles = 5 * time.Second

// lose has the trackers go without NATS: newcomers are introduced to those of their own tracker, soon and still at the end, and
// to all soon after the servers are back.
func (st *stage) lose(ctx context.Context, r *bench.Run, away time.Duration) (sample bench.Sample, err error) {
	open := st.links.open()
	r.Logf("  %d sessions joined; %d ends of links are open", st.scale.sessions, len(open))
	st.audience.Mark()
	at := time.Now()
	for _, s := range st.servers {
		err = errors.Join(err, s.kill())
	}
	if err != nil {
		return sample, err
	}
	local := prober{audience: st.audience, scale: st.scale, trackers: all, apart: true}
	soon, err := local.until(ctx, at.Add(2*rightWithin))
	if err != nil {
		return sample, err
	}
	if !sleep.For(ctx, time.Until(at.Add(away))) {
		return sample, ctx.Err()
	}
	late, err := local.until(ctx, time.Now().Add(settles))
	if err != nil {
		return sample, err
	}
	if err := st.startServers(r); err != nil {
		return sample, err
	}
	back := time.Now()
	after, err := prober{audience: st.audience, scale: st.scale, trackers: all}.until(ctx, back.Add(2*rightWithin))
	if err != nil {
		return sample, err
	}
	seen := st.audience.Returns()
	if seen.Failed != nil {
		return sample, seen.Failed
	}
	sample.Values = map[string]float64{
		"link_ends": float64(len(open)), "link_ends_lost": float64(st.links.lost(open)),
		"sessions_lost_their_socket": float64(seen.Lost), "sessions_absent": float64(seen.Absent),
		"local_introductions_right_seconds": soon.at.Sub(at).Seconds(), "local_swarms_wrong": float64(soon.wrong + late.wrong),
		"introductions_right_seconds": after.at.Sub(back).Seconds(), "swarms_wrong": float64(after.wrong),
	}
	r.Logf("  without NATS for %.1f s: introductions right among each tracker's own after %.1f s, %d swarms wrong %s%s; right again %.1f s after it was back, %d wrong %s; %d sockets lost",
		back.Sub(at).Seconds(), soon.at.Sub(at).Seconds(), soon.wrong+late.wrong, soon.example, late.example, after.at.Sub(back).Seconds(), after.wrong, after.example, seen.Lost)
	return sample, nil
}
