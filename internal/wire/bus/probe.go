package bus

import (
	"errors"
	"net/netip"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// SubjectProbe is where a tracker is asked for a packet from outside.
func SubjectProbe(tracker signal.ID) string {
	return "leeway.v1.tracker." + tracker.Hex() + ".probe"
}

// Lengths of a probe's key, in characters.
const (
	MinProbeKey = 22
	MaxProbeKey = 64
)

// Probe asks a tracker to send one packet to where viewers are told that a seed is (spec/cluster.md, "Reached from outside").
// It has no answer on the bus: the packet arrives or does not.
type Probe struct {
	Seed    signal.ID `json:"seed"`
	Address string    `json:"address"` // ADDRESS:PORT
	Key     string    `json:"key"`     // which the packet carries: letters, digits, + and /
}

// Validate implements Message.
func (m *Probe) Validate() error {
	if m.Seed.IsZero() {
		return errNoID
	}
	if at, err := netip.ParseAddrPort(m.Address); err != nil || at.Port() == 0 || at.Addr().Zone() != "" {
		return errors.New("address is none")
	}
	if len(m.Key) < MinProbeKey || len(m.Key) > MaxProbeKey {
		return errors.New("key is too short or too long")
	}
	for _, c := range []byte(m.Key) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/') {
			return errors.New("key has a character that it may not")
		}
	}
	return nil
}
