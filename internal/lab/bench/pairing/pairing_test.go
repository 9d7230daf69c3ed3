package pairing

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// end tells when it is made and open.
type end struct {
	Base
	told chan string
}

func (e *end) Made()                   { e.told <- "made" }
func (e *end) Opened()                 { e.told <- "open" }
func (e *end) Control([]byte)          {}
func (e *end) Data([]byte)             {}
func (e *end) Drain()                  {}
func (e *end) Closed(peer.CloseReason) {}

// side is one process: what is said of its links is handled by the other in a goroutine of its own.
func side(t *testing.T, told chan string, said chan Signal) *Links[*end] {
	t.Helper()
	host, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return New(host, func(_ int, s Signal) { said <- s }, func() *end { return &end{told: told} })
}

func TestLinksOpen(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	told := [2]chan string{make(chan string, 8), make(chan string, 8)}
	said := [2]chan Signal{make(chan Signal, 64), make(chan Signal, 64)}
	sides := [2]*Links[*end]{side(t, told[0], said[0]), side(t, told[1], said[1])}
	if err := sides[0].Begin(7); err != nil {
		t.Fatal(err)
	}
	late := time.After(20 * time.Second)
	first := [2]bool{true, true}
	for opened := 0; opened < 2; {
		i, s, what := 0, Signal{}, ""
		select {
		case s = <-said[0]:
		case s = <-said[1]:
			i = 1
		case what = <-told[0]:
		case what = <-told[1]:
			i = 1
		case <-late:
			t.Fatal("the links do not open")
		}
		switch {
		case what == "open":
			opened++
		case what == "made":
		default:
			if first[i] != (s.Description != nil) {
				t.Errorf("side %d says %+v; the description comes first, and once", i, s)
			}
			first[i] = false
			if err := sides[1-i].Handle(7, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range sides {
		if e, ok := l.Get(7); !ok || e.Number != 7 || e.Link.Path() != transfer.Direct {
			t.Errorf("link 7 is %+v", e)
		}
		for e := range l.All() {
			e.Link.Close(peer.CloseShutdown, nil)
		}
	}
}

func TestSignalsThatCannotBe(t *testing.T) {
	l := side(t, nil, nil)
	for _, s := range []Signal{{}, {Candidate: &transfer.Candidate{End: true}}} {
		if err := l.Handle(1, s); err == nil {
			t.Errorf("%+v is taken before the offer", s)
		}
	}
}
