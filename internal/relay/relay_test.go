package relay

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/testkit"
)

var start = time.Unix(1_800_000_000, 0)

// world is a relay with a clock of its own.
type world struct {
	*Relay
	t       *testing.T
	now     time.Time
	metrics testkit.Recorder
	secrets access.RelaySecrets
}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, now: start}
	for _, text := range []string{strings.Repeat("n", 32), strings.Repeat("b", 32)} {
		s, err := access.NewRelaySecret(text)
		if err != nil {
			t.Fatal(err)
		}
		w.secrets = append(w.secrets, s)
	}
	cfg := Config{Secrets: w.secrets, Now: func() time.Time { return w.now }, Metrics: &w.metrics}
	if change != nil {
		change(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Relay = r
	t.Cleanup(func() { w.metrics.Check(t) })
	return w
}

func TestSecretsAreRotatedByHavingTwo(t *testing.T) {
	w := newWorld(t, nil)
	for _, s := range w.secrets {
		username, credential := s.Mint("demo", "holder", start.Add(time.Minute))
		user, password, ok := w.Authenticate(username, true)
		if !ok || user != "demo:holder" || password != credential {
			t.Errorf("%s: %q %q %v, want %q", username, user, password, ok, credential)
		}
	}
	gone, err := access.NewRelaySecret(strings.Repeat("o", 32))
	if err != nil {
		t.Fatal(err)
	}
	username, _ := gone.Mint("demo", "holder", start.Add(time.Minute))
	if _, _, ok := w.Authenticate(username, true); ok {
		t.Error("a secret that is not in force is taken")
	}
	if n := w.metrics.Value(mRequests, authUnknown); n != 1 {
		t.Errorf("%v counted as of an unknown secret", n)
	}
}

// TestExpiredCredentialsCarryOn: a browser keeps the credentials that its connection began with.
func TestExpiredCredentialsCarryOn(t *testing.T) {
	w := newWorld(t, nil)
	username, _ := w.secrets[0].Mint("demo", "holder", start.Add(time.Minute))
	for _, c := range []struct {
		after        time.Duration
		fresh, taken bool
	}{
		{59 * time.Second, true, true}, {time.Minute, true, false}, {time.Minute, false, true},
		{carriedOn, false, true}, {carriedOn + time.Minute, false, false},
	} {
		w.now = start.Add(c.after)
		if _, _, ok := w.Authenticate(username, c.fresh); ok != c.taken {
			t.Errorf("after %v, fresh %v: %v", c.after, c.fresh, ok)
		}
	}
	if _, _, ok := w.Authenticate("not a username", true); ok {
		t.Error("anything is taken for a username")
	}
}

func TestQuotas(t *testing.T) {
	here, there := netip.MustParseAddr("2001:db8:1:1::1"), netip.MustParseAddr("2001:db8:1:2::1") // of one /48
	w := newWorld(t, func(c *Config) { c.MaxPerUser, c.MaxAllocations, c.MaxPerAddress = 2, 3, 3 })
	open := func(user string) *Flow {
		t.Helper()
		f, err := w.Open(user)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := open("demo:a")
	open("demo:a")
	if w.Admits("demo:a", here) {
		t.Error("a user has more than its quota")
	}
	if _, err := w.Open("demo:a"); err == nil {
		t.Error("a user is given more than its quota")
	}
	open("demo:b")
	if w.Admits("demo:c", here) || w.Ready() == nil {
		t.Error("there are more allocations than the relay has")
	}
	first.Close()
	first.Close()
	if !w.Admits("demo:a", here) || !w.Admits("demo:c", here) || w.Ready() != nil {
		t.Error("what was closed is not free")
	}
	w.Holds(here, 3)
	if w.Admits("demo:c", there) {
		t.Error("an address has more than its quota")
	}
	w.Holds(there, -1)
	if !w.Admits("demo:c", here) {
		t.Error("what an address gave back is not free")
	}
	w.Drain()
	if w.Admits("demo:c", here) || w.Ready() == nil || w.Connect(here, "tcp") {
		t.Error("a relay that drains takes something in")
	}
	if _, err := w.Open("demo:c"); err == nil {
		t.Error("a relay that drains gives allocations")
	}
	for outcome, want := range map[string]float64{
		allocationGranted: 3, allocationUser: 2, allocationTotal: 1, allocationAddress: 1, allocationDraining: 2,
	} {
		if n := w.metrics.Value(mRequested, outcome); n != want {
			t.Errorf("%s: %v, want %v", outcome, n, want)
		}
	}
	if n := w.metrics.Value(mAllocations); n != 2 {
		t.Errorf("%v allocations are counted, want 2", n)
	}
}

func TestConnections(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1")
	w := newWorld(t, func(c *Config) { c.MaxPerAddress, c.MaxConnections = 2, 3 })
	for _, c := range []struct {
		from netip.Addr
		in   bool
	}{{a, true}, {b, true}, {a, false}, {netip.MustParseAddr("192.0.2.2"), true}, {netip.MustParseAddr("192.0.2.3"), false}} {
		if w.Connect(c.from, "tls") != c.in {
			t.Errorf("%v: want %v", c.from, c.in)
		}
	}
	w.Disconnect(b, "tls")
	if !w.Connect(a, "tcp") {
		t.Error("what was disconnected is not free")
	}
	if x, y := w.metrics.Value(mConnections, "tls"), w.metrics.Value(mConnections, "tcp"); x != 2 || y != 1 {
		t.Errorf("%v and %v connections are counted, want 2 and 1", x, y)
	}
}

// TestConnectionsThatComeAndGoAreBounded: each may be a handshake of TLS, so an address begins so many, and others go on.
func TestConnectionsThatComeAndGoAreBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPerAddress = 100 })
	from := netip.MustParseAddr("2001:db9:1::1")
	begun := func() (n int) {
		for ; n < 10_000 && w.Connect(from, "tls"); n++ {
			w.Disconnect(from, "tls")
		}
		return n
	}
	if n := begun(); n != 200 {
		t.Errorf("%d at once, want 200", n)
	}
	w.now = w.now.Add(time.Second)
	from = netip.MustParseAddr("2001:db9:1:8000::1") // the same customer's
	if n := begun(); n != 10 {
		t.Errorf("%d a second later, want 10", n)
	}
	if !w.Connect(netip.MustParseAddr("192.0.2.1"), "tls") {
		t.Error("another address pays for it")
	}
	if n := w.metrics.Value(mRefused, "address"); n != 2 {
		t.Errorf("%v refusals are counted, want 2", n)
	}
}

