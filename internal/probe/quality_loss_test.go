package probe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// TestLossIsTheLedgers: at each share of lost packets, and on a long thin path, periods and distances of both directions are those of
// the ledger, exactly. Packets of all kinds are lost once the line is open, acknowledgments and control messages too.
func TestLossIsTheLedgers(t *testing.T) {
	client, server := netip.MustParseAddrPort(clientAt), netip.MustParseAddrPort(serverAt)
	for _, c := range []struct {
		permille int
		delay    time.Duration
		messages int64
		interval int64
	}{
		{10, 10 * time.Millisecond, 500, 2000},
		{50, 40 * time.Millisecond, 300, 4000},
		{300, 40 * time.Millisecond, 150, 10_000},
		{50, 400 * time.Millisecond, 150, 10_000},
	} {
		t.Run(fmt.Sprintf("%d permille, %v", c.permille, c.delay), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(c.permille)))
			p := &planted{delay: c.delay, size: 700, sent: map[netip.AddrPort]int{}, lost: map[netip.AddrPort][]int{}}
			for _, from := range []netip.AddrPort{client, server} {
				for n := range int(c.messages) + quality.Tail {
					if random.IntN(1000) < c.permille {
						p.lost[from] = append(p.lost[from], n)
					}
				}
			}
			p.others = func() bool { return random.IntN(1000) >= c.permille }
			inAir(t, Config{}, &testkit.Air{Fate: p.fate}, func(t *testing.T, w *airWorld) {
				l, err := w.line("", 0)
				if err != nil {
					t.Fatal(err)
				}
				p.set(true)
				results, err := l.Run(t.Context(), []quality.Run{
					{Stream: 1, Direction: quality.Up, Messages: c.messages, Interval: c.interval, Size: 700},
					{Stream: 2, Direction: quality.Down, Messages: c.messages, Interval: c.interval, Size: 700},
				})
				if err != nil {
					t.Fatal(err)
				}
				for from, pattern := range map[netip.AddrPort]netstat.Pattern{client: results[0].There.Pattern(), server: results[1].Here.Pattern()} {
					var arrivals []netstat.Arrival
					for n := range c.messages {
						if !slices.Contains(p.lost[from], int(n)) {
							arrivals = append(arrivals, netstat.Arrival{Sequence: n})
						}
					}
					want := netstat.Record{Sent: c.messages, Arrivals: arrivals}.Pattern()
					if pattern.Lost != want.Lost || !slices.Equal(pattern.Periods, want.Periods) || !slices.Equal(pattern.Distances, want.Distances) || len(pattern.Reordered) != 0 {
						t.Errorf("from %v: %d lost, the ledger has %d; %d reordered", from, pattern.Lost, want.Lost, len(pattern.Reordered))
					}
				}
				l.Close()
			})
		})
	}
}

// TestAMessageHasAPacketOfItsOwn: messages of a check that are due at once are not lost together.
func TestAMessageHasAPacketOfItsOwn(t *testing.T) {
	client, server := netip.MustParseAddrPort(clientAt), netip.MustParseAddrPort(serverAt)
	p := &planted{delay: 10 * time.Millisecond, size: netcheck.MessageSize, sent: map[netip.AddrPort]int{}}
	inAir(t, Config{}, &testkit.Air{Fate: p.fate}, func(t *testing.T, w *airWorld) {
		r := w.raw()
		p.set(true)
		r.run(t, quality.Run{Stream: 1, Direction: quality.Both, Messages: 50, Interval: 1000, Size: netcheck.MessageSize})
		<-time.After(time.Second)
		for n := range uint32(50) {
			if err := r.Send(quality.Probe{Stream: 1, Sequence: n}.Append(nil, netcheck.MessageSize)); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Second)
		p.set(false)
		if p.sent[client] != 50 || p.sent[server] != 50 {
			t.Errorf("50 messages in %d packets, their echoes in %d", p.sent[client], p.sent[server])
		}
		r.Close()
	})
}
