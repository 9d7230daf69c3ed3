package pairing

import (
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Serving is the part of an end that sends the pieces that it is asked for, without a budget.
type Serving struct {
	mu     sync.Mutex
	upload *transfer.Upload // guarded by mu: from Serve on
}

// Serve begins it when the link has opened.
func (s *Serving) Serve(by *transfer.Uploader, cfg transfer.UploadConfig) *transfer.Upload {
	cfg.Budget, cfg.Observer = unlimited{}, unobserved{}
	upload := by.Add(cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upload = upload
	return upload
}

// Upload is what Serve made; nil before.
func (s *Serving) Upload() *transfer.Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upload
}

// Drain implements transfer.LinkEvents.
func (s *Serving) Drain() {
	if upload := s.Upload(); upload != nil { // the channels' own first messages drain while Opened runs
		upload.Drain()
	}
}

// Message implements transfer.Handler.
func (s *Serving) Message(m peer.Message) error {
	switch m := m.(type) {
	case peer.Request:
		return s.Upload().Request(m)
	case peer.Reject:
		return fmt.Errorf("%d requests were rejected (%d): the bench asked for too much", len(m.IDs), m.Reason)
	}
	return nil
}

type unlimited struct{}

// Take implements transfer.Budget.
func (unlimited) Take(int) (time.Duration, bool) { return 0, true }

type unobserved struct{}

func (unobserved) Sent(peer.Lane, int)             {}
func (unobserved) Promoted(int)                    {}
func (unobserved) Served()                         {}
func (unobserved) Rejected(peer.RejectReason, int) {}
func (unobserved) Canceled(int)                    {}
