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

// Two viewers play, because a seed certifies for certify_from viewers, two by default. A film is shown faster, so that segments are
// asked for while the links are there and not all before.
const (
	pairOf = 2
	faster = 4
	ahead  = 2 * time.Second // of a viewer's buffer
)

// A tracker draws each session anew, so a viewer in the control group asks again, this many times in all.
const (
	draws        = 3
	controlGroup = string(schedule.ControlGroup)
)

// checkPiece has real viewers play until one has a verified piece from a seed or a peer.
func checkPiece(ctx context.Context, e *examination) []Finding {
	switch {
	case !e.seeded:
		return skipped("no seed was introduced")
	case e.unshared, e.signedURL:
		return skipped("this title is not shared, as said above")
	case e.segment == nil:
		return skipped("no segment came")
	case e.manifest.dash:
		return skipped("the headless viewer plays HLS, and this is DASH: try the page itself")
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

// play has two viewers play until a piece is there, one of them is drawn into the control group, or ctx ends.
func (e *examination) play(ctx context.Context) []Finding {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pair{first: make(chan struct{}), drawn: cancel}
	defer p.close()
	for range pairOf {
		if err := p.start(e); err != nil {
			return fail("viewer-failed", err.Error(), "give the manifest's URL as the player has it")
		}
	}
	begun := time.Now()
	p.wait(ctx)
	return p.judge(time.Since(begun))
}

// pair is the viewers and what they were told.
type pair struct {
	list  []*headless.Viewer
	first chan struct{} // closed when a verified piece is there
	drawn func()        // called when a viewer is in the control group
	once  sync.Once

	mu      sync.Mutex
	notices []string // guarded by mu
}

func (p *pair) start(e *examination) error {
	cfg := viewer.Config{
		URL: e.cfg.Manifest, Tracker: e.cfg.Tracker, Origin: e.cfg.PageOrigin, Site: e.cfg.Site, Title: e.cfg.Title, Client: e.cfg.Client,
		Rendition: "lowest", Buffer: ahead, Speed: faster, JoinAfter: -1,
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
	if e.manifest.live {
		cfg.Speed, cfg.Buffer = 1, 0
	}
	local := loopbackHost(e.cfg.Manifest) || loopbackHost(e.cfg.Tracker)
	v, err := headless.Start(cfg, headless.Network{Dial: e.cfg.Dial, TLS: e.tls(), Log: e.cfg.Log, Loopback: local})
	if err == nil {
		p.list = append(p.list, v)
	}
	return err
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

func (p *pair) close() {
	var busy sync.WaitGroup
	for _, v := range p.list {
		busy.Go(v.Close)
	}
	busy.Wait()
}

// judge says what came of it.
func (p *pair) judge(took time.Duration) []Finding {
	var failed, off string
	bytes, opened, reasons := map[string]int64{}, 0, map[string]bool{}
	for _, v := range p.list {
		s := v.Summary()
		for source, n := range s.Stats.Bytes {
			bytes[source] += n
		}
		for why := range s.Stats.Reasons {
			reasons[why] = true
		}
		opened += s.LinksOpened
		failed, off = cmp.Or(failed, s.Error), cmp.Or(off, s.Off) // one that is off is enough: seeds wait for certify_from viewers
	}
	select {
	case <-p.first:
		return ok("a verified piece came after %.1f s (%s)", took.Seconds(), counted(opened, "link"))
	default:
	}
	p.mu.Lock()
	said := strings.Join(p.notices, "; ")
	p.mu.Unlock()
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
		return fail("link-none", "no link opened within "+took.Round(time.Second).String()+said,
			"open the seed's UDP port (4600) in the firewall and set seed.announce to its public address (docs/operations/seeds.md, Where seeds are); this machine may block UDP")
	}
	return fail("piece-none", fmt.Sprintf("links opened and no verified piece came within %s: reasons %s%s", took.Round(time.Second), strings.Join(sortedKeys(reasons), ", "), said),
		"the seed does not certify: run leeway doctor --config FILE on its machine, which fetches from fetch_base as the seed does. If it ends well and the file was changed, restart the seed. /metrics of the seed counts leeway_seed_origin_requests_total by outcome. policy.certify_from above 2 needs more viewers")
}
