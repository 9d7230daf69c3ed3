package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/viewer"
)

// Two viewers play, because a seed certifies for certify_from viewers, two by default.
const pairOf = 2

// A film is shown faster, so that there is a segment to ask for whenever a link opens or a certificate comes. A short one is shown slowly for
// the same reason: a viewer would have it whole before.
const (
	faster  = 4
	slowest = 0.1              // of what a viewer takes
	atLeast = 12 * time.Second // that a film takes, as it is shown
	ahead   = 2 * time.Second  // of a viewer's buffer, at least
	// deep is the buffer in segments: the last one and a half before the playhead are urgent, and not waited for.
	deep = 2.5
	// later is how much of its segments a film has beyond the buffer: what the buffer holds is asked for before there is a link.
	later = 1.25
	// fewest is how many segments a film has of which one can come from others. The first two are always urgent.
	fewest = 3
)

// A tracker draws each session anew, so a viewer in the control group asks again, this many times in all.
const (
	draws        = 3
	controlGroup = string(schedule.ControlGroup)
)

// openSeed is what to do where a seed is introduced and no link to it opens.
const openSeed = "open the seed's UDP port (4600) in the firewall and set seed.announce to its public address (docs/operations/seeds.md, Where seeds are); this machine may block UDP"

// checkPiece has real viewers play until one has a verified piece from a seed or a peer.
func checkPiece(ctx context.Context, e *examination) []Finding {
	switch {
	case !e.seeded:
		return skipped("no seed was introduced")
	case e.unshared, e.signedURL:
		return skipped("this title is not shared, as said above")
	case e.segment == nil:
		return skipped("no segment came")
	case e.manifest.indexed:
		return skipped("an index names the segments, which doctor does not read: try leeway viewer --count 2 --fail-on no-peers %s", plainURL(e.cfg.Manifest))
	case !e.manifest.live && e.manifest.media < fewest:
		return skipped("the film has %s, and the first two come from the origin: try a longer film", counted(e.manifest.media, "segment"))
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	var found []Finding
	for range draws {
		if found = e.play(ctx); found[0].Code != controlGroup {
			break
		}
	}
	return found
}

// play has two viewers play until a piece is there, one of them is drawn into the control group, or ctx ends. After half of the time come
// two more: the first ones may have had a short film whole before it was certified.
func (e *examination) play(ctx context.Context) []Finding {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pair{first: make(chan struct{}), drawn: cancel}
	defer p.close()
	half, enough := context.WithTimeout(ctx, e.cfg.Patience/2)
	defer enough()
	begun := time.Now()
	for _, until := range []context.Context{half, ctx} {
		if err := p.start(e); err != nil {
			return fail("viewer-failed", err.Error(), "give the manifest's URL as the player has it")
		}
		p.wait(until)
		if p.came() || ctx.Err() != nil {
			break
		}
	}
	return p.judge(time.Since(begun))
}

// pair is the viewers, two or four, and what they were told.
type pair struct {
	list  []*headless.Viewer
	first chan struct{} // closed when a verified piece is there
	drawn func()        // called when a viewer is in the control group
	once  sync.Once

	mu      sync.Mutex
	notices []string // guarded by mu
}

// start adds two viewers.
func (p *pair) start(e *examination) error {
	cfg := viewer.Config{
		URL: e.cfg.Manifest, Tracker: e.cfg.Tracker, Origin: e.cfg.PageOrigin, Site: e.cfg.Site, Title: e.cfg.Title, Client: e.cfg.Client,
		Rendition: "lowest", JoinAfter: -1,
		OnNotice: func(code, text string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.notices = append(p.notices, code+": "+text)
			if code == controlGroup {
				p.drawn()
			}
		},
		OnSegment: func(r *viewer.Result) {
			for source, n := range r.Bytes {
				if source != viewer.FromOrigin && n > 0 {
					p.once.Do(func() { close(p.first) })
				}
			}
		},
	}
	if e.cfg.Token != "" {
		cfg.Token = func() string { return e.cfg.Token }
	}
	cfg.Speed, cfg.Buffer = e.manifest.pace()
	local := loopbackHost(e.cfg.Manifest) || loopbackHost(e.cfg.Tracker)
	for range pairOf {
		v, err := headless.Start(cfg, headless.Network{Dial: e.cfg.Dial, TLS: e.tls(), Log: e.cfg.Log, Loopback: local})
		if err != nil {
			return err
		}
		p.list = append(p.list, v)
	}
	return nil
}

// pace is how fast viewers are shown it, and how much of it they hold; 0: as they usually do.
func (m *manifest) pace() (speed float64, buffer time.Duration) {
	if m.live {
		return 1, 0
	}
	speed = min(faster, max(slowest, m.length.Seconds()/atLeast.Seconds()))
	segment := m.length.Seconds() / float64(m.media) / speed
	return speed, max(ahead, time.Duration(min(deep, float64(m.media)-later)*segment*float64(time.Second)))
}

// wait returns when a piece is there, when no viewer plays any more, or when ctx ends.
func (p *pair) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, v := range p.list {
			select {
			case <-v.Done():
			case <-ctx.Done():
			case <-p.first:
			}
		}
	}()
	select {
	case <-p.first:
	case <-ended:
	}
	<-ended
}

