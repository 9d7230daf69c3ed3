package probe

import (
	"net/netip"
	"testing"
	"time"
)

// TestHTTP2ConnectionsAreBounded: an address has so many, all have so many, each is charged as a test, and an end makes room.
func TestHTTP2ConnectionsAreBounded(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		var leave []func()
		for n := range maxHTTP2 / maxHTTP2PerAddress {
			at := netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})
			for range maxHTTP2PerAddress {
				end, ok := w.server.EnterHTTP2(at)
				if !ok {
					t.Fatalf("connection %d is refused", len(leave))
				}
				leave = append(leave, end)
			}
			if _, ok := w.server.EnterHTTP2(at); ok {
				t.Fatal("one more of an address is taken")
			}
		}
		other := netip.MustParseAddr("203.0.113.9")
		if _, ok := w.server.EnterHTTP2(other); ok {
			t.Error("one more in all is taken")
		}
		for _, end := range leave {
			end()
			end() // only once
		}
		if all, networks := w.server.http2.Taken(); all != 0 || networks != 0 {
			t.Errorf("%+v after the end of all", w.server.http2)
		}
		end, ok := w.server.EnterHTTP2(other)
		if !ok {
			t.Fatal("there is no room again")
		}
		end()
		// The last one in all found no place under its own address, the others none in all.
		if a, b := w.metrics.Value(mRefused, refusedAddress), w.metrics.Value(mRefused, refusedTotal); a != maxHTTP2/maxHTTP2PerAddress-1 || b != 2 {
			t.Errorf("%v refused of an address, %v in all", a, b)
		}
	})
}

// TestHTTP2ConnectionsAreCharged: an address pays for each, and has none any more once its day is used up.
func TestHTTP2ConnectionsAreCharged(t *testing.T) {
	inBubble(t, Config{DailyBytes: 4 * startCost}, func(t *testing.T, w *world) {
		at := netip.MustParseAddr("198.51.100.7")
		for n := range 4 {
			end, ok := w.server.EnterHTTP2(at)
			if !ok {
				t.Fatalf("connection %d is refused", n)
			}
			end()
		}
		if _, ok := w.server.EnterHTTP2(at); ok || w.metrics.Value(mRefused, refusedBytes) != 1 {
			t.Error("connections cost nothing, or a refusal is not counted")
		}
		<-time.After(6 * time.Hour)
		if end, ok := w.server.EnterHTTP2(at); !ok {
			t.Error("a quarter of a day later it is refused")
		} else {
			end()
		}
	})
}
