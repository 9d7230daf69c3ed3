package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	askRevocations = 5 * time.Second // between attempts to learn them
	// revokedFile keeps revocations and switches: a message of the bus a line. Trackers keep them in memory only, and a cluster
	// that starts anew has them from its seeds.
	revokedFile = "revoked.jsonl"
	// lineBytes is what the revocations of one line, or of one message, take.
	lineBytes = bus.MaxMessage / 4
)

func (s *Service) onRevoke(data []byte) {
	var m bus.RevokeMessage
	if err := bus.Decode(data, &m); err != nil {
		s.cfg.Log.Warn("revocations were dropped", "error", err)
		return
	}
	s.revoke(m.Revocations, m.Switches)
}

// learnRevocations asks the trackers for what was revoked before this seed started.
func (s *Service) learnRevocations(ctx context.Context) {
	for {
		attempt, cancel := context.WithTimeout(ctx, askRevocations)
		b, err := s.bus.Request(attempt, bus.SubjectRevokeList, []byte("{}"))
		var m bus.RevokeList
		if err == nil {
			err = bus.Decode(b, &m)
		}
		if err == nil {
			cancel()
			s.learnKeys(m.VerifyKeys, s.cfg.Now())
			s.revoke(m.Revocations, m.Switches)
			return
		}
		<-attempt.Done() // no tracker yet
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// domain is a revocation as certificates are judged by it.
func domain(r signal.Revocation) certificate.Revocation {
	v := certificate.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: time.UnixMilli(r.MinIssuedAt)}
	if len(r.KeyID) == len(v.KeyID) {
		v.KeyID = certificate.KeyID(r.KeyID)
	}
	return v
}

// takeIn notes what is new of revocations and switches; trackers say them again and again. Under mu.
func (s *Service) takeIn(list []signal.Revocation, switches []bus.Switch, now time.Time) (revoked, switched bool) {
	for _, r := range list {
		v := domain(r)
		if s.revoked.Holds(v) || v.KeyID.IsZero() && certificate.Ended(v.MinIssuedAt, now) {
			continue
		}
		revoked = true
		if err := s.revoked.Add(v); err != nil {
			s.cfg.Log.Warn("a revocation was dropped", "error", err)
		}
	}
	for _, w := range switches {
		if s.sites[w.Site] != nil && s.switches.Set(w.Statement()) {
			switched = true
		}
	}
	return revoked, switched
}

// revoke drops what is withdrawn: certificates, pieces, queued requests. Segments are fetched again when asked for, unless a
// tombstone lies on them.
func (s *Service) revoke(list []signal.Revocation, switches []bus.Switch) {
	now := s.cfg.Now()
	s.mu.Lock()
	revoked, switched := s.takeIn(list, switches, now)
	if !revoked {
		s.mu.Unlock()
		if switched {
			s.keepRevoked()
		}
		return
	}
	clear(s.failures)
	snapshot := &certificate.Revocations{}
	_ = snapshot.Add(s.revoked.List()...) // what was taken in once is well-formed
	lost := s.revoked.Withdraws(&certificate.Certificate{KeyID: s.signer.id})
	viewers := slices.Collect(maps.Values(s.viewers))
	s.mu.Unlock()
	s.keepRevoked()
	if lost {
		s.rotate()
	}
	withhold(viewers, s.store.withdraw(snapshot.Withdraws)...)
}

// withhold rejects what viewers have asked for of segments that are not served any more.
func withhold(viewers []*viewer, gone ...segment.ID) {
	for _, v := range viewers {
		_, upload := v.parts()
		for _, id := range gone {
			if upload != nil {
				upload.Withdraw(peer.ID(id))
			}
		}
	}
}

// rotate replaces a signing key that is revoked. What it signed is withdrawn already. A seed that can still be reached over
// the bus is trusted with it: who trusts its machine no more takes it off the bus.
func (s *Service) rotate() {
	fresh, err := makeSigner(s.cfg.DataDir)
	if err == nil {
		err = s.verifiers.own(certificate.VerifyKey{KeyID: fresh.id, Key: fresh.point, Sites: slices.Collect(maps.Keys(s.sites))})
	}
	if err != nil {
		s.cfg.Log.Error("this seed's signing key is revoked and no other could be made: it certifies nothing", "error", err)
		return
	}
	s.mu.Lock()
	old := s.signer
	s.signer = fresh
	s.mu.Unlock()
	s.cfg.Log.Warn("this seed's signing key was revoked; it has another", "revoked", old.id.String(), "key", fresh.id.String())
	s.beat(false)
}

// refuses says why a segment gets no certificate now whatever the origin has; ok is false where nothing speaks against one.
func (s *Service) refuses(site string, name segment.Name, now time.Time) (why peer.NoneReason, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.offLocked(site, now):
		return peer.NoneNotAllowed, true
	case certificate.Buried(s.revoked.Since(site, name), now), s.revoked.Withdraws(&certificate.Certificate{KeyID: s.signer.id}):
		return peer.NoneWithdrawn, true
	}
	return 0, false
}

