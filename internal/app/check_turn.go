package app

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// relays checks what trackers tell of relays, and the relay of this file.
func (k *checker) relays(c *Config) {
	for i, s := range c.Tracker.ICEServers {
		k.iceServer(fmt.Sprintf("tracker.ice_servers[%d]", i), s)
	}
	if d := c.Tracker.CredentialsLife; d < time.Minute {
		k.complain("tracker.credentials_life", "%s is below 1m0s", d)
	}
	t := c.Turn
	for i, text := range t.Secrets {
		if _, err := access.NewRelaySecret(text); err != nil {
			k.complain(fmt.Sprintf("turn.secrets[%d]", i), "%v", err)
		}
	}
	families := map[bool]string{}
	for i, text := range t.Announce {
		key := fmt.Sprintf("turn.announce[%d]", i)
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsUnspecified() {
			k.complain(key, "%q is no IP address", text)
		} else if other := families[a.Unmap().Is4()]; other != "" {
			k.complain(key, "%s and %s are of one family; announce one of each", other, text)
		} else {
			families[a.Unmap().Is4()] = text
		}
	}
	for key, list := range map[string][]string{"turn.allow": t.Allow, "seed.allow": c.Seed.Allow} {
		for i, text := range list {
			if _, err := access.ParsePeer(text); err != nil {
				k.complain(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			}
		}
	}
	k.relayNumbers(t)
}

func (k *checker) iceServer(key string, s ICEServer) {
	if len(s.URLs) == 0 {
		k.complain(key+".urls", "is empty (such as turn:turn.example.com:3478?transport=udp)")
	}
	for i, u := range s.URLs {
		scheme, _, _ := strings.Cut(u, ":")
		if scheme != "stun" && scheme != "stuns" && scheme != "turn" && scheme != "turns" {
			k.complain(fmt.Sprintf("%s.urls[%d]", key, i), "%q is no address of a STUN or TURN server (such as turn:turn.example.com:3478?transport=udp)", u)
		}
	}
	if s.Secret == "" {
		return
	}
	if _, err := access.NewRelaySecret(s.Secret); err != nil {
		k.complain(key+".secret", "%v", err)
	}
	if s.Username != "" || s.Credential != "" {
		k.complain(key+".username", "and credential are made with the secret (leave them out, or the secret)")
	}
}

func (k *checker) relayNumbers(t TurnConfig) {
	if t.PortMin < 1 || t.PortMax > 65535 || t.PortMax < t.PortMin {
		k.complain("turn.port_min", "and turn.port_max: %d to %d is no range of ports", t.PortMin, t.PortMax)
	}
	if t.Drain < 0 {
		k.complain("turn.drain", "%s is below 0s", t.Drain)
	}
	k.bounds([]bound{
		{"turn.sockets", int64(t.Sockets), 0, "sockets; 0 is one a processor"},
		{"turn.max_allocations", int64(t.MaxAllocations), 1, "allocations"},
		{"turn.max_per_user", int64(t.MaxPerUser), 1, "allocations"},
		{"turn.max_per_address", int64(t.MaxPerAddress), 1, "allocations"},
		{"turn.max_connections", int64(t.MaxConnections), 1, "connections"},
		{"turn.rate", t.Rate, 0, "bytes per second; 0 is unlimited"},
		{"turn.allocation_rate", t.AllocationRate, 0, "bytes per second; 0 is unlimited"},
	})
}
