package netlab

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/turnd"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// reachURL has this test's program check the line of the host that it runs on.
const reachURL = "LEEWAY_TEST_REACH_URL"

// TestACheckTellsTheNATs has the check of a terminal ask two relays of the cluster behind each kind of gateway.
func TestACheckTellsTheNATs(t *testing.T) {
	if url := os.Getenv(reachURL); url != "" {
		r, err := netcheck.Run(t.Context(), netcheck.Config{URL: url, Phases: []netcheck.Phase{netcheck.Reach}})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(os.Stderr).Encode(r.Reachability); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, c := range map[string]struct {
		gateway GatewayConfig
		want    string
	}{
		"no NAT":          {GatewayConfig{}, netstat.Untranslated},
		"port-restricted": {GatewayConfig{NAT: PortRestricted}, netstat.EndpointIndependent},
		"symmetric":       {GatewayConfig{NAT: Symmetric}, netstat.Dependent},
	} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t, c.gateway)
			got := home.reach(t, []string{relayOn(t, home.outside), relayOn(t, home.elsewhere)})
			if got.IPv4 != c.want || got.IPv6 != netstat.NoAnswer || len(got.Candidates) != 2 {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
	t.Run("no relay answers", func(t *testing.T) {
		home := newHome(t, GatewayConfig{NAT: PortRestricted})
		closed := udp(t, home.outside) // takes packets and says nothing
		if got := home.reach(t, []string{closed.addr().String()}); got.IPv4 != netstat.NoAnswer || len(got.Candidates) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// reachPolicy has a relay decide over a server's packets.
type reachPolicy struct{ *relay.Relay }

func (p reachPolicy) Open(user string) (turnd.Flow, error) {
	f, err := p.Relay.Open(user)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// relayOn starts a relay on a host.
func relayOn(t *testing.T, h *Host) string {
	t.Helper()
	secret, err := access.NewRelaySecret(strings.Repeat("s", 32))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := relay.New(relay.Config{Secrets: access.RelaySecrets{secret}, Metrics: metric.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var s *turnd.Server
	if err := h.Do(func() (err error) {
		s, err = turnd.Listen(turnd.Config{Listen: h.Addr().String() + ":3478", Sockets: 1, Policy: reachPolicy{rules}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// reach checks the line of a home's host against a probe server outside that names these STUN servers.
func (h home) reach(t *testing.T, servers []string) (got netcheck.Reachability) {
	t.Helper()
	bulk := wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: 10 * time.Second}
	tests, err := probe.New(probe.Config{
		Upgrade: func(w http.ResponseWriter, r *http.Request) (probe.Socket, error) { return bulk.Bulk(w, r) },
		Offers:  func(r *http.Request) bool { return wsconn.OffersBulk(r, probe.Subprotocol) },
		STUN:    servers,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.outside.Listen(t.Context(), "tcp", net.JoinHostPort(h.outside.Addr().String(), "8090"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: tests, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // ends with the test
	}()
	defer func() {
		_ = server.Close()
		<-ended
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := h.one.Command(t.Context(), self, "-test.run=^TestACheckTellsTheNATs$", "-test.count=1")
	child.Env = append(os.Environ(), reachURL+"=http://"+l.Addr().String())
	var said strings.Builder
	child.Stderr = &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if err := json.Unmarshal([]byte(said.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return got
}