// TestABalancersConnectionsAreItsClients: they count in all at once, and under an address when it is known whose they are.
func TestABalancersConnectionsAreItsClients(t *testing.T) {
	client, other, nobody := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.Addr{}
	w := newWorld(t, func(c *Config) { c.MaxPerAddress, c.MaxConnections = 1, 3 })
	for i := range 4 {
		if w.Connect(nobody, "tls") != (i < 3) {
			t.Errorf("connection %d without an address", i)
		}
	}
	if !w.Introduce(client) || w.Introduce(client) || !w.Introduce(other) {
		t.Error("a client has one connection, and each has his own")
	}
	w.Disconnect(nobody, "tls") // the second of the client's
	w.Disconnect(client, "tls")
	if !w.Connect(nobody, "tls") || !w.Introduce(client) {
		t.Error("what was disconnected is not free")
	}
	w.Misled()
	w.Drain()
	if w.Introduce(netip.MustParseAddr("192.0.2.3")) {
		t.Error("a relay that drains takes a client in")
	}
	for reason, want := range map[string]float64{"total": 1, "address": 1, "proxy": 1, "draining": 1} {
		if n := w.metrics.Value(mRefused, reason); n != want {
			t.Errorf("%s: %v, want %v", reason, n, want)
		}
	}
	if n := w.metrics.Value(mConnections, "tls"); n != 2 {
		t.Errorf("%v connections are counted, want 2", n)
	}
}

