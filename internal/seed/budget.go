package seed

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/metric"
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
	swarm   peer.ID
}

func (v *viewer) accountID() accountID { return accountID{v.peer, v.title.swarm} }

// accountOf finds or makes the account of a link's session, and counts so many open links more.
func (s *Service) accountOf(v *viewer, links int) *account {
	bitrate := v.title.highest()
	s.budgets.Lock()
	defer s.budgets.Unlock()
	id := v.accountID()
	if s.accounts[id] == nil && len(s.accounts) >= maxAccounts {
		id = accountID{}
	}
	a := s.accounts[id]
	if a == nil {
		f := s.cfg.SessionFactor
		a = &account{sent: newSessionScope(f, bitrate), fetched: newSessionScope(f, bitrate), read: newReadScope(f, bitrate, readShare)}
		s.accounts[id] = a
	}
	a.links += links
	return a
}

// openAccount is the account of a link that has opened.
func (s *Service) openAccount(v *viewer) *account { return s.accountOf(v, 1) }

func (s *Service) closeAccount(a *account) {
	s.budgets.Lock()
	a.links--
	s.budgets.Unlock()
}

// forgetAccounts drops those that a new one would be equal to.
func (s *Service) forgetAccounts(now time.Time) {
	s.budgets.Lock()
	defer s.budgets.Unlock()
	for id, a := range s.accounts {
		if a.links == 0 && a.sent.full(now) && a.fetched.full(now) && a.read.full(now) {
			delete(s.accounts, id)
		}
	}
}

// mayFetch says whether the origin may be asked for the account's session; charge takes what came of it. nil is nobody's.
func (s *Service) mayFetch(a *account) bool {
	if a == nil {
		return true
	}
	s.budgets.Lock()
	ok := a.fetched.quota.TokensAt(s.cfg.Now()) >= peer.PieceSize
	s.budgets.Unlock()
	if !ok {
		s.cfg.Metrics.Add(mRefusals, 1, a.fetched.name)
	}
	return ok
}

func (s *Service) charge(a *account, bytes int) {
	if a == nil {
		return
	}
	s.budgets.Lock()
	defer s.budgets.Unlock()
	a.fetched.quota.ReserveN(s.cfg.Now(), bytes) // below zero, if need be
}

// maySend takes the bytes of a certificate from an account.
func (s *Service) maySend(a *account, bytes int) bool { return s.draw(a.sent, int64(bytes)) }

// mayRead takes the bytes of a file of the store from an account.
func (s *Service) mayRead(a *account, bytes int64) bool { return s.draw(a.read, bytes) }

// draw takes bytes of a session's quota, all or none.
func (s *Service) draw(from *scope, bytes int64) bool {
	s.budgets.Lock()
	ok := from.quota.AllowN(s.cfg.Now(), int(bytes))
	s.budgets.Unlock()
	if !ok {
		s.cfg.Metrics.Add(mRefusals, 1, from.name)
	}
	return ok
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
