package loadgen

import (
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/tracker"
)

// TestAudienceComesBack ends every socket of an audience: it is back, under the same names, and meets newcomers.
func TestAudienceComesBack(t *testing.T) {
	addr, _ := serve(t, false, func(c *tracker.Config) { c.MaxPerAddress = 100 })
	a, err := OpenAudience(t.Context(), AudienceConfig{
		Trackers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1"), addr}, Sources: sources(4), Site: "demo", Sessions: 12, Swarms: 3, Want: 3,
		Update: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if n := len(a.On(1)); n != 12 || len(a.On(0)) != 0 {
		t.Errorf("%d sessions are at the tracker that there is", n)
	}
	a.Mark()
	for _, m := range a.all {
		_ = m.socket().conn.Close()
	}
	for end := time.Now().Add(time.Minute); len(a.Returns().Back) < 12; {
		if time.Now().After(end) {
			t.Fatalf("not all came back: %+v", a.Returns())
		}
		if !sleep.For(t.Context(), 10*time.Millisecond) {
			t.Fatal(t.Context().Err())
		}
	}
	if r := a.Returns(); r.Lost != 12 || r.Fresh != 0 || r.Absent != 0 || r.Failed != nil {
		t.Errorf("%+v", r)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		p, err := a.Probe(t.Context(), 1, 0, func(viewers int) bool { return viewers == 5 }, 2, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if p.Viewers == 5 && p.Introduced == 2 && p.Reached == 2 && len(p.Trip) == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a newcomer met %+v", p)
		}
	}
}

func TestAudienceThatIsRefused(t *testing.T) {
	addr, _ := serve(t, false, nil)
	if a, err := OpenAudience(t.Context(), AudienceConfig{Trackers: []netip.AddrPort{addr}, Site: "nosuchsite", Sessions: 3, Swarms: 1}); err == nil {
		t.Error("a site that there is not was joined", a.Close())
	}
}

func TestTrip(t *testing.T) {
	addr, _ := serve(t, false, nil)
	trip, err := OpenTrip(t.Context(), addr, addr, "demo", "/trip")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := trip.Once(); err != nil || d <= 0 {
			t.Errorf("%s, %v", d, err)
		}
	}
	if err := trip.Close(); err != nil {
		t.Error(err)
	}
	if _, err := trip.Once(); err == nil {
		t.Error("a trip over closed sockets")
	}
}
