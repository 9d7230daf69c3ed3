package seed

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What loading playlists may cost (spec/budgets.md). A load costs one, and one more for every tollBytes of the playlist.
const (
	tollBytes = 64 << 10
	maxTolls  = 1 << 15 // sessions, subjects and subnets that are remembered; those beyond share one
)

// The scopes of a toll: the closed set of the metric's label.
const (
	tollSite    = "site"
	tollSubnet  = "subnet"
	tollSubject = "subject"
	tollSession = "session"
)

// tariff is a rate of loads in a second, and how many there may be at once.
type tariff struct {
	rate  rate.Limit
	burst int
}

// A session may load the largest title at once (64 renditions), an office of one address many titles, a site all that are live.
var tariffs = map[string]tariff{
	tollSession: {8, 160}, tollSubject: {16, 320}, tollSubnet: {64, 1280}, tollSite: {256, 4096},
}

type tollID struct{ scope, name string }

// tolls are the budgets of playlist loads.
type tolls struct {
	now func() time.Time

	mu    sync.Mutex
	purse map[tollID]*rate.Limiter // guarded by mu
}

func newTolls(now func() time.Time) *tolls {
	return &tolls{now: now, purse: map[tollID]*rate.Limiter{}}
}

// ids are what a party is charged to.
func (p party) ids() []tollID {
	ids := []tollID{{tollSession, string(p.session[:])}}
	if p.subject != "" {
		ids = append(ids, tollID{tollSubject, p.subject})
	}
	if p.subnet != "" {
		ids = append(ids, tollID{tollSubnet, p.subnet})
	}
	return ids
}

// of finds or makes a purse. Under mu.
func (t *tolls) of(id tollID) *rate.Limiter {
	l := t.purse[id]
	if l == nil && id.scope != tollSite && len(t.purse) >= maxTolls {
		id.name = ""
		l = t.purse[id]
	}
	if l == nil {
		l = rate.NewLimiter(tariffs[id.scope].rate, tariffs[id.scope].burst)
		t.purse[id] = l
	}
	return l
}

// pay charges one load to the site and to the first party that can pay for it. Without a party the site pays alone. refused is
// the scope whose budget is spent, the last party's if there are several; empty: paid.
func (t *tolls) pay(site string, parties []party) (payer party, refused string) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := t.of(tollID{tollSite, site})
	if whole.TokensAt(now) < 1 {
		return party{}, tollSite
	}
	for _, p := range parties {
		if refused = t.lacking(p, now); refused == "" {
			t.take(p, now, 1)
			payer = p
			break
		}
	}
	if refused == "" {
		whole.AllowN(now, 1)
	}
	return payer, refused
}

// covers says whether a party can pay for one load.
func (t *tolls) covers(p party) bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacking(p, now) == ""
}

// lacking is the scope of a party whose budget is spent. Under mu.
func (t *tolls) lacking(p party, now time.Time) string {
	for _, id := range p.ids() {
		if t.of(id).TokensAt(now) < 1 {
			return id.scope
		}
	}
	return ""
}

// take charges a party, below zero if need be. Under mu.
func (t *tolls) take(p party, now time.Time, n int) {
	if p == (party{}) {
		return
	}
	for _, id := range p.ids() {
		l := t.of(id)
		l.ReserveN(now, min(n, l.Burst()))
	}
}

// charge takes what a load cost besides, when its length is known.
func (t *tolls) charge(site string, payer party, bytes int) {
	n, now := bytes/tollBytes, t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(payer, now, n)
	t.of(tollID{tollSite, site}).ReserveN(now, n)
}

// forget drops those that a new one would be equal to.
func (t *tolls) forget() {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.purse {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(t.purse, id)
		}
	}
}
