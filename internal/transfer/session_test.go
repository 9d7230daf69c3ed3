package transfer

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

type listener struct {
	ready    []peer.Hello
	messages []peer.Message
	pieces   int
}

func (l *listener) Ready(h peer.Hello) error     { l.ready = append(l.ready, h); return nil }
func (l *listener) Message(m peer.Message) error { l.messages = append(l.messages, m); return nil }
func (l *listener) Piece(peer.Data) error        { l.pieces++; return nil }

func newSession(now *time.Time) (*Session, *tape, *listener) {
	link, h := &tape{room: -1}, &listener{}
	hello := peer.Hello{MinVersion: 1, MaxVersion: 1, MaxRequests: 8, Peer: swarm.ID{1}, Swarm: swarm.ID{9}}
	s := NewSession(link, hello, swarm.ID{2}, h, func() time.Time { return *now })
	s.Open()
	return s, link, h
}

func encode(m peer.Message) []byte { b, _ := peer.Append(nil, m); return b }

var theirHello = peer.Hello{MinVersion: 1, MaxVersion: 3, MaxRequests: 8, Peer: swarm.ID{2}, Swarm: swarm.ID{9}}

func TestSessionsEndForWhatTheProtocolForbids(t *testing.T) {
	wrong := theirHello
	wrong.Swarm = swarm.ID{8}
	future := theirHello
	future.MinVersion = 2
	for name, c := range map[string]struct {
		in   []peer.Message
		raw  [][]byte
		want peer.CloseReason
	}{
		"message before hello": {in: []peer.Message{peer.Cancel{IDs: []uint32{1}}}, want: peer.CloseProtocol},
		"two hellos":           {in: []peer.Message{theirHello, theirHello}, want: peer.CloseProtocol},
		"another swarm":        {in: []peer.Message{wrong}, want: peer.CloseProtocol},
		"no common version":    {in: []peer.Message{future}, want: peer.CloseVersion},
		"bye":                  {in: []peer.Message{theirHello, peer.Bye{}}, want: peer.CloseClosed},
		"garbage":              {raw: [][]byte{{0x02, 0x00}}, want: peer.CloseProtocol},
		"64 unknown":           {in: []peer.Message{theirHello}, raw: slices.Repeat([][]byte{{0x7f}}, 64), want: ""},
		"65 unknown":           {in: []peer.Message{theirHello}, raw: slices.Repeat([][]byte{{0x7f}}, 65), want: peer.CloseProtocol},
	} {
		now := time.Unix(0, 0)
		s, link, _ := newSession(&now)
		for _, m := range c.in {
			s.Control(encode(m))
		}
		for _, b := range c.raw {
			s.Control(b)
		}
		if link.ended != c.want {
			t.Errorf("%s: ended %q, want %q", name, link.ended, c.want)
		}
	}
}

func TestSessionKeepsAliveAndEndsSilence(t *testing.T) {
	now := time.Unix(100, 0)
	s, link, h := newSession(&now)
	s.Data(encode(peer.Data{Payload: []byte("x")}))
	if h.pieces != 0 {
		t.Error("data before hello was acted on")
	}
	s.Control(encode(theirHello))
	s.Control(encode(peer.Ping{Nonce: 5, SentAt: 6}))
	if pong, ok := link.control[len(link.control)-1].(peer.Pong); !ok || pong != (peer.Pong{Nonce: 5, SentAt: 6}) {
		t.Errorf("ping was answered by %+v", link.control)
	}
	s.Send(peer.Cancel{IDs: []uint32{1}})
	tick := func(d time.Duration) { now = now.Add(d); s.Tick() }
	if tick(PingAfter - 1); len(link.control) != 3 {
		t.Errorf("pinged within a round: %+v", link.control)
	}
	if tick(1); len(link.control) != 3 {
		t.Error("pinged although it had just spoken")
	}
	s.Control(encode(peer.Pong{}))
	for round := range SilentRounds {
		if link.ended != "" {
			t.Errorf("ended %q after %d silent rounds", link.ended, round)
		}
		if round > 0 {
			if _, ok := link.control[len(link.control)-1].(peer.Ping); !ok {
				t.Error("no ping after a silent round")
			}
		}
		tick(time.Hour) // however long it took: what a sleeping machine did not hear is no silence
	}
	if link.ended != peer.CloseTimeout {
		t.Errorf("ended %q after four silent rounds", link.ended)
	}
	now = time.Unix(200, 0)
	s, link, _ = newSession(&now)
	for range HelloRounds {
		s.Data(encode(peer.Data{Payload: []byte("x")})) // is no hello
		tick(PingAfter)
	}
	if link.ended != peer.CloseTimeout {
		t.Errorf("ended %q without a hello", link.ended)
	}
}

// TestSessionEndsForTalkWithoutEnd: what data bring with them is not talk.
func TestSessionEndsForTalkWithoutEnd(t *testing.T) {
	now := time.Unix(100, 0)
	s, link, _ := newSession(&now)
	s.Control(encode(theirHello))
	for range 2000 {
		s.Control(encode(peer.Request{Requests: []peer.PieceRequest{{ID: 1}}}))
	}
	talk := func(n int) {
		for range n {
			s.Control(encode(peer.Have{Entries: make([]peer.HaveEntry, 1)}))
		}
	}
	talk(999)
	now = now.Add(5 * time.Second)
	talk(1000)
	if link.ended != "" {
		t.Fatalf("ended %q", link.ended)
	}
	if talk(1); link.ended != peer.CloseLimit {
		t.Errorf("ended %q after 1,001 messages at once", link.ended)
	}
}

func TestPongsTellNonceAndTime(t *testing.T) {
	now := time.Unix(100, 0)
	s, link, _ := newSession(&now)
	var nonces []uint32
	var times []time.Duration
	s.Pong = func(nonce uint32, took time.Duration) { nonces, times = append(nonces, nonce), append(times, took) }
	s.Control(encode(theirHello))
	for i := range 2 {
		n := s.Ping()
		ping := link.control[len(link.control)-1].(peer.Ping)
		now = now.Add(time.Duration(i+1) * 30 * time.Millisecond)
		s.Control(encode(peer.Pong(ping)))
		if ping.Nonce != n {
			t.Errorf("pinged with %d, said %d", ping.Nonce, n)
		}
	}
	if nonces[0] == nonces[1] || times[0] != 30*time.Millisecond || times[1] != 60*time.Millisecond {
		t.Errorf("%v %v", nonces, times)
	}
}
