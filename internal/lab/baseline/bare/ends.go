package bare

// Ends are one side of several links. Calls come from one goroutine.
type Ends struct {
	Config Config
	Opened func(link int)             // from any goroutine
	Say    func(link int, sdp string) // to the other side

	peers map[int]*Peer
}

func (e *Ends) add(link int) (*Peer, error) {
	p, err := New(e.Config)
	if err != nil {
		return nil, err
	}
	if e.peers == nil {
		e.peers = map[int]*Peer{}
	}
	e.peers[link] = p
	go func() {
		<-p.Opened()
		e.Opened(link)
	}()
	return p, nil
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
	if p := e.peers[link]; p != nil {
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
func (e *Ends) Pump(link int) { e.peers[link].Pump() }

// PumpAll sends on all of them.
func (e *Ends) PumpAll() {
	for _, p := range e.peers {
		p.Pump()
	}
}

// Close ends the links.
func (e *Ends) Close() error {
	var err error
	for _, p := range e.peers {
		if one := p.Close(); one != nil {
			err = one
		}
	}
	return err
}
