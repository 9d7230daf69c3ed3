package transportbench

import (
	"context"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// pages puts ends of our links into browsers: it gets the flows of a scene that are ours, in their order. Yardsticks stay
// where they are.
type pages func(i int, f *flow)

// The ends that are in a browser.
var (
	// bothKinds has the first host in a tab that is hidden, which sends to a process of ours, and the second in one that is
	// seen, which sends to another browser.
	bothKinds pages = func(i int, f *flow) {
		if f.near = hiddenPage; i > 0 {
			f.near, f.far = visiblePage, visiblePage
		}
	}
	senders pages = func(_ int, f *flow) { f.near = hiddenPage }
	viewers pages = func(_ int, f *flow) { f.far = visiblePage }
)

func (p pages) in(sc *scene) {
	if p == nil {
		return
	}
	ours := 0
	for i := range sc.flows {
		switch f := &sc.flows[i]; f.kind {
		case ledbatLane, asked, idle:
			p(ours, f)
			ours++
		}
	}
}

func (p pages) needs() func(context.Context) error {
	if p == nil {
		return nil
	}
	return demopage.MissingEnd
}

func (p pages) about() string {
	if p == nil {
		return ""
	}
	return "; our hosts are tabs of Chromium"
}
