package transportbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// witness measures round trips through the bottleneck from hosts of its own, with packets so small and so few that the
// flows do not feel it: what others on the line have of the queue. It pings: the kernel answers, and says when an
// answer came, so that a busy machine does not look like a queue.
type witness struct {
	near    *net.IPConn
	to      *net.IPAddr
	every   time.Duration
	stopped chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
}

// Spacing of the witness's packets; slow lines get fewer, so that it never takes half a percent.
const (
	witnessEvery     = 20 * time.Millisecond
	witnessEverySlow = 100 * time.Millisecond
	witnessSlow      = 5_000_000 // bits per second
)

// An echo request (RFC 792) with the time of its sending.
const (
	echoRequest = 8
	echoReply   = 0
	echoHeader  = 8
	echoBytes   = echoHeader + 8
)

func newWitness(at site, rate int64) (*witness, error) {
	w := &witness{every: witnessEvery, stopped: make(chan struct{}), to: &net.IPAddr{IP: at.far[0].Addr().AsSlice()}}
	if rate < witnessSlow {
		w.every = witnessEverySlow
	}
	c, err := at.near[0].ListenPacket(context.Background(), "ip4:icmp", at.near[0].Addr().String())
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	w.near = c.(*net.IPConn)
	raw, err := w.near.SyscallConn()
	if err == nil {
		var set error
		err = raw.Control(func(fd uintptr) { set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1) })
		err = errors.Join(err, set)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("witness: times of arrival: %w", err), c.Close())
	}
	return w, nil
}

// run asks from now on.
func (w *witness) run(rec *record) {
	w.wg.Go(func() {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		for n := uint16(0); ; n++ {
			_, _ = w.near.WriteTo(ping(n, time.Now()), w.to)
			select {
			case <-tick.C:
			case <-w.stopped:
				return
			}
		}
	})
	w.wg.Go(func() {
		var buf, control [256]byte
		for {
			n, c, _, _, err := w.near.ReadMsgIP(buf[:], control[:])
			if err != nil {
				return
			}
			came, known := arrivedAt(control[:c])
			sent, ours := pong(buf[:n])
			if known && ours {
				rec.echo(echo{at: sent.Sub(rec.begun), rtt: came.Sub(sent)})
			}
		}
	})
}

// ping is an echo request.
func ping(n uint16, now time.Time) []byte {
	b := make([]byte, echoBytes)
	b[0] = echoRequest
	binary.BigEndian.PutUint16(b[6:], n)
	binary.BigEndian.PutUint64(b[echoHeader:], uint64(now.UnixNano()))
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// pong is when the request was sent that a packet, with its IP header, answers.
func pong(b []byte) (time.Time, bool) {
	if len(b) == 0 || len(b) < int(b[0]&15)*4+echoBytes {
		return time.Time{}, false
	}
	b = b[int(b[0]&15)*4:]
	return time.Unix(0, int64(binary.BigEndian.Uint64(b[echoHeader:]))), b[0] == echoReply
}

// arrivedAt is when the kernel had a packet.
func arrivedAt(control []byte) (time.Time, bool) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, false
	}
	for _, m := range messages {
		if m.Header.Level == syscall.SOL_SOCKET && m.Header.Type == syscall.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:]))), true
		}
	}
	return time.Time{}, false
}

func (w *witness) close() {
	w.once.Do(func() {
		close(w.stopped)
		_ = w.near.Close()
		w.wg.Wait()
	})
}
