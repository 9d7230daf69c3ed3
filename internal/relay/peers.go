package relay

import "net/netip"

// AllowsPeer says whether anything at an address may be reached.
func (r *Relay) AllowsPeer(a netip.Addr) bool {
	class := r.cfg.Reach.Refuses(a)
	if class != "" {
		r.cfg.Metrics.Add(mRefusedPeers, 1, class)
	}
	return class == ""
}

// reaches says whether a packet may go to a place. Where that is the relay's own machine, which may have an address that
// any relay would reach, only what is listed may be.
func (r *Relay) reaches(to netip.AddrPort, own bool) bool {
	if own {
		return r.cfg.Reach.Lists(to)
	}
	return r.cfg.Reach.RefusesPort(to) == ""
}
