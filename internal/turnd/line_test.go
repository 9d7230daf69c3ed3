package turnd

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/turnclient"
)

// line opens one from a free port.
func (w *world) line(holder string, peer netip.AddrPort) (*turnclient.Line, error) {
	username, password := w.secret.Mint("demo", holder, time.Now().Add(time.Minute))
	return turnclient.OpenLine(netip.MustParseAddrPort("127.0.0.1:0"), addrPort(w.Addr()), peer, username, password)
}

// TestALineCarriesFrames there and back, and is given back.
func TestALineCarriesFrames(t *testing.T) {
	w := newWorld(t, allowLoopback)
	peer := addrPort(echo(t, "127.0.0.1:0"))
	l, err := w.line("a", peer)
	if err != nil {
		t.Fatal(err)
	}
	if w.relayedAt(l.Relayed) == nil {
		t.Errorf("nothing is relayed at %s", l.Relayed)
	}
	p := make([]byte, 1600)
	for _, size := range []int{0, 3, 1200} {
		got := -1
		for range 20 { // UDP may lose
			if _, err := l.Write(turnclient.Frame(size)); err != nil {
				t.Fatal(err)
			}
			_ = l.SetReadDeadline(time.Now().Add(patience / 20))
			n, err := l.Read(p)
			if err != nil {
				continue
			}
			if payload, ok := turnclient.Payload(p[:n]); ok {
				got = len(payload)
				break
			}
		}
		if got != size {
			t.Errorf("of %d bytes %d came back", size, got)
		}
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	w.drained()
}

// TestALineSaysWhyThereIsNone: the request that was refused, and by what.
func TestALineSaysWhyThereIsNone(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := w.line("a", netip.MustParseAddrPort("10.0.0.1:9")); err == nil || !strings.Contains(err.Error(), "ChannelBind") {
		t.Errorf("a line to a refused peer: %v", err)
	}
	w.relay.Drain()
	if _, err := w.line("b", netip.MustParseAddrPort("8.8.8.8:9")); err == nil || !strings.Contains(err.Error(), "486") {
		t.Errorf("a line of a relay that drains: %v", err)
	}
}

func TestPayloadsAreOfTheChannel(t *testing.T) {
	for _, frame := range [][]byte{nil, {0x40, 0, 0}, {0x40, 1, 0, 0}, {0, 1, 0, 0}, {0x40, 0, 0, 1}} {
		if p, ok := turnclient.Payload(frame); ok {
			t.Errorf("%x carries %x", frame, p)
		}
	}
	if p, ok := turnclient.Payload(append(turnclient.Frame(2), 0, 0)); !ok || len(p) != 2 {
		t.Errorf("a padded frame carries %x, %v", p, ok)
	}
}
