package app

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// checkSite stands in the usernames of credentials that a probe server mints, in the place of a site.
	checkSite = "check"
	// checkLife is how long they are good: a page asks for an address right away.
	checkLife = 5 * time.Minute
)

// probeRelays mints credentials of a site's relays for pages that check, one user of a relay for each address; nil where there are none.
func probeRelays(servers []ICEServer) (func(client netip.Addr) []signal.ICEServer, error) {
	if len(servers) > netcheck.MaxSTUN {
		return nil, cmdline.Usage(fmt.Errorf("probe.ice_servers: %d servers, at most %d", len(servers), netcheck.MaxSTUN))
	}
	fixed, minted, err := iceServers(servers)
	if err != nil {
		return nil, cmdline.Usage(fmt.Errorf("probe.ice_servers: %w", err))
	}
	// Without a username it is a STUN server: clients know it from stun.
	fixed = slices.DeleteFunc(fixed, func(s signal.ICEServer) bool { return s.Username == "" })
	if len(fixed)+len(minted) == 0 {
		return nil, nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return func(client netip.Addr) []signal.ICEServer {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(access.Network(client).String())) // so a username does not tell the address
		holder := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
		told := make([]signal.ICEServer, 0, len(minted)+len(fixed))
		for _, r := range minted {
			username, credential := r.Secret.Mint(checkSite, holder, time.Now().Add(checkLife).Truncate(time.Second))
			told = append(told, signal.ICEServer{URLs: r.URLs, Username: username, Credential: credential})
		}
		return append(told, fixed...)
	}, nil
}

// stunOf are the STUN servers that clients are told: those that are configured, or else the ICE servers, which answer STUN over UDP.
func stunOf(c ProbeConfig) (all []string) {
	if len(c.STUN) > 0 {
		return c.STUN
	}
	for _, s := range c.ICEServers {
		for _, u := range s.URLs {
			scheme, rest, _ := strings.Cut(u, ":")
			at, query, _ := strings.Cut(rest, "?")
			if scheme != "stun" && scheme != "turn" || query != "" && query != "transport=udp" {
				continue
			}
			if i := strings.LastIndexByte(at, ':'); i < 0 || strings.HasSuffix(at, "]") {
				at += ":3478"
			}
			if _, _, err := netcheck.ParseSTUN(at); err == nil && len(all) < netcheck.MaxSTUN {
				all = append(all, at)
			}
		}
	}
	return all
}
