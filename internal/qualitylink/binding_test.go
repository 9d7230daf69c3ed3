package qualitylink

import (
	"net"
	"net/netip"
	"testing"

	"github.com/pion/stun/v4"
)

// answer is what a server says to a request.
func answer(t testing.TB, b *Binding, kind stun.MessageType, at netip.AddrPort) []byte {
	t.Helper()
	m, err := stun.Build(kind, stun.NewTransactionIDSetter(b.id), &stun.XORMappedAddress{IP: net.IP(at.Addr().AsSlice()), Port: int(at.Port())})
	if err != nil {
		t.Fatal(err)
	}
	return m.Raw
}

func TestABindingTakesItsOwnAnswerAlone(t *testing.T) {
	b, err := NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"192.0.2.7:40000", "[2001:db8::7]:1"} {
		at := netip.MustParseAddrPort(text)
		if got, ok := b.Mapped(answer(t, b, stun.BindingSuccess, at)); !ok || got != at {
			t.Errorf("%s: %v %t", at, got, ok)
		}
		for name, packet := range map[string][]byte{
			"another's": answer(t, other, stun.BindingSuccess, at), "an error": answer(t, b, stun.BindingError, at), "a request": b.Request,
			"cut off": answer(t, b, stun.BindingSuccess, at)[:24], "nothing": nil,
			"port 0": answer(t, b, stun.BindingSuccess, netip.AddrPortFrom(at.Addr(), 0)),
		} {
			if got, ok := b.Mapped(packet); ok {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func FuzzMapped(f *testing.F) {
	b, err := NewBinding()
	if err != nil {
		f.Fatal(err)
	}
	b.id = [stun.TransactionIDSize]byte{}
	f.Add(answer(f, b, stun.BindingSuccess, netip.MustParseAddrPort("192.0.2.7:40000")))
	f.Add(answer(f, b, stun.BindingSuccess, netip.MustParseAddrPort("[2001:db8::7]:40000")))
	f.Add([]byte("\x01\x01\x00\x04\x21\x12\xa4\x42\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if at, ok := b.Mapped(packet); ok && (!at.Addr().IsValid() || at.Port() == 0) {
			t.Errorf("%x: %v", packet, at)
		}
	})
}
