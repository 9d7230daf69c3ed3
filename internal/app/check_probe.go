package app

import (
	"fmt"

	"github.com/leeway-video/leeway/internal/netcheck"
)

// probe checks the network check's server.
func (k *checker) probe(c ProbeConfig) {
	k.bounds([]bound{
		{"probe.max_tests", int64(c.MaxTests), 1, "tests"},
		{"probe.max_per_address", int64(c.MaxPerAddress), 1, "tests"},
		{"probe.daily_bytes", c.DailyBytes, 1 << 20, "bytes; a test costs 64 KiB and what it sends"},
	})
	if _, err := probeAnnounced(c.Announce); err != nil {
		k.complain("probe.announce", "%v", err)
	}
	if err := probeSTUN(c.STUN); err != nil {
		k.complain("probe.stun", "%v", err)
	}
	for i, server := range c.ICEServers {
		k.iceServer(fmt.Sprintf("probe.ice_servers[%d]", i), server)
	}
	if len(c.ICEServers) > netcheck.MaxSTUN {
		k.complain("probe.ice_servers", "%d servers, at most %d", len(c.ICEServers), netcheck.MaxSTUN)
	}
	if c.Drain < 0 {
		k.complain("probe.drain", "%s is below 0s", c.Drain)
	}
}