func TestRates(t *testing.T) {
	to := netip.MustParseAddrPort("93.184.216.34:5000")
	w := newWorld(t, func(c *Config) { c.AllocationRate, c.Rate = 100_000, 150_000 })
	send := func(f *Flow, bytes int) (passed int) {
		for sent := 0; sent < bytes; sent += 1000 {
			if f.Send(to, false, false, 500) && f.Receive(500) {
				passed += 1000
			}
		}
		return passed
	}
	var flows []*Flow
	for i := range 2 {
		f, err := w.Open(fmt.Sprintf("demo:%d", i))
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	one, all := 0, 0
	for range 100 { // ten seconds
		w.now = w.now.Add(100 * time.Millisecond)
		passed := send(flows[0], 40_000)
		one += passed
		all += passed + send(flows[1], 40_000)
	}
	if one < 900_000 || one > 1_030_000 {
		t.Errorf("one allocation passed %d bytes in 10 s, want about 1,000,000", one)
	}
	if all < 1_400_000 || all > 1_545_000 {
		t.Errorf("all passed %d bytes in 10 s, want about 1,500,000", all)
	}
	w.publish()
	if a, b := w.metrics.Value(mDropped, droppedAllocation), w.metrics.Value(mDropped, droppedTotal); a == 0 || b == 0 {
		t.Errorf("%v and %v packets are counted as dropped", a, b)
	}
	if n := w.metrics.Value(mBytes, toPeer) + w.metrics.Value(mBytes, toClient); n < float64(all) {
		t.Errorf("%v bytes are counted, %d passed", n, all)
	}
}

func TestPeers(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		for _, text := range []string{"10.1.0.0/16", "192.168.7.7", "172.16.0.9:4600", "[fd00::5]:4600"} {
			p, err := access.ParsePeer(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Reach.Allow = append(c.Reach.Allow, p)
		}
	})
	flow, err := w.Open("demo:a")
	if err != nil {
		t.Fatal(err)
	}
	for addr, allowed := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1::1": true, "192.0.1.1": true, "100.128.0.1": true, "172.32.0.1": true,
		"127.0.0.1": false, "127.255.255.254": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.31.255.255": false, "192.168.0.1": false, "fc00::1": false, "fdff::1": false, "fec0::1": false,
		"169.254.1.1": false, "fe80::1": false, "fe80::1%eth0": false, "100.64.0.1": false, "100.127.255.255": false,
		"169.254.169.254": false, "169.254.170.2": false, "168.63.129.16": false, "100.100.100.200": false, "192.0.0.192": false, "fd00:ec2::254": false,
		"224.0.0.1": false, "239.255.255.255": false, "255.255.255.255": false, "240.0.0.1": false, "ff02::1": false,
		"192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "192.88.99.1": false,
		// Addresses that carry one of IPv4.
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:8.8.8.8": true, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::a00:1": false, "2002:7f00:1::1": false, "2001:0:1:2:3:4:80ff:fffe": false,
		"2001:db8::1": false, "3fff::1": false, "100::1": false, "5f00::1": false,
		// Permitted by name.
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "192.168.7.7": true, "172.16.0.9": true, "fd00::5": true,
	} {
		if w.AllowsPeer(netip.MustParseAddr(addr)) != allowed {
			t.Errorf("%s: want %v", addr, allowed)
		}
	}
	for _, c := range []struct {
		to        string
		own, open bool
		passes    bool
	}{
		{"8.8.8.8:53", false, false, true}, {"127.0.0.1:80", false, false, false},
		{"172.16.0.9:4600", false, false, true}, {"172.16.0.9:22", false, false, false}, {"[fd00::5]:4600", false, false, true}, {"[fd00::5]:4601", false, false, false},
		{"192.168.7.7:1", false, false, true},
		// The relay's own addresses: where allocations are, and nothing else.
		{"8.8.4.4:50000", true, true, true}, {"8.8.4.4:4600", true, false, false}, {"10.9.9.9:50000", true, true, true}, {"192.168.7.7:9", true, false, true},
	} {
		if flow.Send(netip.MustParseAddrPort(c.to), c.own, c.open, 100) != c.passes {
			t.Errorf("%+v does not hold", c)
		}
	}
	for _, text := range []string{"", "10.0.0.0/33", "seed.example.com", "10.0.0.1:0", "10.0.0.1:http"} {
		if p, err := access.ParsePeer(text); err == nil {
			t.Errorf("%q is taken for %v", text, p)
		}
	}
	if n := w.metrics.Value(mRefusedPeers, "metadata"); n != 7 {
		t.Errorf("%v metadata addresses are counted, want 7", n)
	}
}

// TestUsernamesThatGoLeaveNothing: memory follows the allocations, not the usernames seen.
func TestUsernamesThatGoLeaveNothing(t *testing.T) {
	w := newWorld(t, nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func(from, to int) {
		for i := from; i < to; i++ {
			username, _ := w.secrets[i%2].Mint("demo", fmt.Sprint("holder", i), w.now.Add(time.Minute))
			user, _, ok := w.Authenticate(username, true)
			client := netip.AddrFrom4([4]byte{198, byte(i >> 16), byte(i >> 8), byte(i)})
			if !ok || !w.Admits(user, client) {
				t.Fatalf("%s is refused", username)
			}
			f, err := w.Open(user)
			if err != nil {
				t.Fatal(err)
			}
			w.Holds(client, 1)
			f.Close()
			w.Holds(client, -1)
		}
	}
	round(0, 1000)
	before := heap()
	round(1000, 101_000)
	after := heap()
	if len(w.users)+len(w.addresses)+len(w.connected) != 0 {
		t.Errorf("%d users and %d addresses are remembered", len(w.users), len(w.addresses))
	}
	if after > before+(256<<10) {
		t.Errorf("100,000 usernames left %d bytes", after-before)
	}
}
