package rtclink

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// turn is how many messages of one channel are handed on before the others are looked at again.
const turn = 16

// messageBuffers hold a message each while it is handed on; links share them.
var messageBuffers = sync.Pool{New: func() any { return new([sctpMessage]byte) }}

// The reader is a goroutine while there is something to read, and for lingering after it: an idle link has none, and one on which
// messages come every few milliseconds does not make a new one for each, whose stack has to grow again.
const (
	readerNone  = iota // the link is not open
	readerIdle         // not running
	readerWaits        // running, until it is woken or lingering is over
	readerBusy         // running
	readerAgain        // running, and to look once more
)

const lingering = 50 * time.Millisecond

// reader hands on what comes on the channels of a link.
type reader struct {
	life     *life
	channels *channels
	control  func([]byte)
	ack      func([]byte)
	data     func([]byte)

	state   atomic.Int32
	stirred chan struct{} // wakes a reader that waits
	gone    chan struct{} // closed when the association has ended: what is there is the last
}

// begin reads what has come before the link was open, and waited in SCTP. The life of the link has counted the goroutine.
func (r *reader) begin() {
	r.state.Store(readerBusy)
	go r.read()
}

// end says that the association has ended.
func (r *reader) end() {
	close(r.gone)
	r.stir()
}

// stir has the channels looked at: SCTP has dealt with what arrived before. It is called while the link's accept runs, so that
// running is not zero.
func (r *reader) stir() {
	for {
		switch state := r.state.Load(); {
		case state == readerNone || state == readerAgain:
			return
		case state == readerBusy && r.state.CompareAndSwap(readerBusy, readerAgain):
			return
		case state == readerWaits && r.state.CompareAndSwap(readerWaits, readerBusy):
			r.stirred <- struct{}{} // the waiting reader takes it, and nothing else puts one there before
			return
		case state == readerIdle && r.state.CompareAndSwap(readerIdle, readerBusy):
			r.life.running.Add(1)
			go r.read()
			return
		}
	}
}

func (r *reader) read() {
	defer r.life.running.Done()
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	for r.poll() {
		if r.state.CompareAndSwap(readerAgain, readerBusy) {
			continue
		}
		select {
		case <-r.gone:
			if r.poll() { // what came since, a bye among it
				r.life.Close(peer.CloseClosed, nil)
			}
			return
		default:
		}
		if !r.state.CompareAndSwap(readerBusy, readerWaits) {
			continue
		}
		timer.Reset(lingering)
		select {
		case <-r.stirred:
		case <-timer.C:
			if r.state.CompareAndSwap(readerWaits, readerIdle) {
				return
			}
			<-r.stirred // just now
		}
	}
}

// poll hands on what there is; false says that the link has ended.
func (r *reader) poll() bool {
	buf := messageBuffers.Get().(*[sctpMessage]byte)
	defer messageBuffers.Put(buf)
	c := r.channels
	for more := true; more; {
		n, ok := r.drain(c.control, buf[:peer.MaxControl], r.control)
		if !ok {
			return false
		}
		more = n == turn
		if n, ok = r.drain(c.ack, buf[:], r.ack); !ok {
			return false
		}
		more = more || n == turn
		for _, dc := range c.data {
			if n, ok = r.drain(dc, buf[:c.plan.Message], r.data); !ok {
				return false
			}
			more = more || n == turn
		}
	}
	return true
}

// drain hands on up to a turn of messages of one channel; false says that the link has ended.
func (r *reader) drain(dc *datachannel.DataChannel, buf []byte, handle func([]byte)) (int, bool) {
	for i := range turn {
		n, text, err := dc.ReadDataChannel(buf)
		switch {
		case errors.Is(err, sctp.ErrReadDeadlineExceeded):
			return i, true
		case errors.Is(err, io.ErrShortBuffer), err == nil && text: // messages are binary
			r.life.Close(peer.CloseProtocol, nil)
			return i, false
		case err != nil:
			r.life.Close(peer.CloseClosed, nil)
			return i, false
		case r.life.closing.Load():
			return i, false
		}
		handle(buf[:n])
	}
	return turn, true
}
