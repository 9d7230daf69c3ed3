package turnd

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/access"
)

// allocates is a request for an allocation over UDP.
var allocates = []stun.Setter{stun.NewType(stun.MethodAllocate, stun.ClassRequest), attribute(stun.AttrRequestedTransport, 17, 0, 0, 0)}

// exchange sends a request and returns its reply.
func (w *world) exchange(conn net.PacketConn, setters ...stun.Setter) (asked, reply *stun.Message) {
	w.t.Helper()
	asked = stun.MustBuild(append([]stun.Setter{stun.TransactionID}, setters...)...)
	if _, err := conn.WriteTo(asked.Raw, net.UDPAddrFromAddrPort(addrPort(w.Addr()))); err != nil {
		w.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 2048)
	n, _, err := conn.ReadFrom(b)
	if err != nil {
		w.t.Fatal(err)
	}
	reply = &stun.Message{Raw: b[:n]}
	if err := reply.Decode(); err != nil || reply.TransactionID != asked.TransactionID {
		w.t.Fatalf("%v, which is no reply to %v: %v", reply, asked, err)
	}
	return asked, reply
}

// as are a request's credentials.
func as(username, password string, nonce stun.Nonce) []stun.Setter {
	return []stun.Setter{stun.NewUsername(username), stun.NewRealm("leeway"), nonce, stun.NewLongTermIntegrity(username, "leeway", password)}
}

func codeOf(m *stun.Message) stun.ErrorCode {
	var code stun.ErrorCodeAttribute
	if code.GetFrom(m) != nil {
		return 0
	}
	return code.Code
}

// TestWrongCredentialsAreUnauthorized: with 401, as RFC 8489 has it, from which a browser knows that the relay is there and refuses. What
// is malformed in other ways is not.
func TestWrongCredentialsAreUnauthorized(t *testing.T) {
	for _, transport := range []string{"udp", "tcp", "tls"} {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, nil)
			conn := w.dial(transport)
			_, challenge := w.exchange(conn, allocates...)
			var nonce stun.Nonce
			if err := nonce.GetFrom(challenge); err != nil || codeOf(challenge) != stun.CodeUnauthorized {
				t.Fatalf("the challenge is %v: %v", challenge, err)
			}
			username, password := w.secret.Mint("demo", "a", time.Now().Add(time.Minute))
			expired, old := w.secret.Mint("demo", "b", time.Now().Add(-time.Minute))
			other, err := access.NewRelaySecret(strings.Repeat("o", 32))
			if err != nil {
				t.Fatal(err)
			}
			foreign, theirs := other.Mint("demo", "c", time.Now().Add(time.Minute))
			for name, wrong := range map[string][]stun.Setter{
				"password": as(username, "x"+password, nonce), "secret": as(foreign, theirs, nonce),
				"time": as(expired, old, nonce), "user": as("nobody", password, nonce),
			} {
				asked, reply := w.exchange(conn, append(allocates[:2:2], wrong...)...)
				var realm stun.Realm
				var again stun.Nonce
				if code := codeOf(reply); code != stun.CodeUnauthorized || reply.Type != stun.NewType(stun.MethodAllocate, stun.ClassErrorResponse) {
					t.Errorf("%s: %v with code %d, want 401", name, reply, code)
				}
				if realm.GetFrom(reply) != nil || again.GetFrom(reply) != nil || realm.String() != "leeway" || again.String() != nonce.String() {
					t.Errorf("%s: realm %q, nonce %q", name, realm, again)
				}
				if len(reply.Raw) > len(asked.Raw) {
					t.Errorf("%s: %d bytes are answered by %d", name, len(asked.Raw), len(reply.Raw))
				}
			}
			malformed := []stun.Setter{allocates[0], attribute(stun.AttrRequestedTransport, 17)}
			if _, reply := w.exchange(conn, append(malformed, as(username, password, nonce)...)...); codeOf(reply) != stun.CodeBadRequest {
				t.Errorf("a malformed request with the right credentials: %v", reply)
			}
			if _, reply := w.exchange(conn, append(allocates[:2:2], as(username, password, nonce)...)...); reply.Type.Class != stun.ClassSuccessResponse {
				t.Errorf("the right credentials: %v", reply)
			}
			w.Server.refused.mu.Lock()
			n := len(w.Server.refused.of)
			w.Server.refused.mu.Unlock()
			if n != 0 {
				t.Errorf("%d refusals are remembered", n)
			}
			_, _ = w.exchange(conn, append([]stun.Setter{stun.NewType(stun.MethodRefresh, stun.ClassRequest), attribute(stun.AttrLifetime, 0, 0, 0, 0)}, as(username, password, nonce)...)...)
			w.drained()
		})
	}
}

func FuzzUnauthorized(f *testing.F) {
	id := stun.NewTransactionIDSetter([stun.TransactionIDSize]byte{1})
	refusal := stun.MustBuild(id, stun.NewType(stun.MethodAllocate, stun.ClassErrorResponse), &stun.ErrorCodeAttribute{Code: stun.CodeBadRequest})
	f.Add(refusal.Raw, stun.MustBuild(append([]stun.Setter{id}, append(allocates[:2:2], as("u", "p", stun.NewNonce("n"))...)...)...).Raw)
	f.Add(refusal.Raw, stun.MustBuild(append([]stun.Setter{id}, allocates...)...).Raw)
	f.Fuzz(func(t *testing.T, reply, asked []byte) {
		b := unauthorized(reply, request(asked), "leeway")
		if b == nil {
			return
		}
		m := &stun.Message{Raw: b}
		var nonce stun.Nonce
		if err := m.Decode(); err != nil || codeOf(m) != stun.CodeUnauthorized || nonce.GetFrom(m) != nil || !failed(b) || !unproven(b) {
			t.Fatalf("%x, %v", b, err)
		}
	})
}

// TestAPortThatIsTakenAnewStays: a socket is closed before its address is forgotten, and another allocation may get the port in between.
func TestAPortThatIsTakenAnewStays(t *testing.T) {
	s := &Server{relayed: map[netip.AddrPort]*relayed{}}
	of := &family{announce: netip.MustParseAddr("192.0.2.1")}
	first, second := &relayed{family: of, port: 50000}, &relayed{family: of, port: 50000}
	for _, r := range []*relayed{first, second} {
		s.enter(r)
	}
	if s.exit(first); s.relayedAt(second.announced()) != second {
		t.Error("it is forgotten with the first one")
	}
	if s.exit(second); s.relayedAt(second.announced()) != nil {
		t.Error("it stays behind its end")
	}
}
