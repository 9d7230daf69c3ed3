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

	"github.com/leeway-video/leeway/internal/app/headless"
	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/bench/demosite"
	"github.com/leeway-video/leeway/internal/netlab"
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
	process *bench.Process
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
	w := &watcher{process: p}
	w.read.Go(func() {
		for {
			var s viewer.Summary
			err := p.Receive(&s)
			w.mu.Lock()
			if w.err = err; err == nil {
				w.said = append(w.said, s)
			}
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return w, nil
}

// stop has the viewer leave.
func (w *watcher) stop() error {
	err := w.process.Stop()
	w.read.Wait()
	return err
}

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
			return fmt.Errorf("%s: %w", w.process.Name(), err)
		case len(said) > 0 && is(said[len(said)-1]):
			return nil
		case len(said) > 0 && said[len(said)-1].Error != "":
			return fmt.Errorf("%s: %s", w.process.Name(), said[len(said)-1].Error)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: not within %s: %s", w.process.Name(), within, what)
		case !bench.Pause(ctx, tellEvery/2):
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

// watch plays one row.
func (s *stage) watch(ctx context.Context, r *bench.Run, i int, w row) (v verdict) {
	v.row = w
	site, hosts := s.named, s.pairs[i]
	if w.plain {
		site = s.plain
	}
	title := fmt.Sprintf("row %d", i+1)
	at := func(h *netlab.Host) netip.Addr { // of the site, as this host reaches it
		if h.Addr().Is6() {
			return s.sites[site].Addr6()
		}
		return site.Addr
	}
	first, err := start(ctx, r, hosts.a, site, at(hosts.a), title, fmt.Sprintf("row-%d-first", i+1))
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, first.stop()) }()
	if v.err = first.until(ctx, "two seconds of film", patience, func(s viewer.Summary) bool { return s.PositionMs > 2000 }); v.err != nil {
		return v
	}
	second, err := start(ctx, r, hosts.b, site, at(hosts.b), title, fmt.Sprintf("row-%d-newcomer", i+1))
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, second.stop()) }()
	length := max(w.watch, watchFor)
	v.err = second.until(ctx, "played so long", length+patience, func(s viewer.Summary) bool { return s.WatchedMs >= length.Milliseconds() })
	mine, _ := second.all()
	theirs, _ := first.all()
	v.got, v.since = judge(mine)
	v.failed = failures(mine) + failures(theirs)
	for _, said := range [][]viewer.Summary{mine, theirs} {
		if len(said) > 0 {
			v.stalls += said[len(said)-1].Stats.Stalls
		}
	}
	return v
}
