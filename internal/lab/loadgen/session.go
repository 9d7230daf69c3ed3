package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// session is one socket and its script.
type session struct {
	d      *Driver
	ws     *socket
	number int
	script script
	sent   atomic.Int64 // when the announce that is not answered yet went out, ns since the Unix epoch; 0: none

	mu  sync.Mutex
	out []byte // guarded by mu: frames to be written, empty between writes
}

// script is what a session says. hear and greet are of the reading goroutine.
type script interface {
	// greet says the first words; the session is open once hear has said so.
	greet(say func([]byte))
	// hear acts on a message. What it says goes out once all messages that were read have been heard. acked is true for the answer to the
	// session's announce.
	hear(message []byte, say func([]byte)) (acked bool, err error)
	// announce says that the session wants to meet others. It may be called from another goroutine than hear.
	announce(say func([]byte))
}

// begin greets, and reads until the first ack.
func (s *session) begin(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.ws.conn.Close() })
	defer stop()
	s.sent.Store(time.Now().UnixNano())
	s.script.greet(s.say)
	if err := s.flush(); err != nil {
		return err
	}
	for {
		acked, _, err := s.hear()
		if err == nil {
			err = s.flush()
		}
		if acked || err != nil {
			return err
		}
	}
}

// read hears what comes until the socket ends.
func (s *session) read() {
	for {
		acked, more, err := s.hear()
		if err == nil && acked && mode(s.d.mode.Load()) == closed {
			s.prepare()
		}
		if err == nil && !more {
			err = s.flush()
		}
		if err != nil {
			s.d.lose(s.number, err)
			_ = s.ws.conn.Close()
			return
		}
	}
}

// hear takes in one frame.
func (s *session) hear() (acked, more bool, err error) {
	op, payload, more, err := s.ws.next()
	if err != nil {
		return false, false, err
	}
	switch op {
	case opText:
		acked, err = s.script.hear(payload, s.say)
		if sent := s.sent.Load(); acked && sent != 0 {
			s.d.counts.latency.add(time.Duration(time.Now().UnixNano() - sent))
			s.sent.Store(0)
		}
	case opPing:
		s.frame(opPong, payload)
	case opPong:
	case opClose:
		err = errors.New("the tracker closed the socket")
		if len(payload) > 2 {
			err = fmt.Errorf("the tracker closed the socket: %s", payload[2:])
		}
	default:
		err = fmt.Errorf("the tracker sent a frame of opcode %d", op)
	}
	return acked, more, err
}

func (s *session) say(message []byte) { s.frame(opText, message) }

func (s *session) frame(op byte, payload []byte) {
	s.mu.Lock()
	s.out = appendFrame(s.out, op, payload)
	s.mu.Unlock()
}

// prepare says an announce, to be flushed.
func (s *session) prepare() {
	s.d.counts.announced.Add(1)
	s.sent.CompareAndSwap(0, time.Now().UnixNano())
	s.script.announce(s.say)
}

// announce says an announce and sends it.
func (s *session) announce() {
	s.prepare()
	if err := s.flush(); err != nil {
		s.d.lose(s.number, err)
	}
}

// flush writes what was said in one piece.
func (s *session) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.out) == 0 {
		return nil
	}
	_ = s.ws.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	_, err := s.ws.conn.Write(s.out)
	s.out = s.out[:0]
	if cap(s.out) > 64<<10 {
		s.out = nil
	}
	return err
}
