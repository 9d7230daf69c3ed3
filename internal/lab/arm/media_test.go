package arm

import (
	"testing"

	"github.com/pion/rtcp"
)

// TestANACKAsksForManyPackets: what is compared with the packets that came is packets, not messages.
func TestANACKAsksForManyPackets(t *testing.T) {
	asked := []uint16{7, 8, 9, 24, 400}
	packets := []rtcp.Packet{
		&rtcp.ReceiverReport{},
		&rtcp.TransportLayerNack{Nacks: rtcp.NackPairsFromSequenceNumbers(asked)},
		&rtcp.TransportLayerNack{Nacks: rtcp.NackPairsFromSequenceNumbers([]uint16{1})},
	}
	if n := nacksIn(packets); n != len(asked)+1 {
		t.Errorf("%d packets, %d are asked for", n, len(asked)+1)
	}
}
