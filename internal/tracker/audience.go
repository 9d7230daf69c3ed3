package tracker

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
)

const (
	busiest     = 10              // titles of a site that are told apart
	leastCrowd  = 2               // viewers from which on a title has figures: what one viewer receives is in none
	overtakes   = 2               // times the viewers of the least busy one, for which a title takes its place
	placeLeft   = 5 * time.Minute // that a title without viewers keeps its place: its last figures are collected
	otherTitles = "other"         // label of all titles that are not told apart
)

// receptions are what viewers' reports say of bytes: the key of a report, and the labels.
var receptions = []struct{ key, source, path string }{
	{"origin", "origin", "direct"}, {"seed", "seed", "direct"}, {"peer", "peer", "direct"},
	{"peer_relay", "peer", "relay"}, {"seed_relay", "seed", "relay"},
}

// received are bytes by receptions, in their order.
type received [5]int64

func (r *received) add(more *received) {
	for i, n := range more {
		r[i] += n
	}
}

// audience is what the sessions of this tracker watch and receive, by site and by title (spec/metrics.md, "Titles"). A title is known
// while it has viewers, so there are at most as many as memberships.
type audience struct {
	label func(site, title string) string

	mu    sync.Mutex         // after memberships.mu; no lock is taken under it
	sites map[string]*public // those of the configuration; the map never changes
}

// public is the audience of one site. Guarded by audience.mu.
type public struct {
	crowds  map[string]*crowd // titles with viewers, and those with a place
	placed  []*crowd          // the busiest
	viewers int               // of all titles
	rest    received          // of titles while they had no place
	all     received
	reasons map[string]int64
}

// crowd is the viewers of one title. Guarded by audience.mu.
type crowd struct {
	title   string
	viewers int
	emptied time.Time // when the last of them left
	label   string    // in metrics; empty: it has no place
	got     received  // since it has its place
}

func newAudience(cfg *Config, k *secrets) *audience {
	a := &audience{sites: map[string]*public{}, label: k.titleLabel}
	if cfg.TitleNames {
		a.label = func(site, title string) string {
			if title == otherTitles {
				return k.titleLabel(site, title)
			}
			return title
		}
	}
	for _, s := range cfg.Sites {
		p := &public{crowds: map[string]*crowd{}, reasons: map[string]int64{}}
		for _, reason := range metric.Reasons {
			p.reasons[reason] = 0
		}
		a.sites[s.Name()] = p
	}
	return a
}

// titleLabel is the name of a title in metrics: the same at all trackers, and no title can be guessed and compared without the secret.
func (k *secrets) titleLabel(site, title string) string {
	id := keyed(k.titles, site, title)
	return hex.EncodeToString(id[:8])
}

// count adds a viewer to a title or, with by -1, takes one out.
func (a *audience) count(site, title string, by int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.sites[site]
	p.viewers += by
	c := p.crowds[title]
	if c == nil {
		c = &crowd{title: title}
		p.crowds[title] = c
	}
	switch c.viewers += by; {
	case c.viewers > 0:
		a.place(site, p, c)
	case c.label != "":
		c.emptied = now
	default:
		delete(p.crowds, title)
	}
}

// place gives a title a place among the busiest if it is. Under mu.
func (a *audience) place(site string, p *public, c *crowd) {
	if c.label != "" || c.viewers < leastCrowd {
		return
	}
	if len(p.placed) == busiest {
		least := slices.MinFunc(p.placed, func(x, y *crowd) int { return x.viewers - y.viewers })
		if c.viewers < overtakes*least.viewers {
			return
		}
		p.displace(least)
	}
	c.label = a.label(site, c.title)
	p.placed = append(p.placed, c)
}

// displace takes a title's place. What it receives from now on counts with the rest. Under mu.
func (p *public) displace(c *crowd) {
	p.placed = slices.DeleteFunc(p.placed, func(x *crowd) bool { return x == c })
	c.label, c.got = "", received{}
	if c.viewers == 0 {
		delete(p.crowds, c.title)
	}
}

// report adds what a viewer of a title received, and why segments of it were not from peers.
func (a *audience) report(site, title string, got *received, reasons map[string]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.sites[site]
	p.all.add(got)
	for reason, n := range reasons {
		if _, known := p.reasons[reason]; known {
			p.reasons[reason] += n
		}
	}
	c := p.crowds[title]
	if c == nil { // it left meanwhile
		p.rest.add(got)
		return
	}
	a.place(site, p, c)
	if c.label == "" || c.viewers < leastCrowd {
		p.rest.add(got)
	} else {
		c.got.add(got)
	}
}

// maintain takes the places of titles that have no viewers any more.
func (a *audience) maintain(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.sites {
		for _, c := range slices.Clone(p.placed) {
			if c.viewers == 0 && now.Sub(c.emptied) >= placeLeft {
				p.displace(c)
			}
		}
	}
}

// Delivery is what the viewers of a site at this tracker received, by their own reports.
type Delivery struct {
	Site    string
	Viewers int              // a session counts once for each title
	Bytes   map[string]int64 // keys signal.StatBytes
	Reasons map[string]int64 // segments that were not from peers, keys metric.Reasons
	Resting int              // titles that seeds let rest, here or at other trackers
	Titles  []TitleDelivery  // the busiest first, and at the end those that are not told apart
}

// TitleDelivery is of one title, from when it got its place among the busiest. Title is empty for all that have none.
type TitleDelivery struct {
	Label   string // in metrics
	Title   string
	Viewers int
	Bytes   map[string]int64 // keys signal.StatBytes
	Rests   bool             // its peers cost more than they save: a seed fetches nothing for it for a while
}

// deliveries are all sites, by name.
func (a *audience) deliveries() []Delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Delivery, 0, len(a.sites))
	for _, site := range slices.Sorted(maps.Keys(a.sites)) {
		p := a.sites[site]
		d := Delivery{Site: site, Viewers: p.viewers, Bytes: p.all.named(), Reasons: maps.Clone(p.reasons)}
		others := p.viewers
		for _, c := range p.placed {
			d.Titles = append(d.Titles, TitleDelivery{Label: c.label, Title: c.title, Viewers: c.viewers, Bytes: c.got.named()})
			others -= c.viewers
		}
		slices.SortFunc(d.Titles, func(x, y TitleDelivery) int {
			return cmp.Or(y.Viewers-x.Viewers, strings.Compare(x.Label, y.Label))
		})
		d.Titles = append(d.Titles, TitleDelivery{Label: otherTitles, Viewers: others, Bytes: p.rest.named()})
		all = append(all, d)
	}
	return all
}

func (r *received) named() map[string]int64 {
	all := make(map[string]int64, len(r))
	for i, n := range r {
		all[receptions[i].key] = n
	}
	return all
}

// collect tells the figures of titles, whose labels are known only now.
func (a *audience) collect(tell func(d *metric.Def, v float64, labels ...string)) {
	for _, d := range a.deliveries() {
		for _, title := range d.Titles {
			tell(defTitleViewers, float64(title.Viewers), d.Site, title.Label)
			for _, r := range receptions {
				tell(defTitleReceived, float64(title.Bytes[r.key]), d.Site, title.Label, r.source, r.path)
			}
		}
	}
}
