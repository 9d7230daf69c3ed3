package bare

import (
	"fmt"
	"sync"
)

// Ends are one side of several links. Calls come from one goroutine, but for Write.
type Ends struct {
	Config Config
	Opened func(link int)             // from any goroutine
	Say    func(link int, sdp string) // to the other side
	// Heard is Config.Heard with the link before it; nil is given nothing.
	Heard func(link, channel int, message []byte)

	mu    sync.Mutex
	peers map[int]*Peer // guarded by mu
}

func (e *Ends) add(link int) (*Peer, error) {
	cfg := e.Config
	if e.Heard != nil {
		cfg.Heard = func(channel int, message []byte) { e.Heard(link, channel, message) }
	}
	p, err := New(cfg)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.peers == nil {
		e.peers = map[int]*Peer{}
	}
	e.peers[link] = p
	e.mu.Unlock()
	go func() {
		<-p.Opened()
		e.Opened(link)
	}()
	return p, nil
}

func (e *Ends) get(link int) *Peer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peers[link]
}

// Offer begins a link.
func (e *Ends) Offer(link int) error {
	p, err := e.add(link)
	if err != nil {
		return err
	}
	sdp, err := p.Offer()
	if err == nil {
		e.Say(link, sdp)
	}
	return err
}

// Hear takes what the other side says of a link: the answer to an offer, or an offer, which is answered.
func (e *Ends) Hear(link int, sdp string) error {
	if p := e.get(link); p != nil {
		return p.Accept(sdp)
	}
	p, err := e.add(link)
	if err != nil {
		return err
	}
	answer, err := p.Answer(sdp)
	if err == nil {
		e.Say(link, answer)
	}
	return err
}

// Pump sends on a link for as long as it is there.
func (e *Ends) Pump(link int) { e.get(link).Pump() }

// PumpAll sends on all of them.
func (e *Ends) PumpAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.peers {
		p.Pump()
	}
}

// Write is Peer.Write of a link.
func (e *Ends) Write(link, channel int, message []byte) error {
	p := e.get(link)
	if p == nil {
		return fmt.Errorf("bare: no link %d", link)
	}
	return p.Write(channel, message)
}

// Drop ends a link; one that is not there is dropped already.
func (e *Ends) Drop(link int) error {
	p := e.get(link)
	if p == nil {
		return nil
	}
	e.mu.Lock()
	delete(e.peers, link)
	e.mu.Unlock()
	return p.Close()
}

// Close ends the links.
func (e *Ends) Close() error {
	e.mu.Lock()
	peers := e.peers
	e.peers = nil
	e.mu.Unlock()
	var err error
	for _, p := range peers {
		if one := p.Close(); one != nil {
			err = one
		}
	}
	return err
}
