package natbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/viewer"
)

// roleViewer is the child process of one viewer, in the network of its host: it plays, and says again and again how things
// stand, until its input is closed.
const roleViewer = "viewer"

// tellEvery is how often.
const tellEvery = 100 * time.Millisecond

// order is what a child is told.
type order struct{ Manifest, Origin, Tracker, Title string }

func watchRole(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var o order
	if err := in.Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	v, err := headless.Start(viewer.Config{
		URL: o.Manifest, Origin: o.Origin, Tracker: o.Tracker, Title: o.Title, Client: "leeway-bench", Rendition: "lowest",
	}, headless.Network{})
	if err != nil {
		return err
	}
	defer v.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		var nothing struct{}
		_ = in.Decode(&nothing) // until the input is closed
	}()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := out.Write(v.Summary()); err != nil {
				return err
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watcher is a running viewer, and all that it has said.
type watcher struct {
	name    string
	process *bench.Process // nil: a browser
	leave   func() error   // has it leave
	moved   func()         // what the machine does for a browser whose network has changed
	read    sync.WaitGroup

	mu   sync.Mutex
	said []viewer.Summary // guarded by mu
	err  error            // guarded by mu: why no more comes
}

// start has a viewer play on a host.
func start(ctx context.Context, r *bench.Run, host *netlab.Host, site *demosite.Site, at netip.Addr, title, label string) (*watcher, error) {
	inside := func(name string, arg ...string) (*exec.Cmd, func() error) {
		c := host.Command(ctx, name, arg...)
		return c.Cmd, c.Start
	}
	p, err := r.Start(inside, benchName, roleViewer, label)
	if err != nil {
		return nil, err
	}
	manifest := site.ManifestAt(at)
	origin, _, _ := strings.Cut(strings.TrimPrefix(manifest, "http://"), "/")
	if err := p.Send(order{Manifest: manifest, Origin: "http://" + origin, Tracker: "ws://" + origin + "/", Title: title}); err != nil {
		return nil, fmt.Errorf("%w: %w", err, p.Stop())
	}
	w := &watcher{name: p.Name(), process: p}
	w.leave = func() error {
		err := p.Stop()
		w.read.Wait()
		return err
	}
	w.read.Go(func() {
		for {
			var s viewer.Summary
			if err := p.Receive(&s); err != nil {
				w.end(err)
				return
			}
			w.hear(s)
		}
	})
	return w, nil
}

// hear keeps what it says.
func (w *watcher) hear(s viewer.Summary) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, s)
}

// end keeps why no more comes.
func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// stop has the viewer leave.
func (w *watcher) stop() error { return w.leave() }

// all is what it has said so far.
func (w *watcher) all() ([]viewer.Summary, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said), w.err
}

// until waits for what the latest word says.
func (w *watcher) until(ctx context.Context, what string, within time.Duration, is func(viewer.Summary) bool) error {
	for deadline := time.Now().Add(within); ; {
		said, err := w.all()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", w.name, err)
		case len(said) > 0 && is(said[len(said)-1]):
			return nil
		case len(said) > 0 && said[len(said)-1].Error != "":
			return fmt.Errorf("%s: %s", w.name, said[len(said)-1].Error)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: not within %s: %s", w.name, within, what)
		case !sleep.For(ctx, tellEvery/2):
			return ctx.Err()
		}
	}
}

// wayOf is how a viewer is served.
func wayOf(s viewer.Summary) way {
	switch {
	case s.Linked["viewer/direct"] > 0:
		return direct
	case s.Linked["viewer/relay"] > 0:
		return byRelay
	case s.Linked["seed/direct"]+s.Linked["seed/relay"] > 0:
		return seedOnly
	}
	return originOnly
}

// reasonOf is why it is not served better.
func reasonOf(s viewer.Summary) string {
	if s.Off != "" {
		return s.Off
	}
	return strings.Join(slices.Sorted(maps.Keys(s.Stats.LinkFailures)), ", ")
}

// judge says what a newcomer's words amount to: the way at their end, and from when on it was that.
func judge(said []viewer.Summary) (got result, since time.Duration) {
	if len(said) == 0 {
		return got, 0
	}
	last := said[len(said)-1]
	got = result{wayOf(last), reasonOf(last)}
	for i := len(said) - 1; i >= 0 && wayOf(said[i]) == got.way; i-- {
		since = time.Duration(said[i].WatchedMs) * time.Millisecond
	}
	return got, since
}

