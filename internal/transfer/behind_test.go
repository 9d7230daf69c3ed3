package transfer

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// stuck is a link that takes an acknowledgement only when it is let.
type stuck struct {
	*pipe
	begun, let chan struct{}
}

func (s *stuck) SendAck([]byte) {
	close(s.begun)
	<-s.let
}

// TestARequestDoesNotWaitForWhatCloses: one goroutine acknowledges, another closes the download, and the requester has the lock that the
// first needs next: all three would stand still.
func TestARequestDoesNotWaitForWhatCloses(t *testing.T) {
	link := &stuck{newPipe(), make(chan struct{}), make(chan struct{})}
	d := NewDownload(func(peer.Message) {}, time.Now, nil)
	d.Background(link, background.NewRequester(ledbat.Config{}, time.Now), nil)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		message := make([]byte, background.Header+1)
		message[0], message[background.Header-1] = background.DataType, 2 // to be acknowledged now
		_ = d.BackgroundData(message)
	})
	<-link.begun
	defer close(link.let)
	running.Go(d.Close)
	for closing := false; !closing; runtime.Gosched() {
		if closing = !d.behind.mu.TryLock(); !closing {
			closing = d.behind.closed
			d.behind.mu.Unlock()
		}
	}
	asked := make(chan struct{})
	running.Go(func() {
		d.Request(&Target{Certificate: &certificate.Certificate{Length: peer.PieceSize}}, peer.Background, "", 0)
		close(asked)
	})
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		t.Error("a request waits for a link that is being closed")
	}
}
