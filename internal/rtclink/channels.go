package rtclink

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// turn is how many messages of one channel are handed on before the others are looked at again.
const turn = 16

// messageBuffers hold a message each while it is handed on; links share them.
var messageBuffers = sync.Pool{New: func() any { return new([sctpMessage]byte) }}

// dial opens every channel of the plan. In-band (DCEP), never negotiated: pion ignores the reliability settings of
// negotiated channels, and everything would run ordered.
func (l *Link) dial(a *sctp.Association, client bool) error {
	labels := []string{peer.ControlLabel, peer.AckLabel}
	for i := range l.plan.Data {
		labels = append(labels, peer.DataLabel+strconv.Itoa(i))
	}
	for i, label := range labels {
		id := uint16(2 * i) // RFC 8832: the DTLS client has the even numbers
		if !client {
			id++
		}
		kind := datachannel.ChannelTypeReliableUnordered
		if label == peer.ControlLabel {
			kind = datachannel.ChannelTypeReliable
		}
		dc, err := datachannel.Dial(a, id, &datachannel.Config{ChannelType: kind, Label: label, LoggerFactory: l.host.loggers})
		if err != nil {
			return fmt.Errorf("rtclink: channel %s: %w", label, err)
		}
		l.adopt(dc)
	}
	return nil
}

// accept takes the channels of the other side until the association ends. It goes on in a new goroutine after each, whose
// stack has not grown.
func (l *Link) accept(a *sctp.Association) {
	for {
		dc, err := datachannel.Accept(a, &datachannel.Config{LoggerFactory: l.host.loggers})
		switch {
		case err == nil:
			l.adopt(dc)
			l.running.Go(func() { l.accept(a) })
			return
		case errors.Is(err, io.EOF):
			close(l.gone)
			l.ended.Store(true)
			l.stir()
			if !l.opened.Load() {
				l.Close(peer.CloseClosed, nil) // nobody reads yet who would say so
			}
			return
		default: // a stream that does not begin as a channel does
			l.Close(peer.CloseProtocol, nil)
		}
	}
}

// adopt puts a channel to its place, or closes it when the plan has none for it.
func (l *Link) adopt(dc *datachannel.DataChannel) {
	l.mu.Lock()
	slot, known := l.slot(&dc.Config)
	if !known {
		l.strays++
		strays := l.strays
		l.mu.Unlock()
		_ = dc.Close()
		if strays > peer.MaxStrayChannels {
			l.Close(peer.CloseProtocol, nil)
		}
		return
	}
	if slot == nil || l.closing.Load() { // beyond the agreed number: stays unused
		l.mu.Unlock()
		return
	}
	// From now on Read returns at once when there is nothing: one goroutine reads all channels of a link.
	_ = dc.SetReadDeadline(time.Unix(1, 0))
	*slot = dc
	open := !l.offering && l.complete() && !l.opened.Load()
	l.mu.Unlock()
	if open {
		l.open()
	}
}

// slot returns where a channel belongs; known is false for a label outside the plan, a second channel of one label,
// and a reliability other than the plan's. Under mu.
func (l *Link) slot(c *datachannel.Config) (slot **datachannel.DataChannel, known bool) {
	kind := datachannel.ChannelTypeReliableUnordered
	if c.Label == peer.ControlLabel {
		kind = datachannel.ChannelTypeReliable
	}
	if c.ChannelType != kind {
		return nil, false
	}
	switch label := c.Label; {
	case label == peer.ControlLabel:
		slot = &l.control
	case label == peer.AckLabel:
		slot = &l.ack
	case strings.HasPrefix(label, peer.DataLabel):
		i, err := strconv.Atoi(label[len(peer.DataLabel):])
		if err != nil || i < 0 || i >= peer.MaxDataChannels || label != peer.DataLabel+strconv.Itoa(i) {
			return nil, false
		}
		if i >= len(l.data) {
			return nil, true
		}
		slot = &l.data[i]
	default:
		return nil, false
	}
	return slot, *slot == nil
}

// complete says whether control, ack and every planned data channel are there. Under mu.
func (l *Link) complete() bool {
	if l.control == nil || l.ack == nil {
		return false
	}
	for _, c := range l.data {
		if c == nil {
			return false
		}
	}
	return true
}

