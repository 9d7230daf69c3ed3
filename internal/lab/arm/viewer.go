package arm

import (
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/viewer"
)

// watcher is a session that is a viewer.
type watcher struct {
	v     *headless.Viewer
	began time.Time

	mu      sync.Mutex
	last    armwire.ViewerReport // guarded by mu: as it stood when it was closed
	started bool                 // guarded by mu: its startup delay is counted
	closed  bool                 // guarded by mu
	arm     *Arm
}

// watchTitle starts the viewer of a session.
func (s *session) watchTitle(b armwire.ViewerBody) *armwire.Error {
	at, err := url.Parse(b.Manifest)
	if err != nil {
		return armwire.Fail(armwire.BadField, "%v", err)
	}
	cfg := viewer.Config{
		URL: b.Manifest, Tracker: b.Tracker, Site: b.Site, Client: "leeway-arm/1", Rendition: "auto",
		Leave: time.Duration(b.Leave) * time.Millisecond,
	}
	if b.Token != "" {
		cfg.Token = func() string { return b.Token }
	}
	if b.Site == "" {
		cfg.Origin = at.Scheme + "://" + at.Host
	}
	v, err := headless.Start(cfg, headless.Network{Listen: netip.AddrPortFrom(s.arm.cfg.Listen, 0).String(), Log: s.arm.cfg.Log})
	if err != nil {
		return armwire.Fail(armwire.Failed, "%v", err)
	}
	s.viewer, s.phase = &watcher{v: v, began: time.Now(), arm: s.arm}, up
	s.arm.counts.openedAll.Add(1)
	return nil
}

// report is how the viewer stands, or stood at the end.
func (w *watcher) report() armwire.ViewerReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.look()
	}
	return w.last
}

// look is under mu.
func (w *watcher) look() {
	s := w.v.Summary()
	w.last = armwire.ViewerReport{
		Ended: s.Ended, Error: s.Error, Startup: s.Stats.StartupMs, Played: s.Stats.PlayedMs, Stalled: s.Stats.StallMs,
		Origin: s.Stats.Bytes["origin"],
	}
	for key, n := range s.Stats.Bytes {
		if key != "origin" {
			w.last.Peers += n
		}
	}
	if !w.started && w.last.Startup > 0 {
		w.started = true
		w.arm.counts.note(w.arm.counts.start, time.Duration(w.last.Startup)*time.Millisecond)
	}
}

// stop has the viewer leave, and waits for it. One that waits for its first picture yet has had a startup of that long at least: without it
// the delays would be of those alone that had a picture.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.look()
	if !w.started && w.last.Ended == "" && w.last.Played == 0 {
		w.started = true
		w.arm.counts.note(w.arm.counts.start, time.Since(w.began))
	}
	w.closed = true
	w.v.Close()
	if w.last.Ended == "" {
		w.last.Ended = "left"
	}
}
