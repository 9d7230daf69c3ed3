package headless

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// lookEvery is how often the machine's addresses are looked at.
const lookEvery = 500 * time.Millisecond

// addresses are the machine's own, by which others may be reached; nil if they cannot be listed.
func addresses() (list []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Unmap().IsGlobalUnicast() {
			list = append(list, p.Addr())
		}
	}
	return list
}

// watchAddresses looks at each tick, and calls moved when an address is gone that the machine had, as soon as there is any
// other. One more is no reason: what there is goes on by the old ones.
func watchAddresses(ctx context.Context, ticks <-chan time.Time, list func() []netip.Addr, moved func()) {
	before := list()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		now := list()
		if len(now) == 0 { // on the way from one network to the other
			continue
		}
		lost := slices.ContainsFunc(before, func(a netip.Addr) bool { return !slices.Contains(now, a) })
		if before = now; lost {
			moved()
		}
	}
}
