package loadgen

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

var sdp = func() (text string) {
	_ = json.Unmarshal(description, &text) // it is a JSON string
	return text
}()

// nativeScript joins with an appetite for links, offers to the peers that it is introduced to, and answers every offer. To meet others
// anew it leaves, and joins again.
type nativeScript struct {
	counts *counts
	site   string
	title  string
	want   int

	mu    sync.Mutex
	swarm signal.ID // guarded by mu; zero before the first joined
}

func newNativeScript(s *session) *nativeScript {
	return &nativeScript{
		counts: &s.d.counts, site: s.d.cfg.Site, want: s.d.cfg.Offers, title: fmt.Sprintf("/load/%d", s.number%s.d.cfg.Swarms),
	}
}

func (n *nativeScript) put(say func([]byte), m signal.Message) {
	b, err := signal.Encode(m)
	if err != nil {
		panic(err) // of messages that this file makes: a mistake in it
	}
	say(b)
}

func (n *nativeScript) greet(say func([]byte)) {
	n.put(say, &signal.Hello{Version: signal.Version, Client: "leeway-load", Site: n.site})
}

func (n *nativeScript) join(say func([]byte), want int) {
	n.put(say, &signal.Join{Request: 1, Title: n.title, Role: "full", Want: want, Range: &signal.Range{From: 0, To: 30_000}})
}

func (n *nativeScript) announce(say func([]byte)) {
	n.mu.Lock()
	swarm := n.swarm
	n.mu.Unlock()
	n.put(say, &signal.Leave{Swarm: swarm})
	n.join(say, n.want)
}

func (n *nativeScript) hear(message []byte, say func([]byte)) (acked bool, err error) {
	m, err := signal.Decode(message)
	if err != nil {
		return false, fmt.Errorf("the tracker sent %.200q: %w", message, err)
	}
	switch m := m.(type) {
	case *signal.Welcome:
		n.join(say, 0)
	case *signal.Joined:
		n.mu.Lock()
		n.swarm = m.Swarm
		n.mu.Unlock()
		n.counts.acks.Add(1)
		return true, nil
	case *signal.Introduce:
		n.counts.other.Add(1)
		for _, p := range m.Peers {
			if p.Role != "viewer" {
				continue
			}
			var link signal.ID
			_, _ = rand.Read(link[:])
			n.put(say, &signal.Signal{Swarm: m.Swarm, To: p.Peer, Link: link, Kind: "offer", SDP: sdp, Plan: plan})
		}
	case *signal.Signal:
		switch m.Kind {
		case "offer":
			n.counts.offered.Add(1)
			n.put(say, &signal.Signal{Swarm: m.Swarm, To: m.From, Link: m.Link, Kind: "answer", SDP: sdp, Plan: plan})
		case "answer":
			n.counts.answered.Add(1)
		default:
			n.counts.other.Add(1) // a peer that left in between is gone
		}
	case *signal.Error:
		n.counts.failures.Add(1)
		if m.Code != "not-joined" && m.Code != "not-introduced" {
			return false, fmt.Errorf("the tracker answered %s: %s", m.Code, m.Message)
		}
	default:
		n.counts.other.Add(1)
	}
	return false, nil
}

var plan = &signal.Plan{V: 1, Data: 2, Message: 16384}
