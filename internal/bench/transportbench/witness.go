package transportbench

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"
)

// witness measures round trips through the bottleneck from hosts of its own, with packets so small and so few that the
// flows do not feel it: what everybody else on the line has of the queue.
type witness struct {
	near, far *net.UDPConn
	to        netip.AddrPort
	every     time.Duration
	begun     time.Time
	stopped   chan struct{}
	once      sync.Once
	wg        sync.WaitGroup
}

// Spacing of the witness's packets; slow lines get fewer, so that it never takes half a percent.
const (
	witnessEvery     = 20 * time.Millisecond
	witnessEverySlow = 100 * time.Millisecond
	witnessSlow      = 5_000_000 // bits per second
	witnessBytes     = 16
)

func newWitness(at site, rate int64) (*witness, error) {
	w := &witness{every: witnessEvery, stopped: make(chan struct{})}
	if rate < witnessSlow {
		w.every = witnessEverySlow
	}
	var err error
	if w.near, err = at.near[0].ListenUDP(); err != nil {
		return nil, err
	}
	if w.far, err = at.far[0].ListenUDP(); err != nil {
		_ = w.near.Close()
		return nil, err
	}
	w.to = w.far.LocalAddr().(*net.UDPAddr).AddrPort()
	w.wg.Go(w.answer)
	return w, nil
}

// answer sends back what comes to the far side.
func (w *witness) answer() {
	buf := make([]byte, 64)
	for {
		n, from, err := w.far.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		_, _ = w.far.WriteToUDPAddrPort(buf[:n], from)
	}
}

// run asks from now on.
func (w *witness) run(rec *record) {
	w.begun = time.Now()
	w.wg.Go(func() {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		for {
			var b [witnessBytes]byte
			binary.BigEndian.PutUint64(b[:], uint64(time.Since(w.begun)))
			_, _ = w.near.WriteToUDPAddrPort(b[:], w.to)
			select {
			case <-tick.C:
			case <-w.stopped:
				return
			}
		}
	})
	w.wg.Go(func() {
		buf := make([]byte, 64)
		for {
			n, _, err := w.near.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if n == witnessBytes {
				at := time.Duration(binary.BigEndian.Uint64(buf))
				rec.echo(echo{at: at, rtt: time.Since(w.begun) - at})
			}
		}
	})
}

func (w *witness) close() {
	w.once.Do(func() {
		close(w.stopped)
		_ = w.near.Close()
		_ = w.far.Close()
		w.wg.Wait()
	})
}
