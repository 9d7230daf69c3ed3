package relay

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/access"
)

// publishEvery is how often what packets counted reaches the metrics.
const publishEvery = time.Second

// A client is told once for each allocation what to sign its request with. So an address has as many replies that no password
// stands behind as it may have allocations, and as many again over answersOver.
const (
	answersOver = 10 * time.Second
	maxAnswered = 1 << 16 // networks that are remembered for their replies, or their connections; those beyond share
)

var (
	errDraining = errors.New("relay: draining")
	errFull     = errors.New("relay: no allocation is left")
)

// Relay decides. Its methods may be called from anywhere at once.
type Relay struct {
	cfg  Config
	rate *rate.Limiter // bytes/s in all; nil: unlimited

	draining atomic.Bool
	traffic  traffic

	mu          sync.Mutex
	users       map[string]int               // guarded by mu: allocations, by user
	addresses   map[netip.Prefix]int         // guarded by mu: likewise, by network
	connected   map[netip.Prefix]int         // guarded by mu: connections, by network
	answers     access.Buckets[netip.Prefix] // guarded by mu: replies that no password stands behind
	begun       access.Buckets[netip.Prefix] // guarded by mu: connections, each of which may be a handshake of TLS
	allocations int                          // guarded by mu
	connections int                          // guarded by mu
}

// traffic is counted with every packet and published once in a while.
type traffic struct {
	bytes, packets [2]atomic.Int64 // in the order of directions
	dropped        [3]atomic.Int64 // in the order of drops
}

// New checks the configuration.
func New(cfg Config) (*Relay, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Relay{
		cfg: cfg, rate: limiter(cfg.Rate),
		users: map[string]int{}, addresses: map[netip.Prefix]int{}, connected: map[netip.Prefix]int{},
		answers: allowance(cfg.MaxPerAddress, 1), begun: allowance(cfg.MaxPerAddress, 2),
	}, nil
}

// allowance is as many as an address may have, so many times at once, and as many again over answersOver.
func allowance(perAddress, times int) access.Buckets[netip.Prefix] {
	return access.Buckets[netip.Prefix]{
		Rate: float64(perAddress) / answersOver.Seconds(), Burst: float64(times * perAddress), Most: maxAnswered,
	}
}

// limiter lets a quarter of a second through at once, and no less than a few packets.
func limiter(perSecond int64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), int(max(perSecond/4, 16<<10)))
}

// Run publishes what packets counted until ctx ends, and once more then.
func (r *Relay) Run(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.publish()
			return
		case <-tick.C:
			r.publish()
		}
	}
}

func (r *Relay) publish() {
	for i, d := range directions {
		r.cfg.Metrics.Add(mBytes, float64(r.traffic.bytes[i].Swap(0)), d)
		r.cfg.Metrics.Add(mPackets, float64(r.traffic.packets[i].Swap(0)), d)
	}
	for i, d := range drops {
		r.cfg.Metrics.Add(mDropped, float64(r.traffic.dropped[i].Swap(0)), d)
	}
}

// Buffers notes what the kernel gave a socket.
func (r *Relay) Buffers(read, write int) {
	r.cfg.Metrics.Set(mSocket, float64(read), "read")
	r.cfg.Metrics.Set(mSocket, float64(write), "write")
}

// Authenticate says which user a username belongs to and which password goes with it. Where fresh is false the request carries an
// allocation on, which it may beyond the username's expiry.
func (r *Relay) Authenticate(username string, fresh bool) (user, password string, ok bool) {
	u, err := access.ParseRelayUser(username)
	if err != nil {
		r.cfg.Metrics.Add(mRequests, 1, authMalformed)
		return "", "", false
	}
	until := u.Expires
	if !fresh {
		until = until.Add(carriedOn)
	}
	if !r.cfg.Now().Before(until) {
		r.cfg.Metrics.Add(mRequests, 1, authExpired)
		return "", "", false
	}
	secret, ok := r.cfg.Secrets.Of(u)
	if !ok {
		r.cfg.Metrics.Add(mRequests, 1, authUnknown)
		return "", "", false
	}
	r.cfg.Metrics.Add(mRequests, 1, authKnown)
	return u.Name(), secret.Password(username), true
}

// Admits says whether a user at an address may have one more allocation. It takes nothing yet: Open does.
func (r *Relay) Admits(user string, client netip.Addr) bool {
	r.mu.Lock()
	outcome := r.outcome(user)
	if outcome == allocationGranted && r.addresses[access.Customer(client)] >= r.cfg.MaxPerAddress {
		outcome = allocationAddress
	}
	r.mu.Unlock()
	if outcome != allocationGranted {
		r.cfg.Metrics.Add(mRequested, 1, outcome)
	}
	return outcome == allocationGranted
}

