package turnd

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/relay"
)

// mostReply is how many times its bytes a request without a password is answered with (spec/turn.md): 72 for an Allocate of 28, 52
// for a binding request of 20 over IPv6.
const mostReply = 2.6

// unanswered is how many requests are counted that got no reply.
func unanswered(w *world, reason string) float64 {
	for _, d := range relay.Metrics() {
		if d.Name == "leeway_turn_unanswered_requests_total" {
			return w.metrics.Value(d, reason)
		}
	}
	return -1
}

func stranger(t *testing.T, w *world, from string) *net.UDPConn {
	t.Helper()
	local, err := net.ResolveUDPAddr("udp", from)
	if err != nil {
		t.Fatal(err)
	}
	at := w.Addr().(*net.TCPAddr)
	c, err := net.DialUDP("udp", local, &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadBuffer(1 << 20)
	return c
}

// firstBit makes a message none: pion does not look at the bit.
type firstBit struct{}

// AddTo implements stun.Setter.
func (firstBit) AddTo(m *stun.Message) error {
	m.Raw[0] |= 0x80
	return nil
}

func attribute(kind stun.AttrType, value ...byte) stun.Setter {
	return stun.RawAttribute{Type: kind, Value: value}
}

// falseNonce is a request for an allocation with a password and a nonce of so many bytes, both made up.
func falseNonce(length int) []stun.Setter {
	return []stun.Setter{
		stun.NewType(stun.MethodAllocate, stun.ClassRequest), attribute(stun.AttrRequestedTransport, 17, 0, 0, 0),
		attribute(stun.AttrNonce, bytes.Repeat([]byte("Z"), length)...), stun.NewShortTermIntegrity("x"),
	}
}

// TestALongNonceEndsItsConnection: pion would read it, which takes a tenth of a millisecond, before it looks at the password.
func TestALongNonceEndsItsConnection(t *testing.T) {
	w := newWorld(t, nil)
	for length, want := range map[int]bool{longestNonce: false, 1400: true} {
		c, err := net.Dial("tcp", w.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(stun.MustBuild(append([]stun.Setter{stun.TransactionID}, falseNonce(length)...)...).Raw); err != nil {
			t.Fatal(err)
		}
		if got := ended(t, c); got != want { // else there is a reply
			t.Errorf("after a nonce of %d bytes the connection has ended: %t", length, got)
		}
	}
}

// TestAStrangersRequestIsAnsweredWithLittle: what is asked without a password has a reply of little more than its own length, or
// none.
func TestAStrangersRequestIsAnsweredWithLittle(t *testing.T) {
	w := newWorld(t, nil)
	c := stranger(t, w, "127.0.0.1:0")
	udp := attribute(stun.AttrRequestedTransport, 17, 0, 0, 0)
	for _, r := range []struct {
		name     string
		setters  []stun.Setter
		answered bool
	}{
		{"binding", []stun.Setter{stun.BindingRequest}, true},
		{"allocate", []stun.Setter{stun.NewType(stun.MethodAllocate, stun.ClassRequest), udp}, true},
		{"bare allocate", []stun.Setter{stun.NewType(stun.MethodAllocate, stun.ClassRequest)}, false},
		{"refresh", []stun.Setter{stun.NewType(stun.MethodRefresh, stun.ClassRequest), attribute(stun.AttrLifetime, 0, 0, 0, 0)}, false},
		{"create permission", []stun.Setter{stun.NewType(stun.MethodCreatePermission, stun.ClassRequest), udp}, false},
		{"channel bind", []stun.Setter{stun.NewType(stun.MethodChannelBind, stun.ClassRequest), udp}, false},
		{"another method", []stun.Setter{stun.NewType(0x0fff, stun.ClassRequest), udp}, false},
		{"allocate with its first bit set", []stun.Setter{stun.NewType(stun.MethodAllocate, stun.ClassRequest), udp, firstBit{}}, false},
		{
			"allocate with a false password",
			[]stun.Setter{stun.NewType(stun.MethodAllocate, stun.ClassRequest), udp, stun.NewShortTermIntegrity("x")}, true,
		},
		{"allocate with a false nonce", falseNonce(longestNonce), true},
		{"allocate with a nonce that is none", falseNonce(longestNonce + 1), false},
	} {
		t.Run(r.name, func(t *testing.T) {
			m := stun.MustBuild(append([]stun.Setter{stun.TransactionID}, r.setters...)...)
			// A binding request behind it is answered in any case, and shows that nothing else came.
			last := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
			for _, b := range [][]byte{m.Raw, last.Raw} {
				if _, err := c.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			got := 0
			for {
				b := make([]byte, 2048)
				_ = c.SetReadDeadline(time.Now().Add(patience))
				n, err := c.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				reply := &stun.Message{Raw: b[:n]}
				if err := reply.Decode(); err != nil {
					t.Fatal(err)
				}
				if reply.TransactionID == last.TransactionID {
					break
				}
				got += n
			}
			if (got > 0) != r.answered || float64(got) > mostReply*float64(len(m.Raw)) {
				t.Errorf("%d bytes are answered by %d", len(m.Raw), got)
			}
		})
	}
	if n := unanswered(w, "incomplete"); n != 7 {
		t.Errorf("%v requests are counted as incomplete", n)
	}
}

// TestRepliesToAnAddressAreBounded: a flood in another's name brings that address no more than it may have allocations, and other
// addresses lose nothing by it.
func TestRepliesToAnAddressAreBounded(t *testing.T) {
	const most, asked = 50, 2000
	w := newWorld(t, func(_ *Config, r *relay.Config) { r.MaxPerAddress = most })
	c := stranger(t, w, "127.0.0.1:0")
	began := time.Now()
	for range asked {
		m := stun.MustBuild(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest), attribute(stun.AttrRequestedTransport, 17, 0, 0, 0))
		if _, err := c.Write(m.Raw); err != nil {
			t.Fatal(err)
		}
	}
	other := stranger(t, w, "127.0.0.2:0")
	if _, err := other.Write(stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw); err != nil {
		t.Fatal(err)
	}
	_ = other.SetReadDeadline(time.Now().Add(patience))
	if _, err := other.Read(make([]byte, 2048)); err != nil {
		t.Fatalf("another address is not answered: %v", err)
	}
	replies := 0
	for b := make([]byte, 2048); ; replies++ {
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := c.Read(b); err != nil {
			break
		}
	}
	if bound := most + int(time.Since(began).Seconds()*most/10) + 1; replies < most || replies > bound {
		t.Errorf("%d of %d requests were answered, want %d to %d", replies, asked, most, bound)
	}
	if n := unanswered(w, "address"); n == 0 {
		t.Error("nothing is counted")
	}
}

func FuzzIncomplete(f *testing.F) {
	f.Add(stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw)
	f.Add(stun.MustBuild(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest), attribute(stun.AttrRequestedTransport, 17, 0, 0, 0)).Raw)
	f.Add(stun.MustBuild(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassErrorResponse), stun.NewShortTermIntegrity("x")).Raw)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &stun.Message{Raw: append([]byte(nil), b...)}
		drops, charged := incomplete(b), unproven(b)
		if drops && charged {
			t.Fatal("both a request and a reply")
		}
		switch {
		case len(b) > 0 && b[0] > 0x7f && !drops:
			t.Fatal("neither STUN nor a channel's data, and taken")
		case len(b) == 0 || b[0] > 0x3f || m.Decode() != nil || len(b) != stunHeader+int(m.Length):
			return
		}
		if signed := m.Contains(stun.AttrMessageIntegrity); signed && (drops || charged) {
			t.Fatalf("%v is signed", m)
		} else if reply := m.Type.Class == stun.ClassSuccessResponse || m.Type.Class == stun.ClassErrorResponse; !signed && reply != charged {
			t.Fatalf("%v: charged is %v", m, charged)
		}
	})
}
