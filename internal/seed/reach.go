package seed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	probeSoon  = time.Second      // between probes, at first
	probeLater = 5 * time.Second  // after probeHasty of them
	probeHasty = 10               //
	complain   = 10 * time.Second // without one that came; and once a minute from then on
	complained = time.Minute
)

// Doorbell hears what is sent to this host from outside; rtclink.Host is one.
type Doorbell interface {
	// Expect calls rung for each packet that carries the key. It must not block.
	Expect(key string, rung func())
}

// reach is whether anybody outside can reach this seed where viewers are told that it is. A tracker is asked to send a packet
// there, another one each time; until one came, or a viewer's link opened, the seed is not introduced.
type reach struct {
	at    []netip.AddrPort
	key   string
	yes   chan struct{} // closed once it is so
	hurry chan struct{} // a tracker is there that was not
	once  sync.Once
}

// newReach listens for the packet. Where there is nobody who could send one it is taken for granted.
func newReach(at []netip.AddrPort, bell Doorbell) *reach {
	r := &reach{at: at, yes: make(chan struct{}), hurry: make(chan struct{}, 1)}
	if bell == nil || len(at) == 0 {
		r.reached()
		return r
	}
	secret := make([]byte, 24)
	_, _ = rand.Read(secret) // never fails
	r.key = base64.RawStdEncoding.EncodeToString(secret)
	bell.Expect(r.key, r.reached)
	return r
}

func (r *reach) reached() { r.once.Do(func() { close(r.yes) }) }

func (r *reach) isReached() bool {
	select {
	case <-r.yes:
		return true
	default:
		return false
	}
}

// meets notes that a tracker was heard for the first time.
func (r *reach) meets() {
	select {
	case r.hurry <- struct{}{}:
	default:
	}
}

func (r *reach) String() string {
	all := make([]string, len(r.at))
	for i, a := range r.at {
		all[i] = a.String()
	}
	return strings.Join(all, ", ")
}

// Ready says whether viewers can be sent here, and if not why.
func (s *Service) Ready() error {
	if s.outside.isReached() {
		if !s.isWarm() {
			return errors.New("seed: warming up: siblings give it what is wanted most, before viewers are sent here")
		}
		return nil
	}
	return fmt.Errorf("seed: not reached from outside: no tracker's packet has come to %s (is UDP open there, and is this where viewers find the seed? seed.announce says so)", s.outside)
}

// awaitReached asks trackers for the packet until it has come.
func (s *Service) awaitReached(ctx context.Context) {
	began, warned := time.Now(), time.Time{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for probes := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.outside.yes:
			if s.outside.key != "" && probes > 0 { // else it was taken for granted, and nobody was asked
				s.cfg.Log.Info("reached from outside", "address", s.outside.String())
				s.beat(false)
			}
			s.cfg.Metrics.Set(mReached, 1)
			return
		case <-s.outside.hurry:
		case <-timer.C:
		}
		trackers := s.askForProbe(probes)
		probes++
		if now := time.Now(); now.Sub(began) > complain && now.Sub(warned) > complained {
			warned = now
			s.cfg.Log.Warn("not reached from outside: viewers are not sent here", "address", s.outside.String(), "trackers", trackers, "probes", probes,
				"hint", "open UDP there, or set seed.announce to where viewers find this seed; seed.probe: false if trackers cannot send there and viewers can")
		}
		if timer.Reset(probeSoon); probes > probeHasty {
			timer.Reset(probeLater)
		}
	}
}

// askForProbe asks the n-th of the trackers that beat, and says how many these are.
func (s *Service) askForProbe(n int) (trackers int) {
	s.mu.Lock()
	var all []signal.ID
	for id := range s.trackers {
		all = append(all, id)
	}
	s.mu.Unlock()
	if len(all) == 0 {
		return 0
	}
	for _, at := range s.outside.at {
		s.publish(bus.SubjectProbe(all[n%len(all)]), &bus.Probe{Seed: s.id, Address: at.String(), Key: s.outside.key}) // maps come in any order: each has its turn
	}
	return len(all)
}
