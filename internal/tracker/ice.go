package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TURNServer is one that takes the credentials which trackers mint (spec/turn.md).
type TURNServer struct {
	URLs   []string
	Secret access.RelaySecret
}

// iceServers is what a session is told, and until when the credentials are good (ms since the Unix epoch; 0: always).
func (s *session) iceServers(now time.Time) (all []signal.ICEServer, expire int64) {
	cfg := &s.t.cfg
	all = append(make([]signal.ICEServer, 0, len(cfg.ICEServers)+len(cfg.TURNServers)), cfg.ICEServers...)
	if len(cfg.TURNServers) == 0 {
		return all, 0
	}
	// Whole seconds, as usernames have them: what is told is what holds.
	expires := s.withinToken(now.Add(cfg.CredentialsLife)).Truncate(time.Second)
	for _, r := range cfg.TURNServers {
		username, credential := r.Secret.Mint(s.site.Name(), s.t.holder(s.id), expires)
		all = append(all, signal.ICEServer{URLs: r.URLs, Username: username, Credential: credential})
	}
	return all, expires.UnixMilli()
}

// mintsAgain says whether half the life of a session's credentials is over, and counts from now then. The caller holds mu.
func (s *session) mintsAgain(now time.Time) bool {
	if len(s.t.cfg.TURNServers) == 0 || now.Sub(s.minted) < s.t.cfg.CredentialsLife/2 {
		return false
	}
	s.minted = now
	return true
}
