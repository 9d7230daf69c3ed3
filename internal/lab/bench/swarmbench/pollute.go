package swarmbench

import (
	"bytes"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
)

// Ways to pollute a swarm. A polluter is an ordinary viewer in all but what it sends: it joins, holds and announces what
// it plays, and is asked for it like any other.
const (
	polluteAll    = "all"    // one bit of every message is wrong
	polluteSome   = "some"   // of one message in seven
	polluteSilent = "silent" // of the first; the others are not sent
)

var pollutions = []string{polluteAll, polluteSome, polluteSilent}

// seldom is how many messages polluteSome sends for a wrong one. A piece is several messages.
const seldom = 7

// pollution returns what stands between a polluter and its links, nil for an honest viewer.
func pollution(kind string) func(viewer.Links) viewer.Links {
	if kind == "" {
		return nil
	}
	return func(honest viewer.Links) viewer.Links { return pollutedLinks{honest, kind} }
}

type pollutedLinks struct {
	viewer.Links
	kind string
}

// Offer implements viewer.Links.
func (p pollutedLinks) Offer(s viewer.LinkSettings, events transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	link, offer, err := p.Links.Offer(s, events)
	if err != nil {
		return nil, offer, err
	}
	return &pollutedOffer{pollutedLink{Link: link, kind: p.kind}, link}, offer, nil
}

// Answer implements viewer.Links.
func (p pollutedLinks) Answer(s viewer.LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	link, answer, err := p.Links.Answer(s, offer, events)
	if err != nil {
		return nil, answer, err
	}
	return &pollutedLink{Link: link, kind: p.kind}, answer, nil
}

type pollutedLink struct {
	transfer.Link
	kind string
	sent atomic.Int64
}

type pollutedOffer struct {
	pollutedLink
	offered viewer.OfferedLink
}

// Accept implements viewer.OfferedLink.
func (p *pollutedOffer) Accept(answer transfer.Description) error { return p.offered.Accept(answer) }

// SendData implements transfer.Link.
func (p *pollutedLink) SendData(message []byte) bool {
	n := p.sent.Load() // the count of what went out: a message that is refused is tried again
	switch {
	case p.kind == polluteSilent && n > 0:
		return true
	case p.kind == polluteSome && n%seldom != seldom-1:
	default:
		message = bytes.Clone(message)
		message[len(message)-1] ^= 1 // the end of a data message is payload
	}
	ok := p.Link.SendData(message)
	if ok {
		p.sent.Add(1)
	}
	return ok
}
