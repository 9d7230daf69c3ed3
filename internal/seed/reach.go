package seed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
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

// reach is whether clients outside can reach this seed where viewers are told that it is. A tracker is asked to send a packet
// there, another one each time; until one came, or a viewer's link opened, the seed is not introduced.
type reach struct {
	at    []netip.AddrPort
	key   string
	yes   chan struct{} // closed once it is so
	hurry chan struct{} // a tracker is there that was not
	once  sync.Once
}

// newReach listens for the packet. Without an address or a bell it is taken for granted.
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

// await asks trackers for the packet until it has come. ask asks the n-th of them, and says how many there are.
func (r *reach) await(ctx context.Context, log *slog.Logger, ask func(n int) (trackers int)) (came bool) {
	began, warned := time.Now(), time.Time{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for probes := 0; ; {
		select {
		case <-ctx.Done():
			return false
		case <-r.yes:
			if r.key != "" && probes > 0 { // else it was taken for granted, and no tracker was asked
				log.Info("reached from outside", "address", r.String())
			}
			return true
		case <-r.hurry:
		case <-timer.C:
		}
		trackers := ask(probes)
		probes++
		if now := time.Now(); now.Sub(began) > complain && now.Sub(warned) > complained {
			warned = now
			log.Warn("not reached from outside: viewers are not sent here", "address", r.String(), "trackers", trackers, "probes", probes,
				"hint", "open UDP there, or set seed.announce to where viewers find this seed; seed.probe: false if trackers cannot send there and viewers can")
		}
		if timer.Reset(probeSoon); probes > probeHasty {
			timer.Reset(probeLater)
		}
	}
}

// probe is the packet that trackers are asked for, one for each address.
func (r *reach) probe(self signal.ID) (all []*bus.Probe) {
	for _, at := range r.at {
		all = append(all, &bus.Probe{Seed: self, Address: at.String(), Key: r.key})
	}
	return all
}

// problem is why viewers cannot be sent here, nil if they can.
func (r *reach) problem() error {
	if r.isReached() {
		return nil
	}
	return fmt.Errorf("seed: not reached from outside: no tracker's packet has come to %s (is UDP open there, and is this where viewers find the seed? seed.announce says so)", r)
}
