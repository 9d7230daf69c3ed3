package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/leeway-video/leeway/internal/segment"
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
	self, swarm peer.ID
	note        func(event string, detail any)

	mu     sync.Mutex
	served int // pieces answered so far, guarded by mu
	asked  int // pieces asked so far, guarded by mu
	random *rand.Rand
}

// open begins like an honest peer, so that the other side has a reason to ask.
func (a *attack) open() error {
	if err := a.send(peer.Hello{MinVersion: peer.Version, MaxVersion: peer.Version, MaxRequests: 64, Peer: a.self, Swarm: a.swarm}); err != nil {
		return err
	}
	switch a.behave {
	case "garbage":
		return a.garbage()
	case "channels":
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
		a.note("bye", m.Reason)
	case peer.CertificateRequest:
		for _, id := range m.Segments {
			if err := a.send(peer.CertificateNone{Segment: id, Reason: peer.NoneUnknown}); err != nil {
				return err
			}
		}
	case peer.Request:
		return a.request(m)
	}
	return nil
}

func (a *attack) request(m peer.Request) error {
	a.mu.Lock()
	first := a.asked == 0
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
