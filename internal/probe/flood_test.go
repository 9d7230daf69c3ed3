package probe

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// flood has so many addresses pay for a byte.
func flood(t *testing.T, s *Server, n int) {
	t.Helper()
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if !s.charge(access.Network(a), 1) {
			t.Fatalf("address %d is refused", i)
		}
	}
}

func contextOf(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
