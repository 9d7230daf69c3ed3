package arm

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/pion/transport/v4/packetio"
	"github.com/pion/webrtc/v4"
)

// receiveMTU is the most of a packet that is taken, bytes: pion's own bound.
const receiveMTU = 1460

// The most that a stream keeps before it has a taker, bytes: what pion's own buffers keep.
const (
	earlyRTP  = 1_000_000
	earlyRTCP = 100_000
)

// errNothing says that a stream with a taker has no packet.
var errNothing = errors.New("arm: no packet")

// inbox is where pion puts the decrypted packets of a stream. Once it has a taker, each packet is taken by the goroutine that decrypted
// it: a goroutine that waits for packets of its own would be woken for each, which costs more than the packet (BenchmarkMedia).
type inbox struct {
	early *packetio.Buffer // until there is a taker

	// turn is held by the goroutine in which the taker runs. It is never taken under mu, nor by Close, which pion calls with locks that
	// the taker needs.
	turn sync.Mutex

	mu    sync.Mutex
	take  func() error // guarded by mu; nil: none
	ended func()       // guarded by mu; nil: not to be told
	shut  bool         // guarded by mu
	now   []byte       // guarded by mu: the packet that is to be taken; nil: none
	begun bool         // guarded by mu: a packet has come
	last  uint16       // guarded by mu: the highest sequence number
	rolls uint32       // guarded by mu: how often sequence numbers began anew

	aside bool // guarded by mu: packets come beside pion

	direct bool // of direct, whose mu guards it: packets no longer come by pion
}

func newInbox(limit int) *inbox {
	in := &inbox{early: packetio.NewBuffer()}
	in.early.SetLimitSize(limit)
	return in
}

// hand gives the packets to take, which reads one through pion, first those that are there. ended is called after the last.
func (in *inbox) hand(take func() error, ended func()) {
	in.turn.Lock()
	defer in.turn.Unlock()
	in.mu.Lock()
	in.take, in.ended = take, ended
	shut := in.shut
	if shut {
		in.ended = nil
	}
	in.mu.Unlock()
	for !shut && take() == nil {
	}
	if shut {
		ended()
	}
}

// Write implements io.Writer, for pion.
func (in *inbox) Write(b []byte) (int, error) {
	take := in.taker(b)
	if take == nil {
		return len(b), nil
	}
	in.turn.Lock()
	defer in.turn.Unlock()
	in.mu.Lock()
	in.now = b
	in.mu.Unlock()
	for in.pending() && take() == nil {
	}
	in.mu.Lock()
	in.now = nil
	in.mu.Unlock()
	return len(b), nil
}

// taker is where a packet goes; without one it is kept, if there is room.
func (in *inbox) taker(b []byte) func() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(b) > 3 {
		in.count(binary.BigEndian.Uint16(b[2:]))
	}
	if in.take == nil {
		_, _ = in.early.Write(b)
	}
	return in.take
}

// count notes a packet's sequence number; mu is held.
func (in *inbox) count(number uint16) {
	switch ahead := number - in.last; {
	case !in.begun:
		in.begun, in.last = true, number
	case ahead < 1<<15:
		if number < in.last {
			in.rolls++
		}
		in.last = number
	}
}

// follows says whether a packet with the sequence number may be decrypted beside pion: the one that is next after pion's last, and all
// that come later. rolled is how often sequence numbers have begun anew.
func (in *inbox) follows(number uint16) (rolled uint32, goes bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.take == nil || in.shut || !in.begun {
		return 0, false
	}
	in.aside = in.aside || number == in.last+1 && in.now == nil
	if number == 0 {
		return in.rolls + 1, in.aside
	}
	return in.rolls, in.aside
}

// pending says whether the packet of Write is still to be taken: pion's track may have had another one before it.
func (in *inbox) pending() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.now != nil && !in.shut
}

// Read implements io.Reader, for pion.
func (in *inbox) Read(b []byte) (int, error) {
	in.mu.Lock()
	if in.take == nil || in.early.Count() > 0 {
		in.mu.Unlock()
		return in.early.Read(b)
	}
	now := in.now
	in.now = nil
	in.mu.Unlock()
	switch {
	case now == nil:
		return 0, errNothing
	case len(now) > len(b):
		return 0, io.ErrShortBuffer
	}
	return copy(b, now), nil
}

// Close implements io.Closer, for pion.
func (in *inbox) Close() error {
	in.mu.Lock()
	in.shut = true
	ended := in.ended
	in.ended = nil
	in.mu.Unlock()
	if ended != nil {
		go func() {
			in.turn.Lock()
			defer in.turn.Unlock()
			ended()
		}()
	}
	return in.early.Close()
}

// stream is one that pion decrypts.
type stream struct {
	kind packetio.BufferPacketType
	ssrc webrtc.SSRC
}

// inboxes are those of one connection. The zero value has none.
type inboxes struct {
	mu  sync.Mutex
	all map[stream]*inbox // guarded by mu
}

// open makes the inbox of a stream, for pion.
func (i *inboxes) open(kind packetio.BufferPacketType, ssrc uint32) io.ReadWriteCloser {
	limit := earlyRTP
	if kind == packetio.RTCPBufferPacket {
		limit = earlyRTCP
	}
	in := newInbox(limit)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.all == nil {
		i.all = map[stream]*inbox{}
	}
	i.all[stream{kind, webrtc.SSRC(ssrc)}] = in
	return in
}

// of is that of a stream; nil: there is none.
func (i *inboxes) of(kind packetio.BufferPacketType, ssrc webrtc.SSRC) *inbox {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.all[stream{kind, ssrc}]
}

// close ends all, also those that pion made no track of.
func (i *inboxes) close() {
	i.mu.Lock()
	left := i.all
	i.all = nil
	i.mu.Unlock()
	for _, in := range left {
		_ = in.Close()
	}
}
