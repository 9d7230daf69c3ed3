package peersbench

import (
	"context"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// weighed are the figures of an establishment on the wire, by the rows of the paper; the lab has no STUN server.
var weighed = []struct{ name, unit string }{
	{"packets", ""}, {"bytes", "B"}, {"peer_packets", ""}, {"peer_bytes", "B"}, {"signaling_packets", ""}, {"signaling_bytes", "B"},
}

// weighing is the case of what an establishment puts on the client's line, IP and UDP or TCP headers included: from the client's first
// word until channels are open at both ends and ours have said hello. The paper captured it between a laptop and a telephone in a WLAN.
func weighing(k kinds) bench.Case {
	c := bench.Case{
		Name:  "H2/" + k.name,
		About: k.about + ", two ends in a WLAN: packets and bytes of one establishment on the client's line.",
		Needs: k.needs(), Extra: k.inBrowser(),
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			n := iterations(establishIterations)
			e, err := establish(ctx, r, k, way{name: "wlan", from: wlan, to: wlan}, n)
			if err != nil {
				return bench.Sample{}, err
			}
			peers, signaling := e.ledger.peers().over(float64(n)), e.ledger.signaling().over(float64(n))
			all := peers.plus(signaling)
			r.Logf("  %.1f packets, %.0f bytes between the ends; %.1f packets, %.0f bytes of signals", peers.packets, peers.bytes, signaling.packets, signaling.bytes)
			return bench.Sample{Void: e.void, Values: map[string]float64{
				"packets": all.packets, "bytes": all.bytes, "peer_packets": peers.packets, "peer_bytes": peers.bytes,
				"signaling_packets": signaling.packets, "signaling_bytes": signaling.bytes,
			}}, nil
		},
	}
	for _, w := range weighed {
		c.Figures = append(c.Figures, bench.Figure{Name: w.name, Unit: w.unit, Reference: papers["H2"].number(w.name, k.besides(), k.besides())})
	}
	return c
}
