package transportbench

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/transfer"
)

// TestPagesAreEnds plays some seconds of each side in a browser.
func TestPagesAreEnds(t *testing.T) {
	if err := netlab.Available(); err != nil {
		t.Skip(err)
	}
	if err := demopage.MissingEnd(t.Context()); err != nil {
		t.Skip(err)
	}
	line := netlab.Link{Rate: 4_000_000, Delay: 5 * time.Millisecond, Queue: 30_000}
	bytes := []burst{{at: 200 * time.Millisecond, bytes: 50_000}}
	for name, f := range map[string]flow{
		"hidden sender":       {kind: ledbatLane, near: hiddenPage, peers: 2, bursts: bytes},
		"one of two tabs":     {kind: ledbatLane, near: sharedPage},
		"viewer that asks":    {kind: asked, far: visiblePage, senders: 2},
		"browser and browser": {kind: ledbatLane, near: visiblePage, far: visiblePage, bursts: bytes},
		"hidden Firefox":      {kind: ledbatLane, near: firefoxPage, peers: 2, bursts: bytes},
	} {
		t.Run(name, func(t *testing.T) {
			if err := demopage.MissingFirefoxEnd(t.Context()); f.near == firefoxPage && err != nil {
				t.Skip(err)
			}
			sc := scene{name: name, line: line, length: 3 * time.Second, flows: []flow{f}}
			if f.near == sharedPage {
				sc.length += 3 * time.Second // tabs are counted every two
			}
			log := &transcript{} // several processes write to it
			rec, _, err := sc.play(t.Context(), &bench.Run{Log: log})
			if err != nil {
				t.Fatalf("%v\n%s", err, &log.text)
			}
			if rate := rec.rate(0, sc.length, 0); rate < 100_000 {
				t.Errorf("%.0f bit/s behind the bottleneck\n%s", rate, &log.text)
			}
			if n := len(rec.took(0)); n != len(f.bursts) {
				t.Errorf("%d foreground segments of %d arrived\n%s", n, len(f.bursts), &log.text)
			}
			if told := rec.told(0, 0, sc.length); len(told) == 0 || told[len(told)-1].RTT <= 0 {
				t.Errorf("the page says of itself %+v", told)
			} else if parts := told[len(told)-1].Parts; (parts == 2) != (f.near == sharedPage) {
				t.Errorf("the line is divided among %d tabs", parts)
			}
		})
	}
}

func TestAddressesThatBrowsersHideAreFilledIn(t *testing.T) {
	s := &pageStack{place: place{setup: setup{Addr: "10.1.2.3"}}}
	const name = "4c1c2d5e-0a1b-4c3d-8e9f-001122334455.local"
	m := signal{
		Description: &transfer.Description{SDP: "a=candidate:1 1 udp 1 " + name + " 5000 typ host\r\na=x\r\n"},
		Candidate:   &transfer.Candidate{Candidate: "candidate:1 1 udp 1 " + name + " 5000 typ host"},
	}
	s.named(&m)
	if m.Description.SDP != "a=candidate:1 1 udp 1 10.1.2.3 5000 typ host\r\na=x\r\n" || m.Candidate.Candidate != "candidate:1 1 udp 1 10.1.2.3 5000 typ host" {
		t.Errorf("%q, %q", m.Description.SDP, m.Candidate.Candidate)
	}
	s.named(nil)
}
