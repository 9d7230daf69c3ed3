package seed

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// longestWait is how long a piece waits for a rate before its request is rejected instead.
	longestWait = time.Second
	// sessionAhead is how far ahead of real time a session may be served: a player's buffer.
	sessionAhead = 60 * time.Second
	// unknownBitrate of a title whose playlists name none, bits/s.
	unknownBitrate = 20_000_000
	// maxAccounts bounds the sessions that are remembered for what they have cost; those beyond share one account.
	maxAccounts = 1 << 15
	// readShare is how much of a session may be read from disk for what it may be sent: a segment may have to make room in memory
	// before all of it is sent.
	readShare = 2
)

// scope is a spender of the egress budgets: the seed, one of its sites, or one session.
type scope struct {
	name  string        // label of the refusal metric
	rate  *rate.Limiter // bytes/s; nil: unlimited
	quota *rate.Limiter // bytes over a long time: spent means refused, not delayed; nil: unlimited
}

// newScope bounds a seed or site: bytes/s and bytes a day, 0 for no bound.
func newScope(name string, perSecond, daily int64) *scope {
	s := &scope{name: name}
	if perSecond > 0 {
		s.rate = rate.NewLimiter(rate.Limit(perSecond), int(max(perSecond/4, 4*peer.PieceSize)))
	}
	if daily > 0 {
		s.quota = rate.NewLimiter(rate.Limit(float64(daily)/86400), int(max(daily, peer.PieceSize)))
	}
	return s
}

// newSessionScope bounds one session by what its viewer can play: factor × bitrate (bits/s), with a minute in hand.
func newSessionScope(factor float64, bitrate int64) *scope { return newReadScope(factor, bitrate, 1) }

// newReadScope is share times that.
func newReadScope(factor float64, bitrate int64, share int) *scope {
	if bitrate <= 0 {
		bitrate = unknownBitrate
	}
	perSecond := float64(share) * factor * float64(bitrate) / 8
	burst := max(int(perSecond*sessionAhead.Seconds()), share*2*peer.MaxSegment)
	return &scope{name: "session", quota: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// account is what one session may cost, over all its links in a swarm: a viewer that comes back has no more than before.
type account struct {
	sent    *scope // pieces and certificates
	fetched *scope // from the origin, because the session asked
	read    *scope // from disk, likewise
	links   int    // open ones
	reader  reader // of what it has read from disk
}

type accountID struct {
	session signal.ID
	swarm   swarm.ID
}

// budgets bound what a seed sends, and what its sessions have it fetch and read.
type budgets struct {
	factor float64 // of a session: of what its viewer can play
	whole  *scope
	sink   metric.Sink
	now    func() time.Time

	mu       sync.Mutex             // a piece is taken from every scope or from none
	accounts map[accountID]*account // guarded by mu
}

func newBudgets(whole *scope, factor float64, sink metric.Sink, now func() time.Time) *budgets {
	return &budgets{factor: factor, whole: whole, sink: sink, now: now, accounts: map[accountID]*account{}}
}

// account finds or makes the account of a session in a swarm, and counts so many open links more. bitrate is that of the title's best
// rendition.
func (b *budgets) account(id accountID, bitrate int64, links int) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts[id] == nil && len(b.accounts) >= maxAccounts {
		id = accountID{}
	}
	a := b.accounts[id]
	if a == nil {
		a = &account{sent: newSessionScope(b.factor, bitrate), fetched: newSessionScope(b.factor, bitrate), read: newReadScope(b.factor, bitrate, readShare)}
		b.accounts[id] = a
	}
	a.links += links
	return a
}

// leave notes that a link of an account has ended.
func (b *budgets) leave(a *account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.links--
}

// forget drops accounts that a new one would be equal to.
func (b *budgets) forget() {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, a := range b.accounts {
		if a.links == 0 && a.sent.full(now) && a.fetched.full(now) && a.read.full(now) {
			delete(b.accounts, id)
		}
	}
}

// mayFetch says whether the origin may be asked for the account's session; charge takes what came of it. Without an account nothing
// is charged.
func (b *budgets) mayFetch(a *account) bool {
	if a == nil {
		return true
	}
	b.mu.Lock()
	ok := a.fetched.quota.TokensAt(b.now()) >= peer.PieceSize
	b.mu.Unlock()
	if !ok {
		b.sink.Add(mRefusals, 1, a.fetched.name)
	}
	return ok
}

func (b *budgets) charge(a *account, bytes int) {
	if a == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.fetched.quota.ReserveN(b.now(), bytes) // below zero, if need be
}

// maySend takes the bytes of a certificate from an account.
func (b *budgets) maySend(a *account, bytes int) bool { return b.draw(a.sent, int64(bytes)) }

// mayRead takes the bytes of a file of the store from an account.
func (b *budgets) mayRead(a *account, bytes int64) bool { return b.draw(a.read, bytes) }

// draw takes bytes of a session's quota, all or none.
func (b *budgets) draw(from *scope, bytes int64) bool {
	b.mu.Lock()
	ok := from.quota.AllowN(b.now(), int(bytes))
	b.mu.Unlock()
	if !ok {
		b.sink.Add(mRefusals, 1, from.name)
	}
	return ok
}

// load is the share of the seed's own budget that is in use, in permille.
func (b *budgets) load() int {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole.load(now)
}

// ofLink is what one link draws on: the seed's budget, its site's and its session's.
func (b *budgets) ofLink(site *scope, a *account) *budget {
	return &budget{mu: &b.mu, scopes: []*scope{b.whole, site, a.sent}, now: b.now, sink: b.sink}
}

func (s *scope) full(now time.Time) bool { return s.quota.TokensAt(now) >= float64(s.quota.Burst()) }

// budget is what one link draws on. It satisfies transfer.Budget.
type budget struct {
	mu     *sync.Mutex // shared by all links: a piece is taken from every scope or from none
	scopes []*scope
	now    func() time.Time
	sink   metric.Sink
}

// Take implements transfer.Budget.
func (b *budget) Take(n int) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, s := range b.scopes {
		if s.quota != nil && s.quota.TokensAt(now) < float64(n) {
			b.sink.Add(mRefusals, 1, s.name)
			return 0, false
		}
	}
	for _, s := range b.scopes {
		if s.rate == nil {
			continue
		}
		if missing := float64(n) - s.rate.TokensAt(now); missing > 0 {
			wait := time.Duration(missing / float64(s.rate.Limit()) * float64(time.Second))
			if wait > longestWait {
				b.sink.Add(mRefusals, 1, s.name)
				return 0, false
			}
			return max(wait, time.Millisecond), false
		}
	}
	for _, s := range b.scopes {
		if s.quota != nil {
			s.quota.AllowN(now, n)
		}
		if s.rate != nil {
			s.rate.AllowN(now, n)
		}
	}
	return 0, true
}

// load is the share of a rate that is in use, in permille; with nothing left of the day it is full.
func (s *scope) load(now time.Time) int {
	if s.quota != nil && s.quota.TokensAt(now) < peer.PieceSize {
		return 1000
	}
	if s.rate == nil {
		return 0
	}
	free := max(0, s.rate.TokensAt(now)/float64(s.rate.Burst()))
	return int(1000 * (1 - min(1, free)))
}
