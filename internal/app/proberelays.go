package app

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/probe"
)

const (
	// checkSite stands in the usernames of credentials that a probe server mints, in the place of a site.
	checkSite = "check"
	// checkLife is how long they are good: a page asks for an address right away.
	checkLife = 5 * time.Minute
)

// probeRelays mints credentials of a site's relays for pages that check, one user of a relay for each address; nil where there are none.
func probeRelays(servers []ICEServer) (func(client netip.Addr) []probe.ICEServer, error) {
	if len(servers) > netcheck.MaxSTUN {
		return nil, cmdline.Usage(fmt.Errorf("probe.ice_servers: %d servers, at most %d", len(servers), netcheck.MaxSTUN))
	}
	type relay struct {
		probe.ICEServer
		secret *access.RelaySecret
	}
	var all []relay
	for _, s := range servers {
		one := relay{ICEServer: probe.ICEServer{URLs: s.URLs, Username: s.Username, Credential: s.Credential}}
		if s.Secret != "" {
			secret, err := access.NewRelaySecret(s.Secret)
			if err != nil {
				return nil, cmdline.Usage(fmt.Errorf("probe.ice_servers: %w", err))
			}
			one.secret = &secret
		} else if s.Username == "" {
			continue // a STUN server: clients know it from stun
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return func(client netip.Addr) []probe.ICEServer {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(access.Network(client).String())) // so a username does not tell the address
		holder := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
		told := make([]probe.ICEServer, 0, len(all))
		for _, r := range all {
			if r.secret != nil {
				r.Username, r.Credential = r.secret.Mint(checkSite, holder, time.Now().Add(checkLife).Truncate(time.Second))
			}
			told = append(told, r.ICEServer)
		}
		return told
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
