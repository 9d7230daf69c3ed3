// Package joinbench is `leeway-lab bench join`: how long it takes from a viewer's hello to the tracker until the first piece
// of a peer is there and verified, leg by leg, over paths that all have one round-trip time.
package joinbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/viewer"
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "join",
	About: "From hello to the first verified piece of a peer, leg by leg; every path has the same round-trip time.",
	Cases: []bench.Case{
		joining("pion", "A headless viewer", 50*time.Millisecond, "", scene{joiner: headlessViewer, holders: viewers}),
		joining("pion", "A headless viewer", 100*time.Millisecond, "<= 6", scene{joiner: headlessViewer, holders: viewers}),
		joining("chromium", "Chromium, by default flags,", 100*time.Millisecond, "<= 8", scene{joiner: chromium(""), holders: viewers, needs: demopage.Missing}),
		joining("chromium-chromium", "Chromium, by default flags,", 100*time.Millisecond, "<= 8",
			scene{joiner: chromium("viewer"), holders: tabs, stun: true, needs: demopage.Missing}),
	},
}

// legs are the moments that are told, in order: each in ms since hello, as this side sees it.
var legs = []string{
	"welcome", "join", "joined", "offer", "answer", "ice", "dtls", "sctp", "open", "peer_hello", "have", "certificate", "request", "data", "piece",
}

// joiner joins what is there, and returns the legs of its way to the first piece.
type joiner func(ctx context.Context, r *bench.Run, h *netlab.Host, s *demosite.Site, rtt time.Duration) (map[string]float64, error)

// holding brings up the peers that are there already, and waits until they have something to give. What it returns ends them.
type holding func(ctx context.Context, hosts []*netlab.Host, s *demosite.Site) (stop func(), err error)

// scene is which peer joins which others.
type scene struct {
	joiner  joiner
	holders holding
	stun    bool // two browsers that hide their addresses do not find each other without
	needs   func(context.Context) error
}

// joining is the case of a viewer that joins two others and a seed.
func joining(name, who string, rtt time.Duration, goal string, s scene) bench.Case {
	whom := "two headless viewers"
	if s.stun {
		whom = "two more of them, beside a STUN server; the first piece of one of those two counts,"
	}
	c := bench.Case{
		Name:    fmt.Sprintf("%s/%dms", name, rtt.Milliseconds()),
		About:   fmt.Sprintf("%s joins %s and a seed; %d ms of round-trip time between any two, the tracker included.", who, whom, rtt.Milliseconds()),
		Needs:   s.needs,
		Figures: []bench.Figure{{Name: "round_trips", Goal: goal}},
		Run:     func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return s.join(ctx, r, rtt) },
	}
	for _, leg := range legs {
		c.Figures = append(c.Figures, bench.Figure{Name: leg, Unit: "ms"})
	}
	c.Figures = append(c.Figures, bench.Figure{Name: "waited", Unit: "ms"})
	return c
}

func headlessViewer(ctx context.Context, r *bench.Run, h *netlab.Host, s *demosite.Site, rtt time.Duration) (map[string]float64, error) {
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

// chromium joins in a browser, and waits for a piece of a peer with the role, or of any.
func chromium(role string) joiner {
	return func(ctx context.Context, r *bench.Run, h *netlab.Host, s *demosite.Site, rtt time.Duration) (map[string]float64, error) {
		page, err := open(ctx, h, s, role)
		if err != nil {
			return nil, err
		}
		defer page.close()
		t, err := page.first(ctx)
		if err != nil {
			return nil, err
		}
		r.Logf("  session %v\n  link %v\n  piece %d, %d bytes", t.Session, t.Link, t.Number, len(t.Piece))
		return t.values(rtt)
	}
}

// viewers are headless.
func viewers(ctx context.Context, hosts []*netlab.Host, s *demosite.Site) (stop func(), err error) {
	var started []*headless.Viewer
	stop = func() {
		for _, v := range started {
			v.Close()
		}
	}
	for i, h := range hosts {
		v, err := start(h, s, nil)
		if err != nil {
			return stop, err
		}
		started = append(started, v)
		if err := filled(ctx, v, i == len(hosts)-1); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// tabs are browsers. Certificates are made for two viewers and more, so the last has to have got something.
func tabs(ctx context.Context, hosts []*netlab.Host, s *demosite.Site) (stop func(), err error) {
	var opened []*tab
	stop = func() {
		for _, t := range opened {
			t.close()
		}
	}
	for _, h := range hosts {
		t, err := open(ctx, h, s, "")
		if err != nil {
			return stop, err
		}
		opened = append(opened, t)
	}
	for _, t := range opened {
		if _, err := t.first(ctx); err != nil {
			return stop, fmt.Errorf("peers to be joined: %w", err)
		}
	}
	sleep.For(ctx, ahead)
	return stop, nil
}

const (
	// ready is when the viewers that are joined have something to give: certified segments.
	readyWait   = time.Minute
	browserWait = 90 * time.Second
	joinWait    = 30 * time.Second
	lookEvery   = 200 * time.Millisecond
	ahead       = 5 * time.Second // of browsers that are joined: they then have more than their first segment
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
func (c scene) join(ctx context.Context, r *bench.Run, rtt time.Duration) (sample bench.Sample, err error) {
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
	s, err := demosite.Open(ctx, place, demosite.Options{STUN: c.stun, Log: r.Log})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	stop, err := c.holders(ctx, hosts[:holders], s)
	defer stop()
	if err != nil {
		return sample, err
	}
	if err := lab.Mark(); err != nil {
		return sample, err
	}
	if sample.Values, err = c.joiner(ctx, r, hosts[holders], s, rtt); err != nil {
		return sample, err
	}
	sample.Void, err = lab.Void()
	return sample, err
}

// start starts a viewer on a host; t, if there is one, sees what happens.
func start(h *netlab.Host, s *demosite.Site, t *timeline) (*headless.Viewer, error) {
	n := headless.Network{Dial: h.DialContext, Enter: h.Do, Listen: h.Addr().String() + ":0"}
	if t != nil {
		n.Through = func(l viewer.Links) viewer.Links { return tracedLinks{l, t} }
		n.Signaled = func(d viewer.Dialer) viewer.Dialer { return tracedDialer{d, t} }
	}
	return headless.Start(viewer.Config{
		URL: s.Manifest(), Tracker: s.Tracker(), Site: demosite.Name, Rendition: "lowest", JoinAfter: -1, Buffer: buffer,
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
		if !sleep.For(ctx, lookEvery) {
			return fmt.Errorf("the viewers to be joined have got nothing from peers: %v", b)
		}
	}
}