// came says whether a piece is there.
func (p *pair) came() bool {
	select {
	case <-p.first:
		return true
	default:
		return false
	}
}

func (p *pair) close() {
	var busy sync.WaitGroup
	for _, v := range p.list {
		busy.Go(v.Close)
	}
	busy.Wait()
}

// judge says what came of it.
func (p *pair) judge(took time.Duration) []Finding {
	all := make([]viewer.Summary, len(p.list))
	for i, v := range p.list {
		all[i] = v.Summary()
	}
	p.mu.Lock()
	said := strings.Join(p.notices, "; ")
	p.mu.Unlock()
	return judged(all, p.came(), said, took)
}

// judged says what came of viewers that have played for a while and heard some notices; came: one of them has a verified piece.
func judged(all []viewer.Summary, came bool, said string, took time.Duration) []Finding {
	var failed, off string
	opened, linked, seeds, reasons := 0, 0, 0, map[string]bool{}
	for _, s := range all {
		for kind, n := range s.Linked {
			linked += n
			if strings.HasPrefix(kind, "seed/") {
				seeds += n
			}
		}
		for why := range s.Stats.Reasons {
			reasons[why] = true
		}
		opened += s.LinksOpened
		failed, off = cmp.Or(failed, s.Error), cmp.Or(off, s.Off) // one that is off is enough: seeds wait for certify_from viewers
	}
	if came {
		return ok("a verified piece came after %.1f s (%s)", took.Seconds(), counted(opened, "link"))
	}
	if said != "" {
		said = " (" + said + ")"
	}
	switch {
	case failed != "":
		return fail("viewer-failed", "playback failed: "+failed+said, "play the manifest in a player without Leeway first")
	case off == controlGroup:
		return warn("control-group", "a viewer was drawn into the control group, which the origin alone serves, before a piece came", "run doctor again")
	case off != "":
		return fail("viewer-off", "peer delivery is off: "+off+said, "docs/embedding.md, When peer delivery is off, says what each code means")
	case opened == 0:
		return fail("link-none", "no link opened within "+took.Round(time.Second).String()+said, openSeed)
	case linked > 0 && seeds == 0:
		return fail("link-none", "links between viewers opened, and none to a seed within "+took.Round(time.Second).String()+said, openSeed)
	}
	return fail("piece-none", fmt.Sprintf("links opened and no verified piece came within %s: reasons %s%s", took.Round(time.Second), strings.Join(sortedKeys(reasons), ", "), said),
		"the seed does not certify: run leeway doctor --config FILE on its machine, which fetches from fetch_base as the seed does. If it ends well and the file was changed, restart the seed. /metrics of the seed counts leeway_seed_origin_requests_total by outcome. policy.certify_from above 2 needs more viewers, and a title at rest is not certified for a while (leeway delivery)")
}
