package peersbench

import (
	"bufio"
	"encoding/json"
	"net"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// exchange passes signals on between ends: it stands for the signaling server, on a host of its own.
type exchange struct {
	listener net.Listener
	joined   chan int // names of ends that have come
	wg       sync.WaitGroup

	mu    sync.Mutex
	ends  map[int]*bench.Writer // guarded by mu: by their names
	lines []net.Conn            // guarded by mu
}

// namesBound is above the ends of any measurement.
const namesBound = 64

func newExchange(listener net.Listener) *exchange {
	x := &exchange{listener: listener, joined: make(chan int, namesBound), ends: map[int]*bench.Writer{}}
	x.wg.Go(x.accept)
	return x
}

// Addr is where the ends find it.
func (x *exchange) Addr() string { return x.listener.Addr().String() }

func (x *exchange) accept() {
	for {
		line, err := x.listener.Accept()
		if err != nil {
			return // closed
		}
		x.mu.Lock()
		x.lines = append(x.lines, line)
		x.mu.Unlock()
		x.wg.Go(func() { x.serve(line) })
	}
}

// serve takes an end's name, and passes on what it says.
func (x *exchange) serve(line net.Conn) {
	in := json.NewDecoder(bufio.NewReader(line))
	for {
		var m envelope
		if in.Decode(&m) != nil {
			return
		}
		x.mu.Lock()
		to := x.ends[m.To]
		if m.Signal == nil {
			x.ends[m.Name] = bench.NewWriter(line)
		}
		x.mu.Unlock()
		if m.Signal == nil {
			x.joined <- m.Name
		} else if to != nil {
			_ = to.Write(m)
		}
	}
}

func (x *exchange) close() {
	_ = x.listener.Close()
	x.mu.Lock()
	for _, line := range x.lines {
		_ = line.Close()
	}
	x.mu.Unlock()
	x.wg.Wait()
}
