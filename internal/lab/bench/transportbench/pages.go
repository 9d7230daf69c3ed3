package transportbench

import (
	"context"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// pages puts ends of our links into browsers; nil: no end is in one.
type pages struct {
	browser string
	missing func(context.Context) error
	// put gets the flows of a scene that are ours, in their order. Yardsticks stay where they are.
	put func(i int, f *flow)
}

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
	firefoxSenders = &pages{"Firefox", demopage.MissingFirefoxEnd, func(_ int, f *flow) { f.near = firefoxPage }}
)

func inChromium(put func(i int, f *flow)) *pages {
	return &pages{"Chromium", demopage.MissingEnd, put}
}

func (p *pages) in(sc *scene) {
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

func (p *pages) needs() func(context.Context) error {
	if p == nil {
		return nil
	}
	return p.missing
}

func (p *pages) about() string {
	if p == nil {
		return ""
	}
	return "; our hosts are tabs of " + p.browser
}
