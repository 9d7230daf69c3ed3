package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// behaviors are the ways of being hostile, one a run.
var behaviors = []string{
	"flip",           // every piece with one bit flipped
	"bad-then-stall", // one bad piece, then nothing more
	"false-have",     // announces everything, rejects what is asked
	"garbage",        // random bytes on every channel
	"channels",       // opens channels without end
	"silent",         // stops in the middle of a piece
}

// wire is what a behavior does to a link.
type wire interface {
	// Control sends bytes on the control channel, whatever they are.
	Control(b []byte) error
	// Data sends bytes on a data channel.
	Data(b []byte) error
	// Ack sends bytes on the ack channel.
	Ack(b []byte) error
	// OpenChannel opens one more channel.
	OpenChannel(label string) error
	// MaxMessage is the agreed size of a data message, bytes.
	MaxMessage() int
}

// attack is one link of a hostile viewer.
type attack struct {
	behave      string
	film        *film
	wire        wire
	self, swarm swarm.ID
	seed        bool // the other side is one: it is asked for certificates
	vault       *vault
	note        func(event string, detail any)

	mu     sync.Mutex
	served int       // pieces answered so far, guarded by mu
	asked  int       // pieces asked so far, guarded by mu
	opened time.Time // guarded by mu
	first  time.Time // guarded by mu: the first request
	gone   bool      // guarded by mu: the other side has ended the link
	random *rand.Rand
}

// ended is what became of a link, as its JSON says.
type ended struct {
	Reason  string `json:"reason"`
	Asked   int    `json:"asked"`
	Served  int    `json:"served"`
	OpenMs  int64  `json:"open_ms"`  // since it opened
	AskedMs int64  `json:"asked_ms"` // since the first request, -1 without one
}

// out notes that the other side has ended the link, once; it says whether it was the first time.
func (a *attack) out(reason string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone || a.seed || a.opened.IsZero() {
		return false
	}
	a.gone = true
	e := ended{
		Reason: reason, Asked: a.asked, Served: a.served,
		OpenMs: time.Since(a.opened).Milliseconds(), AskedMs: -1,
	}
	if !a.first.IsZero() {
		e.AskedMs = time.Since(a.first).Milliseconds()
	}
	a.note("out", e)
	return true
}

// open begins like an honest peer, so that the other side has a reason to ask.
func (a *attack) open() error {
	a.mu.Lock()
	a.opened = time.Now()
	a.mu.Unlock()
	if err := a.send(peer.Hello{MinVersion: peer.Version, MaxVersion: peer.Version, MaxRequests: 64, Peer: a.self, Swarm: a.swarm}); err != nil {
		return err
	}
	switch {
	case a.seed:
		return nil
	case a.behave == "garbage":
		return a.garbage()
	case a.behave == "channels":
		return a.channels()
	}
	for chunk := range slices.Chunk(a.film.order, 200) {
		var have peer.Have
		for _, id := range chunk {
			pieces := segment.Pieces(int64(len(a.film.bodies[id])))
			have.Entries = append(have.Entries, peer.HaveEntry{Segment: id, State: peer.HoldsComplete, Pieces: uint16(pieces)})
		}
		if err := a.send(have); err != nil {
			return err
		}
	}
	return nil
}

// control answers what the other side says.
func (a *attack) control(b []byte) error {
	m, err := peer.Decode(peer.Control, b)
	if err != nil {
		return nil // a hostile viewer does not mind
	}
	switch m := m.(type) {
	case peer.Ping:
		return a.send(peer.Pong(m))
	case peer.Bye:
		a.out(fmt.Sprint("bye ", m.Reason))
	case peer.Hello:
		if a.seed {
			return a.vault.seed(a)
		}
	case peer.CertificateRequest:
		return a.vault.ask(a, m.Segments)
	case peer.Certificate:
		a.vault.got(m.Segment, bytes.Clone(m.Raw))
	case peer.CertificateNone:
		a.vault.got(m.Segment, nil)
	case peer.Request:
		return a.request(m)
	}
	return nil
}

func (a *attack) request(m peer.Request) error {
	a.mu.Lock()
	first := a.asked == 0
	if first {
		a.first = time.Now()
	}
	a.asked += len(m.Requests)
	a.mu.Unlock()
	if first {
		a.note("asked", len(m.Requests))
	}
	if a.behave == "false-have" {
		ids := make([]uint32, len(m.Requests))
		for i, r := range m.Requests {
			ids[i] = r.ID
		}
		return a.send(peer.Reject{Reason: peer.RejectNotHeld, IDs: ids})
	}
	for _, r := range m.Requests {
		body, ok := a.film.piece(m.Segment, int(r.Piece))
		if !ok {
			continue
		}
		if err := a.answer(r.ID, body); err != nil {
			return err
		}
	}
	return nil
}

// answer sends a piece as the behavior wants it.
func (a *attack) answer(request uint32, body []byte) error {
	a.mu.Lock()
	a.served++
	served := a.served
	a.mu.Unlock()
	switch a.behave {
	case "flip":
		body[a.bit(len(body))] ^= 1 << (served & 7)
	case "bad-then-stall":
		if served > 1 {
			return nil
		}
		body[len(body)/2] ^= 0x10
	case "silent":
		if served > 1 {
			return nil
		}
	}
	cut := peer.CutSize(len(body), a.wire.MaxMessage())
	if a.behave == "silent" {
		cut = min(cut, len(body)/4)
	}
	for at := 0; at < len(body); at += cut {
		if a.behave == "silent" && at > 0 {
			return nil
		}
		part := body[at:min(at+cut, len(body))]
		b, err := peer.Append(nil, peer.Data{Request: request, Offset: uint16(at), Payload: part})
		if err != nil {
			return fmt.Errorf("hostile: data: %w", err)
		}
		if err := a.wire.Data(b); err != nil {
			return err
		}
	}
	a.note("served", served)
	return nil
}

func (a *attack) bit(length int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.random.IntN(length)
}

// garbage sends random bytes, the first of them often a known type, on every channel, until the link is gone.
func (a *attack) garbage() error {
	types := []byte{0x02, 0x04, 0x10, 0x12, 0x20, 0x40, 0x99}
	for range 2000 {
		b := make([]byte, 1+a.random.IntN(1000))
		for i := range b {
			b[i] = byte(a.random.Uint32())
		}
		if a.random.IntN(2) == 0 {
			b[0] = types[a.random.IntN(len(types))]
		}
		if err := a.wire.Data(b); err != nil {
			return err
		}
		if err := a.wire.Ack(b); err != nil {
			return err
		}
		if err := a.wire.Control(b); err != nil {
			return err
		}
	}
	return nil
}

// channels opens channels that no plan names until the link is gone.
func (a *attack) channels() error {
	for i := range 2000 {
		if err := a.wire.OpenChannel(fmt.Sprintf("lw.more.%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func (a *attack) send(m peer.Message) error {
	b, err := peer.Append(nil, m)
	if err != nil {
		return fmt.Errorf("hostile: %T: %w", m, err)
	}
	return a.wire.Control(b)
}
