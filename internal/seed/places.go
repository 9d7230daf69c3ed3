package seed

import (
	"sync"
	"time"
)

// Bounds of link places (spec/budgets.md, spec/cluster.md "Places of a seed").
const (
	halfOpenFor    = 10 * time.Second // that a link may take to open
	halfOpenShare  = 8                // of the places, so many parts are there besides for links on their way
	halfOpenLeast  = 8
	linksOfSession = 8                // on their way and open
	idleAfter      = 30 * time.Second // without a question and without a piece
	subnetShare    = 16               // of the places, so many parts are a subnet's while others want one
	subnetLeast    = 2
	roomToMake     = 990 // permille of load at most, while an idle link or a subnet above its share could make room
)

// Why a link lost its place to another: the closed set of the metric's label.
const (
	displacedHalfOpen = "half-open"
	displacedIdle     = "idle"
	displacedShare    = "share"
)

// place is what a link holds from its offer on.
type place struct {
	v     *viewerLink
	net   string // subnet, or the session where no subnet is known
	open  bool
	since time.Time // of the offer
}

// places bounds the links of a seed and shares them out. Links on their way have places of their own, few and for a short
// time: until a handshake has ended, nothing shows that the offer came from where it says.
type places struct {
	now  func() time.Time
	most int // open links
	half int // on their way

	mu  sync.Mutex
	all map[*viewerLink]*place // guarded by mu
}

func newPlaces(most int, now func() time.Time) *places {
	return &places{now: now, most: most, half: max(halfOpenLeast, most/halfOpenShare), all: map[*viewerLink]*place{}}
}

// offer takes a place on the way for a link, or says that there is none. old, if any, is the link that it replaces. displaced
// is what lost its place to it.
func (p *places) offer(v, old *viewerLink) (displaced *viewerLink, ok bool) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	leaving := p.all[old]
	delete(p.all, old)
	one := &place{v: v, net: v.from.net(), since: now}
	half, ofSession := 0, 0
	for _, o := range p.all {
		if !o.open {
			half++
		}
		if o.v.from.session == v.from.session {
			ofSession++
		}
	}
	switch victim := (*place)(nil); {
	case ofSession >= linksOfSession:
	case p.countOpen() >= p.most && p.victim(one.net, now) == nil:
	case half >= p.half:
		if victim = p.slow(one.net); victim == nil {
			break
		}
		delete(p.all, victim.v)
		displaced = victim.v
		fallthrough
	default:
		p.all[v] = one
		return displaced, true
	}
	if leaving != nil {
		p.all[old] = leaving
	}
	return nil, false
}

// net is what a share is of.
func (p party) net() string {
	if p.subnet == "" {
		return string(p.session[:])
	}
	return p.subnet
}

// slow is the oldest link on its way of the subnet that has most of them, if that is clearly more than the newcomer's. Under mu.
func (p *places) slow(net string) *place {
	counts := p.count(func(o *place) bool { return !o.open })
	heaviest, n := most(counts)
	if n <= counts[net]+1 {
		return nil
	}
	return p.first(func(o *place) bool { return !o.open && o.net == heaviest }, func(o *place) time.Time { return o.since })
}

// opened gives a link that has opened its place for good. displaced is what lost its place to it, and for why; without a place ok
// is false.
func (p *places) opened(v *viewerLink) (displaced *viewerLink, why string, ok bool) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[v]
	if one == nil { // it lost its place while it opened
		return nil, "", false
	}
	if p.countOpen() >= p.most {
		victim := p.victim(one.net, now)
		if victim == nil {
			delete(p.all, v)
			return nil, "", false
		}
		displaced, why = victim.v, displacedShare
		if victim.idle(now) {
			why = displacedIdle
		}
		delete(p.all, displaced)
	}
	one.open = true
	return displaced, why, true
}

func (o *place) idle(now time.Time) bool { return now.Sub(o.v.usedAt()) >= idleAfter }

// victim is the open link that makes room for one of a subnet: the one that is idle for longest, of the newcomer's subnet or of
// one that has more places; where none is idle, the least recently used of the subnet that has most, if that is above its share
// and clearly more than the newcomer's. Under mu.
func (p *places) victim(net string, now time.Time) *place {
	counts := p.count(func(o *place) bool { return o.open })
	own := counts[net]
	used := func(o *place) time.Time { return o.v.usedAt() }
	if o := p.first(func(o *place) bool { return o.open && o.idle(now) && (o.net == net || counts[o.net] > own) }, used); o != nil {
		return o
	}
	heaviest, n := most(counts)
	if n <= p.share() || n <= own+1 {
		return nil
	}
	return p.first(func(o *place) bool { return o.open && o.net == heaviest }, used)
}

func (p *places) share() int { return max(subnetLeast, p.most/subnetShare) }

// count counts places by subnet. Under mu.
func (p *places) count(of func(*place) bool) map[string]int {
	counts := map[string]int{}
	for _, o := range p.all {
		if of(o) {
			counts[o.net]++
		}
	}
	return counts
}

func (p *places) countOpen() (n int) {
	for _, o := range p.all {
		if o.open {
			n++
		}
	}
	return n
}

// first is the earliest of some by a time. Under mu.
func (p *places) first(of func(*place) bool, at func(*place) time.Time) (least *place) {
	for _, o := range p.all {
		if of(o) && (least == nil || at(o).Before(at(least))) {
			least = o
		}
	}
	return least
}

// most is the largest of some counts.
func most(counts map[string]int) (net string, n int) {
	for k, c := range counts {
		if c > n {
			net, n = k, c
		}
	}
	return net, n
}

func (p *places) leave(v *viewerLink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, v)
}

// late takes their places from links that did not open in time, and returns them.
func (p *places) late() (late []*viewerLink) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for v, o := range p.all {
		if !o.open && now.Sub(o.since) >= halfOpenFor {
			delete(p.all, v)
			late = append(late, v)
		}
	}
	return late
}

// counts says how many links are open and on their way.
func (p *places) counts() (open, half int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open = p.countOpen()
	return open, len(p.all) - open
}

// load is the share of the places that is taken, in permille: 1000 where a newcomer of a new subnet would find none.
func (p *places) load() int {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.countOpen()
	if n >= p.most && p.victim("", now) == nil {
		return 1000
	}
	return min(1000*n/p.most, roomToMake)
}
