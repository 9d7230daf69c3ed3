package webtorrent

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// TestPeersMoveWithTheirHomes walks one peer that is away through its homes, a reminder and its end by silence.
func TestPeersMoveWithTheirHomes(t *testing.T) {
	self, first, second := signal.ID{1}, signal.ID{2}, signal.ID{3}
	now, home := time.Unix(1_790_000_000, 0), first
	const tellAfter, silence = time.Minute, time.Hour
	var p peers
	announce := announceOf("film", "a")
	if code := p.announced(&announce, first, now, 1); code != "" {
		t.Fatal(code)
	}
	if again := announceOf("film", "b"); p.announced(&again, first, now, 1) != "too-many-swarms" {
		t.Error("a second peer has room for one")
	}
	due := func(after time.Duration) []move {
		now = now.Add(after)
		return p.due(self, func(*wire.ID) signal.ID { return home }, now, tellAfter, silence)
	}
	if moves := due(tellAfter - 1); len(moves) != 0 {
		t.Errorf("moved before anything was due: %+v", moves)
	}
	home = second
	if moves := due(0); len(moves) != 1 || moves[0].from != first || moves[0].to != second || moves[0].request.PeerID != id20("a") {
		t.Errorf("to the second home: %+v", moves)
	}
	p.remind(first)
	if moves := due(0); len(moves) != 0 {
		t.Errorf("a tracker that is not its home was to be told: %+v", moves)
	}
	p.remind(second)
	if moves := due(0); len(moves) != 1 || moves[0].from != second || moves[0].to != second {
		t.Errorf("told anew: %+v", moves)
	}
	if moves := due(silence); len(moves) != 1 || moves[0].request.Event != wire.Stopped || p.count() != 0 {
		t.Errorf("after its silence: %+v", moves)
	}
	p.announced(&announce, second, now, 1)
	home = self
	if moves := due(0); len(moves) != 1 || moves[0].to != self || p.count() != 0 {
		t.Errorf("home to this tracker: %+v", moves)
	}
}

// TestClosedSocketsTakeNoneIn: a drain finds every client that was taken in.
func TestClosedSocketsTakeNoneIn(t *testing.T) {
	var s sockets
	a, b := &client{}, &client{}
	if !s.enter(a) {
		t.Error("a client was refused")
	}
	if open := s.close(); len(open) != 1 || open[0] != a {
		t.Errorf("%d clients were open", len(open))
	}
	if s.enter(b) {
		t.Error("a client was taken in after the end")
	}
	if s.leave(a); len(s.snapshot()) != 0 {
		t.Error("a client does not leave")
	}
}
