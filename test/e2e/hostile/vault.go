package main

import (
	"slices"
	"sync"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// vault gets certificates from seeds and hands them on: a peer that has none is not asked for pieces.
type vault struct {
	mu      sync.Mutex
	certs   map[segment.ID][]byte    // guarded by mu
	waiting map[segment.ID][]*attack // guarded by mu: the peers that asked and are not answered yet
	seeds   []*attack                // guarded by mu: links to seeds
}

func newVault() *vault {
	return &vault{certs: map[segment.ID][]byte{}, waiting: map[segment.ID][]*attack{}}
}

// seed is called when a seed has said hello.
func (v *vault) seed(a *attack) error {
	v.mu.Lock()
	v.seeds = append(v.seeds, a)
	var open []segment.ID
	for id := range v.waiting {
		open = append(open, id)
	}
	v.mu.Unlock()
	if len(open) == 0 {
		return nil
	}
	return a.send(peer.CertificateRequest{Segments: open})
}

// ask answers a for each of the segments, now or when a seed has.
func (v *vault) ask(a *attack, segments []segment.ID) error {
	var missing []segment.ID
	for _, id := range segments {
		v.mu.Lock()
		raw := v.certs[id]
		if raw == nil {
			v.waiting[id] = append(v.waiting[id], a)
			missing = append(missing, id)
		}
		v.mu.Unlock()
		if raw != nil {
			if err := a.send(peer.Certificate{Segment: id, Raw: raw}); err != nil {
				return err
			}
		}
	}
	v.mu.Lock()
	seeds := slices.Clone(v.seeds)
	v.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	for _, s := range seeds {
		if err := s.send(peer.CertificateRequest{Segments: missing}); err == nil {
			return nil
		}
	}
	return nil // the first seed that says hello is asked
}

// got takes what a seed answered; raw is nil when it has no certificate.
func (v *vault) got(id segment.ID, raw []byte) {
	v.mu.Lock()
	if raw != nil {
		v.certs[id] = raw
	}
	waiting := v.waiting[id]
	delete(v.waiting, id)
	v.mu.Unlock()
	for _, a := range waiting {
		var answer peer.Message = peer.Certificate{Segment: id, Raw: raw}
		if raw == nil {
			answer = peer.CertificateNone{Segment: id, Reason: peer.NoneUnknown}
		}
		_ = a.send(answer) // the peer that asked may be gone
	}
}
