package tracker

import (
	"net/netip"
	"strings"
	"testing"
)

func secretsOf(secret string) secrets {
	return newSecrets(&Config{Secret: []byte(strings.Repeat(secret, 32))})
}

// TestNamesAreTheSameAtAllTrackersAndAtNoOther: names come of the secret alone, and each kind has a key of its own.
func TestNamesAreTheSameAtAllTrackersAndAtNoOther(t *testing.T) {
	here, there, stranger := secretsOf("a"), secretsOf("a"), secretsOf("b")
	if here.swarmID("site", "title") != there.swarmID("site", "title") {
		t.Error("two trackers of a cluster name a swarm differently")
	}
	if here.swarmID("site", "title") == stranger.swarmID("site", "title") {
		t.Error("the name does not need the secret")
	}
	if here.swarmID("site", "title") == here.subjectID("site", "title") {
		t.Error("a swarm and a subject of the same words have one name")
	}
	if here.swarmID("sitet", "itle") == here.swarmID("site", "title") {
		t.Error("where the site ends makes no difference")
	}
}

// TestAddressesAreKnownByTheirSubnets: neighbors share a name, strangers do not, and what is not known has none.
func TestAddressesAreKnownByTheirSubnets(t *testing.T) {
	k := secretsOf("a")
	subnet := func(a string) string { return k.Subnet(Visitor{Address: netip.MustParseAddr(a)}) }
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.200", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"2001:db8:7:1::1", "2001:db8:7:ffff::2", true},
		{"2001:db8:7::1", "2001:db8:8::1", false},
	} {
		if (subnet(c.a) == subnet(c.b)) != c.same {
			t.Errorf("%s and %s: the same is not %v", c.a, c.b, c.same)
		}
	}
	if got := k.Subnet(Visitor{}); got != "" {
		t.Errorf("an address that is not known is named %q", got)
	}
	if name := subnet("192.0.2.1"); strings.Contains(name, "192") || len(name) != 16 {
		t.Errorf("%q shows the address, or is not 12 bytes", name)
	}
}

// TestADrawFollowsTheViewer: by the subject of its token wherever it is, else by its address, in IPv6 by its /64.
func TestADrawFollowsTheViewer(t *testing.T) {
	k := secretsOf("a")
	at := netip.MustParseAddr
	if k.drawn("s", "ann", at("192.0.2.1")) != k.drawn("s", "ann", at("198.51.100.1")) {
		t.Error("a subject is drawn by where it is")
	}
	if k.drawn("s", "", at("192.0.2.1")) == k.drawn("s", "", at("192.0.2.2")) {
		t.Error("two addresses are drawn together")
	}
	if k.drawn("s", "", at("192.0.2.1")) != k.drawn("s", "", at("::ffff:192.0.2.1")) {
		t.Error("the same address, written for IPv6, is drawn otherwise")
	}
	if k.drawn("s", "", at("2001:db8::1")) != k.drawn("s", "", at("2001:db8::2")) {
		t.Error("a viewer that changes its address within a /64 is drawn anew")
	}
	if k.drawn("s", "", at("192.0.2.1")) == k.drawn("t", "", at("192.0.2.1")) {
		t.Error("two sites draw alike")
	}
}