// offLocked says whether peer delivery of a site is off. Under mu.
func (s *Service) offLocked(site string, now time.Time) bool {
	return s.configured[site] || s.switches.Off(site, now)
}

// Configure says whether the configuration has peer delivery of a site off, for this process alone.
func (s *Service) Configure(site string, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured[site] = off
}

// Statements switch a site when all replicas have heard them (cluster.Switches.Say).
func (s *Service) Statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bus.Switches(s.switches.Say(site, off, reason, until, s.cfg.Now()))
}

// obey ends the links of sites that are off. Viewers are told by their trackers; who does not listen gets nothing either.
func (s *Service) obey(now time.Time) {
	var ended []*viewer
	s.mu.Lock()
	for _, v := range s.viewers {
		if v.title != nil && s.offLocked(v.title.site.name, now) {
			ended = append(ended, v)
		}
	}
	s.mu.Unlock()
	for _, v := range ended {
		v.end(peer.ClosePolicy, peer.ByePolicy)
	}
}

// messages is all that is revoked and switched, in messages of the bus.
func (s *Service) messages() []*bus.RevokeMessage {
	s.mu.Lock()
	var list []signal.Revocation
	for _, r := range s.revoked.List() {
		v := signal.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: r.MinIssuedAt.UnixMilli()}
		if r.Site == "" {
			v = signal.Revocation{KeyID: r.KeyID[:]}
		}
		list = append(list, v)
	}
	switches := bus.Switches(s.switches.List())
	s.mu.Unlock()
	var out []*bus.RevokeMessage
	for _, part := range signal.Parts(list, lineBytes) {
		out = append(out, &bus.RevokeMessage{Revocations: part, Switches: switches})
		switches = nil
	}
	return out
}

// keepRevoked writes what is revoked and switched to disk.
func (s *Service) keepRevoked() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	var text bytes.Buffer
	for _, m := range s.messages() {
		b, err := bus.Encode(m)
		if err != nil {
			s.cfg.Log.Error("revocations cannot be kept", "error", err)
			return
		}
		text.Write(append(b, '\n'))
	}
	if err := writeAtomic(filepath.Join(s.cfg.DataDir, revokedFile), true, text.Bytes()); err != nil {
		s.cfg.Log.Error("revocations are not on disk: after a restart this seed may not know them", "error", err)
	}
}

// loadRevoked reads what was revoked and switched before this run. A file that cannot be read keeps the seed from starting:
// without it, what was taken down would be shared again.
func (s *Service) loadRevoked() error {
	path := filepath.Join(s.cfg.DataDir, revokedFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("seed: revocations: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range bytes.Lines(text) {
		var m bus.RevokeMessage
		if err := bus.Decode(line, &m); err != nil {
			return fmt.Errorf("seed: revocations in %s: %w (remove it to start without; what was purged may be certified again then)", path, err)
		}
		s.takeIn(m.Revocations, m.Switches, s.cfg.Now())
	}
	return nil
}

// sayAgain tells trackers that were not known before what is revoked and switched: all of them may be new.
func (s *Service) sayAgain() {
	s.mu.Lock()
	news := s.newcomers
	s.newcomers = false
	s.mu.Unlock()
	if !news {
		return
	}
	for _, m := range s.messages() {
		if len(m.Revocations)+len(m.Switches) > 0 {
			s.publish(bus.SubjectRevokeKept, m)
		}
	}
}
