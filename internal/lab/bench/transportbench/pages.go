package transportbench

import (
	"context"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// placement puts ends of our links into browsers.
type placement struct {
	browser string
	missing func(context.Context) error
	// put gets the flows of a scene that are ours, in their order. Yardsticks stay where they are.
	put func(i int, f *flow)
}

// pages is a placement; nil: no end is in a browser.
type pages = *placement

// The ends that are in a browser.
var (
	// bothKinds has the first host in a tab that is hidden, which sends to a process of ours, and the second in one that is
	// seen, which sends to another browser.
	bothKinds = inChromium(func(i int, f *flow) {
		if f.near = hiddenPage; i > 0 {
			f.near, f.far = visiblePage, visiblePage
		}
	})
	senders        = inChromium(func(_ int, f *flow) { f.near = hiddenPage })
	viewers        = inChromium(func(_ int, f *flow) { f.far = visiblePage })
	firefoxSenders = &placement{"Firefox", demopage.MissingFirefoxEnd, func(_ int, f *flow) { f.near = firefoxPage }}
)

func inChromium(put func(i int, f *flow)) pages {
	return &placement{"Chromium", demopage.MissingEnd, put}
}

func (p *placement) in(sc *scene) {
	if p == nil {
		return
	}
	ours := 0
	for i := range sc.flows {
		switch f := &sc.flows[i]; f.kind {
		case ledbatLane, asked, idle:
			p.put(ours, f)
			ours++
		}
	}
}

func (p *placement) needs() func(context.Context) error {
	if p == nil {
		return nil
	}
	return p.missing
}

func (p *placement) about() string {
	if p == nil {
		return ""
	}
	return "; our hosts are tabs of " + p.browser
}
