package tracker

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TURNServer is one that takes the credentials which trackers mint (spec/turn.md).
type TURNServer struct {
	URLs   []string
	Secret access.RelaySecret
}

// relays are the credentials of one session for TURN servers.
type relays struct {
	*replica
	mu     sync.Mutex
	minted time.Time // guarded by mu: when the credentials that hold were made
}

// servers is what a session of a site is told, and until when the credentials are good (ms since the Unix epoch; 0: always).
func (r *relays) servers(site string, session signal.ID, permit *permit, now time.Time) (all []signal.ICEServer, expire int64) {
	all = append(make([]signal.ICEServer, 0, len(r.cfg.ICEServers)+len(r.cfg.TURNServers)), r.cfg.ICEServers...)
	if len(r.cfg.TURNServers) == 0 {
		return all, 0
	}
	r.mu.Lock()
	r.minted = now
	r.mu.Unlock()
	// Whole seconds, as usernames have them: what is told is what holds.
	expires := permit.within(now.Add(r.cfg.CredentialsLife)).Truncate(time.Second)
	for _, server := range r.cfg.TURNServers {
		username, credential := server.Secret.Mint(site, r.holder(session), expires)
		all = append(all, signal.ICEServer{URLs: server.URLs, Username: username, Credential: credential})
	}
	return all, expires.UnixMilli()
}

// due says whether half the life of the credentials is over.
func (r *relays) due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cfg.TURNServers) > 0 && now.Sub(r.minted) >= r.cfg.CredentialsLife/2
}
