// Package joinbench is `leeway bench join`: how long it takes from a viewer's hello to the tracker until the first piece
// of a peer is there and verified, leg by leg, over paths that all have one round-trip time.
package joinbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/app/headless"
	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
	"github.com/leeway-video/leeway/internal/viewer"
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "join",
	About: "From hello to the first verified piece of a peer, leg by leg; every path has the same round-trip time.",
	Cases: []bench.Case{
		joining("pion", "A headless viewer", 50*time.Millisecond, "", headlessViewer),
		joining("pion", "A headless viewer", 100*time.Millisecond, "<= 6", headlessViewer),
		joining("chromium", "Chromium, by default flags,", 100*time.Millisecond, "<= 8", chromium),
	},
}

// legs are the moments that are told, in order: each in ms since hello, as this side sees it.
var legs = []string{
	"welcome", "join", "joined", "offer", "answer", "ice", "dtls", "sctp", "open", "peer_hello", "have", "certificate", "request", "data", "piece",
}

// joiner joins what is there, and returns the legs of its way to the first piece.
type joiner func(ctx context.Context, r *bench.Run, h *netlab.Host, s *servers, rtt time.Duration) (map[string]float64, error)

// joining is the case of somebody who joins two headless viewers and a seed.
func joining(name, who string, rtt time.Duration, goal string, j joiner) bench.Case {
	c := bench.Case{
		Name:    fmt.Sprintf("%s/%dms", name, rtt.Milliseconds()),
		About:   fmt.Sprintf("%s joins two headless viewers and a seed; %d ms of round-trip time between any two, the tracker included.", who, rtt.Milliseconds()),
		Figures: []bench.Figure{{Name: "round_trips", Goal: goal}},
		Run:     func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return join(ctx, r, rtt, j) },
	}
	for _, leg := range legs {
		c.Figures = append(c.Figures, bench.Figure{Name: leg, Unit: "ms"})
	}
	c.Figures = append(c.Figures, bench.Figure{Name: "waited", Unit: "ms"})
	return c
}

func headlessViewer(ctx context.Context, r *bench.Run, h *netlab.Host, s *servers, rtt time.Duration) (map[string]float64, error) {
	t := newTimeline(playlists * rtt)
	v, err := start(h, s, t)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	values, err := t.result(ctx, rtt, joinWait)
	r.Logf("%s", t)
	return values, err
}

func chromium(ctx context.Context, r *bench.Run, h *netlab.Host, s *servers, rtt time.Duration) (map[string]float64, error) {
	t, err := browse(ctx, h, s.at(publicPort))
	if err != nil {
		return nil, err
	}
	r.Logf("  session %v\n  link %v", t.Session, t.Link)
	return t.values(rtt)
}

const (
	// ready is when the viewers that are joined have something to give: certified segments.
	readyWait   = time.Minute
	browserWait = 90 * time.Second
	joinWait    = 30 * time.Second
	lookEvery   = 200 * time.Millisecond
	holders     = 2
	holdBytes   = 4 << 20
	lineRate    = 100_000_000
	lineQueue   = 1 << 20
	// playlists is how many round trips the player has for its playlists, so that the viewer knows what it wants: the
	// library too calls the tracker when the player has asked for its first segment. buffer is how much it wants.
	playlists = 6
	buffer    = 4 * time.Minute
)

// join measures once.
func join(ctx context.Context, r *bench.Run, rtt time.Duration, j joiner) (sample bench.Sample, err error) {
	lab, err := netlab.New(netlab.Options{Seed: uint64(r.Number) + 1})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	core := lab.Router("core")
	line := netlab.Both(netlab.Link{Rate: lineRate, Delay: rtt / 4, Queue: lineQueue})
	place, _ := lab.Attach("servers", core, line)
	hosts := make([]*netlab.Host, holders+1)
	for i := range hosts {
		hosts[i], _ = lab.Attach(fmt.Sprintf("viewer-%d", i+1), core, line)
	}
	if err := lab.Start(); err != nil {
		return sample, err
	}
	s, err := serve(ctx, place)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, h := range hosts[:holders] {
		v, err := start(h, s, nil)
		if err != nil {
			return sample, err
		}
		defer v.Close()
		if err := filled(ctx, v, h == hosts[holders-1]); err != nil {
			return sample, err
		}
	}
	if err := lab.Mark(); err != nil {
		return sample, err
	}
	if sample.Values, err = j(ctx, r, hosts[holders], s, rtt); err != nil {
		return sample, err
	}
	report, err := lab.Report()
	if err != nil {
		return sample, err
	}
	if err := report.Certify(); err != nil {
		sample.Void = err.Error()
	}
	return sample, nil
}

// start starts a viewer on a host; t, if there is one, sees what happens.
func start(h *netlab.Host, s *servers, t *timeline) (*headless.Viewer, error) {
	n := headless.Network{Dial: h.DialContext, Enter: h.Do, Listen: h.Addr().String() + ":0"}
	if t != nil {
		n.Through = func(l viewer.Links) viewer.Links { return tracedLinks{l, t} }
		n.Signaled = func(d viewer.Dialer) viewer.Dialer { return tracedDialer{d, t} }
	}
	return headless.Start(viewer.Config{
		URL: s.manifest(), Tracker: s.tracker(), Site: siteName, Rendition: "lowest", JoinAfter: -1, Buffer: buffer,
	}, n)
}

// filled waits until a viewer has something to give: certified pieces, of a seed or another viewer.
func filled(ctx context.Context, v *headless.Viewer, last bool) error {
	if !last {
		return nil // certificates are made for two viewers and more
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		b := v.Summary().Stats.Bytes
		if b["seed"]+b["peer"] >= holdBytes {
			return nil
		}
		if !bench.Pause(ctx, lookEvery) {
			return fmt.Errorf("the viewers to be joined have got nothing from peers: %v", b)
		}
	}
}
