package app

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// relays checks what trackers tell of relays, and the relay of this file.
func (k *checker) relays(c *Config) {
	for i, s := range c.Tracker.ICEServers {
		k.iceServer(fmt.Sprintf("tracker.ice_servers[%d]", i), s)
	}
	if n := len(c.Tracker.ICEServers); n > signal.MaxServers {
		k.complain("tracker.ice_servers", "%d servers, at most %d", n, signal.MaxServers)
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

// iceURL is the address of a STUN or TURN server: scheme, port, transport (RFC 7064, RFC 7065).
var iceURL = regexp.MustCompile(`^(stuns?|turns?):(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::(\d+))?(\?transport=(?:udp|tcp))?$`)

// isICEURL says whether viewers can read an address. With one that they cannot read they have no link at all: a browser gives the page no
// connection for the list that it is in.
func isICEURL(text string) bool {
	parts := iceURL.FindStringSubmatch(text)
	if parts == nil || len(text) > signal.MaxText || parts[3] != "" && strings.HasPrefix(text, "stun") {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(parts[2], "3478"), 10, 16)
	return err == nil && port > 0
}

func (k *checker) iceServer(key string, s ICEServer) {
	switch n := len(s.URLs); {
	case n == 0:
		k.complain(key+".urls", "is empty (such as turn:turn.example.com:3478?transport=udp)")
	case n > signal.MaxURLs:
		k.complain(key+".urls", "%d addresses, at most %d", n, signal.MaxURLs)
	}
	for i, u := range s.URLs {
		if !isICEURL(u) {
			k.complain(fmt.Sprintf("%s.urls[%d]", key, i), "%q is no address of a STUN or TURN server (such as turn:turn.example.com:3478?transport=udp)", u)
		}
	}
	for name, text := range map[string]string{"username": s.Username, "credential": s.Credential} {
		if len(text) > signal.MaxText {
			k.complain(key+"."+name, "has %d bytes, at most %d (no viewer takes what has a longer one)", len(text), signal.MaxText)
		}
	}
	if s.Secret == "" {
		if relay := func(u string) bool { return strings.HasPrefix(u, "turn") }; slices.ContainsFunc(s.URLs, relay) && (s.Username == "" || s.Credential == "") {
			k.complain(key+".secret", "is missing, and browsers take no relay without credentials (give one of turn.secrets, or username and credential)")
		}
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
