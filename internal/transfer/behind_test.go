package transfer

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
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

// TestALinkThatMovesHasNoQueueForItsLongerWay: what is asked for goes by the way that packets take now. By the base of the old one a longer
// way would be a queue, for as long as the base is remembered.
func TestALinkThatMovesHasNoQueueForItsLongerWay(t *testing.T) {
	for _, moves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link, requester := newPipe(), background.NewRequester(ledbat.Config{}, time.Now)
			link.Acked = func([]byte) {}
			d := NewDownload(func(peer.Message) {}, time.Now, nil)
			d.Background(link, requester, nil)
			defer d.Close()
			begun, sequence := time.Now(), uint32(0)
			come := func(way time.Duration) { // ten messages, each of which answers what was said a round trip before
				for range 10 {
					<-time.After(way)
					µs := func(at time.Time) uint32 { return uint32(at.Sub(begun).Microseconds() + 1) }
					b := append([]byte{background.DataType}, make([]byte, background.Header)...)
					binary.BigEndian.PutUint32(b[7:], sequence)
					binary.BigEndian.PutUint32(b[11:], µs(time.Now().Add(-way/2)))
					binary.BigEndian.PutUint32(b[15:], µs(time.Now().Add(-way)))
					b[19] = 1 // the echo is valid
					if err := d.BackgroundData(b); err != nil {
						t.Fatal(err)
					}
					sequence++
				}
			}
			come(10 * time.Millisecond)
			if moves {
				d.Moved()
			}
			come(100 * time.Millisecond)
			s := requester.Stats()
			if full := s.Queuing >= s.Target; full == moves {
				t.Errorf("moved %v: a queue of %d µs with a target of %d, base %d", moves, s.Queuing, s.Target, s.Base)
			}
		})
	}
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

// TestBackgroundThatComesAsForegroundIsOwedNoMore: a peer sends what was asked for in the background by messages of the foreground. One piece
// that stayed owed would fill the first window, and nothing would be asked of any peer as long as that link lives.
func TestBackgroundThatComesAsForegroundIsOwedNoMore(t *testing.T) {
	f, requester := newFetching(), background.NewRequester(ledbat.Config{}, time.Now)
	f.Background(newPipe(), requester, nil)
	defer f.Close()
	ids := f.Request(f.target, peer.Background, "background", 0, 1)
	for i, m := range []peer.Data{part(ids[0], 0, 0, 6000), part(ids[0], 0, 6000, 16384), part(ids[1], 1, 100, 5000)} {
		if err := f.Data(m); err != nil {
			t.Fatal(err)
		}
		if owed := requester.Stats().Flight; owed != []int64{26768, 16384, 11484}[i] {
			t.Errorf("after message %d %d bytes are owed", i, owed)
		}
	}
	f.Cancel(func(Order) bool { return true })
	if owed := requester.Stats().Flight; owed != 0 {
		t.Errorf("%d bytes are owed once all has come or is taken back", owed)
	}
	if ok, _ := requester.May(peer.PieceSize); !ok {
		t.Error("nothing more may be asked for")
	}
}