func failures(said []viewer.Summary) (n int64) {
	if len(said) > 0 {
		for _, k := range said[len(said)-1].Stats.LinkFailures {
			n += k
		}
	}
	return n
}

// last is the latest that it has said.
func (w *watcher) last() (s viewer.Summary) {
	if said, _ := w.all(); len(said) > 0 {
		s = said[len(said)-1]
	}
	return s
}

// enter has one of a row's viewers play.
func (s *stage) enter(ctx context.Context, r *bench.Run, i int, w row, newcomer bool) (*watcher, error) {
	site, host, who, browser := s.siteOf(w), s.pairs[i].a, "first", w.by.first()
	if newcomer {
		host, who, browser = s.pairs[i].b, "newcomer", w.by.newcomer()
	}
	at := site.Addr // of the site, as this host reaches it
	if host.Addr().Is6() {
		at = s.sites[site].Addr6()
	}
	title, label := fmt.Sprintf("row %d", i+1), fmt.Sprintf("row-%d-%s", i+1, who)
	if browser {
		return browse(ctx, host, w.guarded, site, at, title, label)
	}
	return start(ctx, r, host, site, at, title, label)
}

// watch plays one row.
func (s *stage) watch(ctx context.Context, r *bench.Run, i int, w row) (v verdict) {
	v.row = w
	first, err := s.enter(ctx, r, i, w, false)
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, first.stop()) }()
	if v.err = first.until(ctx, "two seconds of film", w.patience(), func(s viewer.Summary) bool { return s.PositionMs > 2000 }); v.err != nil {
		return v
	}
	second, err := s.enter(ctx, r, i, w, true)
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, second.stop()) }()
	length := w.length()
	v.err = second.until(ctx, "played so long", length+w.patience(), func(s viewer.Summary) bool { return s.WatchedMs >= length.Milliseconds() })
	mine, _ := second.all()
	v.got, v.since = judge(mine)
	if v.err == nil && w.forgets {
		v.lost, v.err = s.forget(ctx, i, w.after(), first, second)
		if w.want == relays {
			v.lost = 0 // it may end, and has to be there again
		}
		mine, _ = second.all()
		v.got, _ = judge(mine)
	}
	theirs, _ := first.all()
	v.failed = failures(mine) + failures(theirs)
	v.stalls = first.last().Stats.Stalls + second.last().Stats.Stalls
	v.newcomer, v.course = second.last(), " first"+course(theirs)+"; newcomer"+course(mine)
	return v
}

// forget has the newcomer's NAT lose its mappings in mid-play, and counts the links that end of it within a time.
func (s *stage) forget(ctx context.Context, i int, within time.Duration, first, newcomer *watcher) (lost int, err error) {
	gateways := s.pairs[i].gateways
	before := newcomer.last()
	closed := closes(before) + closes(first.last())
	if err := gateways[len(gateways)-1].Forget(); err != nil {
		return 0, err
	}
	until := before.WatchedMs + within.Milliseconds()
	err = newcomer.until(ctx, "played on", within+patience, func(s viewer.Summary) bool { return s.WatchedMs >= until })
	after := newcomer.last()
	switch {
	case err != nil:
	case after.Session != before.Session:
		err = errors.New("its session was lost with the mappings")
	case others(after) == others(before):
		err = errors.New("only the origin served it when the mappings were gone")
	}
	return closes(after) + closes(first.last()) - closed, err
}

// course is how the links of a viewer came and went, by its clock.
func course(said []viewer.Summary) string {
	var b strings.Builder
	was := ""
	for _, s := range said {
		now := fmt.Sprintf("%v opened %d closed %v failed %v %s %s", s.Linked, s.LinksOpened, s.LinksClosed, s.Stats.LinkFailures, s.Off, s.LastError)
		if now != was {
			fmt.Fprintf(&b, " %.1f s %s,", float64(s.WatchedMs)/1000, strings.ReplaceAll(now, "map", ""))
		}
		was = now
	}
	return b.String()
}

// closes is how many links of a viewer have ended.
func closes(s viewer.Summary) (n int) {
	for _, k := range s.LinksClosed {
		n += k
	}
	return n
}
