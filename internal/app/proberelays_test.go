package app

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// TestProbeRelays: a client is told the relays with credentials that the relay takes, those of an address being one user's; servers
// without credentials are told as STUN servers alone.
func TestProbeRelays(t *testing.T) {
	text := strings.Repeat("s", 40)
	secret, err := access.NewRelaySecret(text)
	if err != nil {
		t.Fatal(err)
	}
	servers := []ICEServer{
		{URLs: []string{"turn:turn.example.com:3478?transport=udp", "turns:turn.example.com:443?transport=tcp"}, Secret: text},
		{URLs: []string{"turn:10.0.0.1:4000"}, Username: "u", Credential: "c"},
		{URLs: []string{"stun:[2001:db8::1]", "stun:stun.example.com", "turn:x:1?transport=tcp", "stun:a:0"}},
	}
	relays, err := probeRelays(servers)
	if err != nil {
		t.Fatal(err)
	}
	first, same, other := relays(netip.MustParseAddr("2001:db8::1")), relays(netip.MustParseAddr("2001:db8::2")), relays(netip.MustParseAddr("192.0.2.7"))
	if len(first) != 2 || !slices.Equal(first[0].URLs, servers[0].URLs) || first[1].Username != "u" || first[1].Credential != "c" {
		t.Fatalf("%+v", first)
	}
	user, err := access.ParseRelayUser(first[0].Username)
	if err != nil || first[0].Credential != secret.Password(first[0].Username) || user.Site != checkSite {
		t.Errorf("%+v: %v", first[0], err)
	}
	if left := time.Until(user.Expires); left <= 0 || left > checkLife {
		t.Errorf("it is good for %s", left)
	}
	again, err := access.ParseRelayUser(same[0].Username)
	if err != nil || again.Name() != user.Name() {
		t.Errorf("one network has the users %s and %s: %v", user.Name(), again.Name(), err)
	}
	if another, err := access.ParseRelayUser(other[0].Username); err != nil || another.Name() == user.Name() {
		t.Errorf("two networks have the user %s: %v", user.Name(), err)
	}
	want := []string{"turn.example.com:3478", "10.0.0.1:4000", "[2001:db8::1]:3478", "stun.example.com:3478"}
	if got := stunOf(ProbeConfig{ICEServers: servers}); !slices.Equal(got, want) {
		t.Errorf("STUN servers %v", got)
	}
	if got := stunOf(ProbeConfig{STUN: []string{":3478"}, ICEServers: servers}); !slices.Equal(got, []string{":3478"}) {
		t.Errorf("STUN servers %v", got)
	}
	if none, err := probeRelays(servers[2:]); none != nil || err != nil {
		t.Errorf("relays without credentials: %v", err)
	}
	if _, err := probeRelays([]ICEServer{{URLs: servers[0].URLs, Secret: "short"}}); err == nil {
		t.Error("a short secret is taken")
	}
	if _, err := probeRelays(make([]ICEServer, 5)); err == nil {
		t.Error("five servers are taken")
	}
}
