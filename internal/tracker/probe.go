package tracker

import (
	"net/netip"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/wire/bus"
)

// A tracker sends this many packets a second for all seeds together, and at once. A seed asks for one a second until it had
// one, so that a fleet that starts has to wait a moment, and what a stolen password of the bus buys is nothing.
const (
	probesPerSecond = 10
	probesAtOnce    = 50
)

// prober sends packets for seeds that want to know whether they can be reached.
type prober struct {
	*replica
	send func(to netip.AddrPort, key string) error // nil: none is sent
	pace *rate.Limiter
}

func newProber(r *replica) *prober {
	return &prober{r, r.cfg.Probe, rate.NewLimiter(probesPerSecond, probesAtOnce)}
}

// onProbe sends a packet to where a seed says that it is: one for one that was asked for, shorter than the question, and to no
// address at which this machine or this network segment would hear it alone.
func (p *prober) onProbe(data []byte, _ func([]byte) error) {
	var m bus.Probe
	if p.send == nil || !p.decode(data, &m) || !p.roster.serves(m.Seed) {
		return
	}
	to, err := netip.ParseAddrPort(m.Address)
	if err != nil || !probed(to.Addr().Unmap()) || !p.pace.AllowN(p.cfg.Now(), 1) {
		return
	}
	if err := p.send(to, m.Key); err != nil {
		p.cfg.Log.Warn("a seed's address could not be probed", "address", m.Address, "error", err)
	}
}

// probed says whether packets are sent to an address.
func probed(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