// open tells the owner and begins to read; what came before waits in SCTP. The channels are fixed now. It runs in the
// goroutine of connect.
func (l *Link) open() {
	l.mu.Lock()
	if l.closing.Load() {
		l.mu.Unlock()
		return
	}
	l.opened.Store(true)
	l.timer.Stop()
	l.timer = nil
	if l.host.cfg.Keepalive == 0 { // else somebody wants the agent's checks
		l.timer = time.AfterFunc(settleEvery, l.settle)
	}
	l.running.Add(1) // under mu, which shutdown takes before it waits
	// The first round-trip time is that of ICE's checks, before there is any traffic of ours in the path's queue.
	l.flight.sample(time.Now(), l.firstRTT)
	l.mu.Unlock()
	l.control.OnBufferedAmountLow(func() {
		if l.heldBack.Swap(false) && !l.closing.Load() {
			l.events.Drain()
		}
	})
	for _, c := range l.data {
		c.OnBufferedAmountLow(func() {
			if !l.closing.Load() {
				l.events.Drain()
			}
		})
	}
	l.events.Open()
	l.reading.Store(readerBusy)
	go l.read()
}

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

// stir has the channels looked at: SCTP has dealt with what arrived before. It is called while accept runs, so that
// running is not zero.
func (l *Link) stir() {
	for {
		switch state := l.reading.Load(); {
		case state == readerNone || state == readerAgain:
			return
		case state == readerBusy && l.reading.CompareAndSwap(readerBusy, readerAgain):
			return
		case state == readerWaits && l.reading.CompareAndSwap(readerWaits, readerBusy):
			l.stirred <- struct{}{} // whoever waits takes it, and nobody else puts one there before
			return
		case state == readerIdle && l.reading.CompareAndSwap(readerIdle, readerBusy):
			l.running.Add(1)
			go l.read()
			return
		}
	}
}

// read hands on what there is of all channels.
func (l *Link) read() {
	defer l.running.Done()
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	for l.poll() {
		if l.reading.CompareAndSwap(readerAgain, readerBusy) {
			continue
		}
		if l.ended.Load() {
			l.Close(peer.CloseClosed, nil)
			return
		}
		if !l.reading.CompareAndSwap(readerBusy, readerWaits) {
			continue
		}
		timer.Reset(lingering)
		select {
		case <-l.stirred:
		case <-timer.C:
			if l.reading.CompareAndSwap(readerWaits, readerIdle) {
				return
			}
			<-l.stirred // just now
		}
	}
}

// poll hands on what there is; false says that the link has ended.
func (l *Link) poll() bool {
	buf := messageBuffers.Get().(*[sctpMessage]byte)
	defer messageBuffers.Put(buf)
	for more := true; more; {
		more = false
		for _, c := range [...]struct {
			dc     *datachannel.DataChannel
			limit  int
			handle func([]byte)
		}{{l.control, peer.MaxControl, l.events.Control}, {l.ack, sctpMessage, l.acks}} {
			n, ok := l.drain(c.dc, buf[:c.limit], c.handle)
			if !ok {
				return false
			}
			more = more || n == turn
		}
		for _, dc := range l.data {
			n, ok := l.drain(dc, buf[:l.plan.Message], l.events.Data)
			if !ok {
				return false
			}
			more = more || n == turn
		}
	}
	return true
}

// drain hands on up to a turn of messages of one channel; false says that the link has ended.
func (l *Link) drain(dc *datachannel.DataChannel, buf []byte, handle func([]byte)) (int, bool) {
	for i := range turn {
		n, text, err := dc.ReadDataChannel(buf)
		switch {
		case errors.Is(err, sctp.ErrReadDeadlineExceeded):
			return i, true
		case errors.Is(err, io.ErrShortBuffer), err == nil && text: // messages are binary
			l.Close(peer.CloseProtocol, nil)
			return i, false
		case err != nil:
			l.Close(peer.CloseClosed, nil)
			return i, false
		case l.closing.Load():
			return i, false
		}
		handle(buf[:n])
	}
	return turn, true
}
