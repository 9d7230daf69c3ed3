package netcheck

import (
	"net"
	"testing"

	"github.com/pion/stun/v4"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/probe"
)

// stunServer answers each request but the first as a hostile or broken one would, and then as it has to. translate adds to the port that
// it tells.
func stunServer(t *testing.T, translate int) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		packet := make([]byte, 1500)
		for requests := 0; ; {
			n, from, err := conn.ReadFromUDP(packet)
			if err != nil {
				return
			}
			m := &stun.Message{Raw: packet[:n]}
			if requests++; requests == 1 || m.Decode() != nil {
				continue // it is asked again
			}
			told := &stun.XORMappedAddress{IP: from.IP, Port: from.Port + translate}
			wrong := &stun.XORMappedAddress{IP: from.IP, Port: 1}
			for _, answer := range []*stun.Message{
				stun.MustBuild(stun.TransactionID, stun.BindingSuccess, wrong),
				stun.MustBuild(stun.NewTransactionIDSetter(m.TransactionID), stun.BindingError, wrong),
				stun.MustBuild(stun.NewTransactionIDSetter(m.TransactionID), stun.BindingSuccess, told),
			} {
				_, _ = conn.WriteToUDP(answer.Raw, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}

// TestReach asks servers that lose packets and that answer what was not asked; it skips those that cannot be asked.
func TestReach(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	own, moved := stunServer(t, 0), stunServer(t, 1)
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		servers []string
		want    string
	}{
		"no NAT":           {[]string{own, own}, netstat.Untranslated},
		"the server's own": {[]string{":" + port}, netstat.Untranslated},
		"two mappings":     {[]string{own, moved}, netstat.Dependent},
		"one of a NAT":     {[]string{"nonsense", "127.0.0.1:0", "127.0.0.1:70000", moved}, netstat.UnknownMapping},
		"too many":         {[]string{"nonsense", "nonsense", "nonsense", "nonsense", own}, netstat.NoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			web := served(t, probe.Config{STUN: c.servers}, false)
			r, err := Run(t.Context(), Config{URL: web.URL, Phases: []Phase{Reach}})
			if err != nil || r.Reachability == nil || r.Reachability.IPv4 != c.want || r.Reachability.IPv6 != netstat.NoAnswer {
				t.Errorf("%+v, %v, want %s", r.Reachability, err, c.want)
			}
		})
	}
	t.Run("no servers", func(t *testing.T) {
		web := served(t, probe.Config{}, false)
		if r, err := Run(t.Context(), Config{URL: web.URL, Phases: []Phase{Reach}}); err != nil || r.Reachability != nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
