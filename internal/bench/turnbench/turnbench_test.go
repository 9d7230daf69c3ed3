package turnbench

import (
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/turnd"
)

type policy struct{ *relay.Relay }

func (p policy) Open(user string) (turnd.Flow, error) { return p.Relay.Open(user) }

// TestPacketsComeBack has the bench's clients use a relay in this process.
func TestPacketsComeBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := access.NewRelaySecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	loopback, err := relay.ParsePeer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := relay.New(relay.Config{Secrets: access.RelaySecrets{s}, Allow: []relay.Peer{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := turnd.Listen(turnd.Config{Listen: "127.0.0.1:0", Policy: policy{rules}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p, err := openPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := gather(3, server.Addr().String(), p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err := c.pace(t.Context(), 1200, 500, 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if sent, back := c.counts(); sent >= 10 && back >= 10 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing comes back")
		}
	}
	if server.Allocations() != 3 {
		t.Errorf("%d allocations", server.Allocations())
	}
}

func TestFigures(t *testing.T) {
	m := measured{sent: 1000, back: 1000 - 1, seconds: 1, cpu: 0.5}
	if m.loss() != 1 || m.perCore() != 3998 || math.Abs(m.perGB(1000)-250.125) > 0.001 {
		t.Errorf("%v %v %v", m.loss(), m.perCore(), m.perGB(1000))
	}
	if m.late(traffic{perSecond: 1000}) != "" || m.late(traffic{perSecond: 1100}) == "" {
		t.Error("who is late is not told")
	}
}
