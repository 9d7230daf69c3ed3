package tracker

import (
	"errors"
	"time"
)

// Socket is one that the tracker let in.
type Socket struct {
	Conn
	admission *admission
	of        *address
}

// slow is satisfied by errors of connections that ended because the other side did not read.
type slow interface{ Slow() bool }

// oversized is satisfied by errors of connections whose other side sent too much.
type oversized interface{ Oversized() bool }

// Send queues a message; any goroutine may. A reader that is too slow loses its socket.
func (s *Socket) Send(message []byte) {
	if err := s.Write(message); err != nil {
		s.countSlow(err)
	}
}

func (s *Socket) countSlow(err error) {
	if o := slow(nil); errors.As(err, &o) && o.Slow() {
		s.admission.Rejected("slow")
	}
}

// Silent ends the socket if it says nothing for a time, unless the timer is stopped.
func (s *Socket) Silent(after time.Duration, reason string) *time.Timer {
	return time.AfterFunc(after, func() {
		s.admission.Rejected("hello-timeout")
		s.Close(closePolicy, reason)
	})
}

// Violates ends the socket for what its other side did.
func (s *Socket) Violates(reason string) {
	s.admission.offended(s.of)
	s.Close(closePolicy, reason)
}

// Drain closes the socket since the tracker is going away.
func (s *Socket) Drain() { s.Close(closeDraining, "draining") }

// Done closes the socket of a client that has left.
func (s *Socket) Done() { s.Close(closeDone, "") }

// Gone counts a socket whose other side broke the size limit, or let a write wait too long.
func (s *Socket) Gone(err error) {
	s.countSlow(err)
	if o := oversized(nil); errors.As(err, &o) && o.Oversized() {
		s.admission.offended(s.of)
		s.admission.Rejected("oversized")
	}
}

// Left gives the place of the socket back. It is the last call.
func (s *Socket) Left() { s.admission.leave(s.of) }
