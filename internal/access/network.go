package access

import "net/netip"

const (
	houseBits = 64 // what one house commands in IPv6: its machines take any address of it
	sizeBits  = 48 // what a provider assigns to a customer with more than one of those
)

// Network is under what an address counts where something is bounded by address: itself, or in IPv6 the /64 around it.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = houseBits
	}
	p, _ := a.Prefix(bits) // of no address: none
	return p
}

// Wide is the /48 around an address in IPv6, in which one customer has 65,536 networks; not valid in IPv4.
func Wide(a netip.Addr) netip.Prefix {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return netip.Prefix{}
	}
	p, _ := a.Prefix(sizeBits)
	return p
}

// Customer is under what an address counts where its owner could take another network for each thing that it takes: itself, or in IPv6
// the /48 around it.
func Customer(a netip.Addr) netip.Prefix {
	if wide := Wide(a); wide.IsValid() {
		return wide
	}
	return Network(a)
}