// outcome of a user's request for an allocation. The caller holds mu.
func (r *Relay) outcome(user string) string {
	switch {
	case r.draining.Load():
		return allocationDraining
	case r.users[user] >= r.cfg.MaxPerUser:
		return allocationUser
	case r.allocations >= r.cfg.MaxAllocations:
		return allocationTotal
	}
	return allocationGranted
}

// Open begins an allocation; its Close ends it.
func (r *Relay) Open(user string) (*Flow, error) {
	r.mu.Lock()
	outcome := r.outcome(user)
	if outcome == allocationGranted {
		r.users[user]++
		r.allocations++
	}
	r.mu.Unlock()
	r.cfg.Metrics.Add(mRequested, 1, outcome)
	switch outcome {
	case allocationGranted:
		r.cfg.Metrics.Add(mAllocations, 1)
		return &Flow{relay: r, user: user, rate: limiter(r.cfg.AllocationRate)}, nil
	case allocationDraining:
		return nil, errDraining
	}
	return nil, errFull
}

// Answers says whether an address may have one more reply over UDP that no password stands behind.
func (r *Relay) Answers(client netip.Addr) bool {
	r.mu.Lock()
	ok := r.answers.Take(access.Customer(client), 1, r.cfg.Now())
	r.mu.Unlock()
	if !ok {
		r.cfg.Metrics.Add(mUnanswered, 1, unansweredAddress)
	}
	return ok
}

// Ignored counts a request that no client sends.
func (r *Relay) Ignored() { r.cfg.Metrics.Add(mUnanswered, 1, unansweredIncomplete) }

// Holds notes that an address of a client has an allocation more (1) or less (-1).
func (r *Relay) Holds(client netip.Addr, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.addresses, access.Customer(client), n)
}

// Connect says whether one more connection may come from an address. What it let in ends with Disconnect. The connection
// of a balancer has no client, and its address is not valid, until Introduce names one.
func (r *Relay) Connect(client netip.Addr, transport string) bool {
	r.mu.Lock()
	reason := r.refusal(client)
	if reason == "" && r.connections >= r.cfg.MaxConnections {
		reason = "total"
	}
	if reason == "" {
		r.connections++
		r.connects(client, 1)
	}
	r.mu.Unlock()
	if reason != "" {
		r.cfg.Metrics.Add(mRefused, 1, reason)
		return false
	}
	r.cfg.Metrics.Add(mConnections, 1, transport)
	return true
}

// Introduce counts a connection without a client as one of this client. If the client may have no more, it returns false, and the
// connection stays without a client until Disconnect.
func (r *Relay) Introduce(client netip.Addr) bool {
	r.mu.Lock()
	reason := r.refusal(client)
	if reason == "" {
		r.connects(client, 1)
	}
	r.mu.Unlock()
	if reason != "" {
		r.cfg.Metrics.Add(mRefused, 1, reason)
	}
	return reason == ""
}

// Misled counts a connection whose balancer sent no valid PROXY header.
func (r *Relay) Misled() { r.cfg.Metrics.Add(mRefused, 1, "proxy") }

// refusal is why a client may begin no more connections now. The caller holds mu.
func (r *Relay) refusal(client netip.Addr) string {
	switch {
	case r.draining.Load():
		return "draining"
	case !client.IsValid():
	case r.connected[access.Customer(client)] >= r.cfg.MaxPerAddress, !r.begun.Take(access.Customer(client), 1, r.cfg.Now()):
		return "address"
	}
	return ""
}

// connects changes how many connections a client has. The caller holds mu.
func (r *Relay) connects(client netip.Addr, n int) {
	if client.IsValid() {
		change(r.connected, access.Customer(client), n)
	}
}

// Disconnect ends what Connect let in.
func (r *Relay) Disconnect(client netip.Addr, transport string) {
	r.mu.Lock()
	r.connections--
	r.connects(client, -1)
	r.mu.Unlock()
	r.cfg.Metrics.Add(mConnections, -1, transport)
}

// Drain refuses allocations and connections from now on.
func (r *Relay) Drain() { r.draining.Store(true) }

// Ready says whether allocations are given, and if not why.
func (r *Relay) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining.Load():
		return errDraining
	case r.allocations >= r.cfg.MaxAllocations:
		return errFull
	}
	return nil
}

// change adds to a count, which is forgotten at 0.
func change[K comparable](counts map[K]int, k K, n int) {
	if counts[k] += n; counts[k] <= 0 {
		delete(counts, k)
	}
}
