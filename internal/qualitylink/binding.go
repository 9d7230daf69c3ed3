package qualitylink

import (
	"fmt"
	"net/netip"

	"github.com/pion/stun/v4"
)

// Binding asks a STUN server how it sees a socket (RFC 8489).
type Binding struct {
	// Request is to be sent, again if there is no answer.
	Request []byte
	id      [stun.TransactionIDSize]byte
}

// NewBinding makes a request.
func NewBinding() (*Binding, error) {
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		return nil, fmt.Errorf("quality link: binding request: %w", err)
	}
	return &Binding{m.Raw, m.TransactionID}, nil
}

// Mapped is the reflexive address that a packet tells; false: it is no answer to this request.
func (b *Binding) Mapped(packet []byte) (at netip.AddrPort, ok bool) {
	m := &stun.Message{Raw: packet}
	var mapped stun.XORMappedAddress
	if m.Decode() != nil || m.Type != stun.BindingSuccess || m.TransactionID != b.id || mapped.GetFrom(m) != nil {
		return at, false
	}
	address, ok := netip.AddrFromSlice(mapped.IP)
	if !ok || mapped.Port < 1 || mapped.Port > 65_535 {
		return at, false
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(mapped.Port)), true
}
