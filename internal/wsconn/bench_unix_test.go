//go:build unix

package wsconn

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/procstat"
)

// echoed is an endpoint that a benchmark talks to: what comes goes back.
type echoed struct {
	address string
	secure  bool
	close   func()
}

// echo is a Receiver that sends back what it receives.
type echo struct{ c *Conn }

func (e echo) Receive(message []byte) bool { return e.c.Write(message) == nil }
func (e echo) End(error)                   {}

// ours is this package with its admission, and TLS above it or not.
func ours(b *testing.B, secure bool) echoed {
	b.Helper()
	h := Handler(Config{Subprotocol: subprotocol, MaxMessage: 1 << 16}, func(c *Conn, _ *http.Request) Receiver { return echo{c} })
	server := httptest.NewUnstartedServer(nil)
	d := NewAdmission(server.Listener, AdmissionConfig{MaxPendingPerAddress: 4096, PerSecond: 1 << 20, Slack: UsualSlack})
	server.Listener = d
	server.Config = &http.Server{Handler: d.Guard(h), ConnContext: d.Context, ErrorLog: log.New(io.Discard, "", 0)}
	return started(server, secure, h.Wait)
}

// plain is what the others are compared with: the library alone, a goroutine for each connection that reads and writes.
func plain(_ *testing.B, secure bool) echoed {
	up := websocket.Upgrader{Subprotocols: []string{subprotocol}}
	var all sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close() //nolint:errcheck // the benchmark is over
			for {
				kind, m, err := c.ReadMessage()
				if err != nil || c.WriteMessage(kind, m) != nil {
					return
				}
			}
		})
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	return started(server, secure, all.Wait)
}

func started(server *httptest.Server, secure bool, wait func()) echoed {
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	return echoed{server.Listener.Addr().String(), secure, func() {
		server.Close()
		wait()
	}}
}

// dial opens n connections, and returns how to close them.
func (e echoed) dial(b *testing.B, n int) (all []*websocket.Conn, end func()) {
	b.Helper()
	scheme := "ws://"
	if e.secure {
		scheme = "wss://"
	}
	d := websocket.Dialer{Subprotocols: []string{subprotocol}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, WriteBufferPool: &sync.Pool{}}
	for range n {
		c, _, err := d.Dial(scheme+e.address, nil)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, c)
	}
	return all, func() {
		for _, c := range all {
			_ = c.Close()
		}
		e.close()
	}
}

// cost is the processor time of n things that f does, of both ends, in seconds each.
func cost(n int, f func()) float64 {
	before := procstat.CPU()
	f()
	return (procstat.CPU() - before).Seconds() / float64(n)
}

// kinds of endpoints, each with the plain one beside it.
var kinds = []struct {
	name   string
	secure bool
}{{"plaintext", false}, {"tls", true}}

// BenchmarkEcho: messages of 200 bytes there and back on 64 connections, one at a time on each. ×plain is the processor time of a
// message over that of the plain endpoint in the same run.
func BenchmarkEcho(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) { compare(b, k.secure, 1) })
	}
}

// BenchmarkBursts: sixteen messages there before the first comes back.
func BenchmarkBursts(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) { compare(b, k.secure, 16) })
	}
}

func compare(b *testing.B, secure bool, burst int) {
	const connections = 64
	message := make([]byte, 200)
	talk := func(e echoed, messages int) float64 {
		all, end := e.dial(b, connections)
		defer end()
		return cost(messages, func() {
			var talks sync.WaitGroup
			for i, c := range all {
				talks.Go(func() {
					for n := i; n < messages; n += connections * burst {
						for range burst {
							_ = c.WriteMessage(websocket.TextMessage, message)
						}
						for range burst {
							if _, _, err := c.ReadMessage(); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			talks.Wait()
		})
	}
	const fixed = 30_000
	theirs := talk(plain(b, secure), fixed)
	b.ResetTimer()
	got := talk(ours(b, secure), max(b.N, 64*burst))
	b.ReportMetric(got*1e6, "cpu-µs/message")
	b.ReportMetric(got/theirs, "×plain")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSilence: what a connection costs that has said one thing and says nothing more: heap and stacks, both ends; the other
// end is a file descriptor and what TLS needs.
func BenchmarkSilence(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			const connections = 1000
			hold := func(e echoed) float64 {
				before := resident()
				all, end := e.dial(b, connections)
				defer end()
				for _, c := range all {
					_ = c.WriteMessage(websocket.TextMessage, []byte("here"))
					if _, _, err := c.ReadMessage(); err != nil {
						b.Fatal(err)
					}
				}
				return float64(resident()-before) / connections
			}
			for range b.N {
				theirs := hold(plain(b, k.secure))
				got := hold(ours(b, k.secure))
				b.ReportMetric(got, "B/connection")
				b.ReportMetric(got/theirs, "×plain")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// resident is the memory of what lives, and of stacks.
func resident() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkCrowd: 1,000 connections come over TLS, sixteen at a time, each with a handshake of its own, while a session sends a message
// every 2 ms. p90 is what its messages take there and back, beside that with the plain endpoint.
func BenchmarkCrowd(b *testing.B) {
	crowd := func(e echoed) (p90, each float64) {
		all, end := e.dial(b, 1)
		defer end()
		var over atomic.Bool
		var coming sync.WaitGroup
		const comers, each16 = 1000, 16
		for range each16 {
			coming.Go(func() {
				d := websocket.Dialer{Subprotocols: []string{subprotocol}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, NetDial: patientDial}
				for range comers / each16 {
					if c, _, err := d.Dial("wss://"+e.address, nil); err == nil {
						_ = c.Close()
					} else if !strings.Contains(fmt.Sprint(err), "reset") {
						b.Error(err)
					}
				}
			})
		}
		go func() {
			coming.Wait()
			over.Store(true)
		}()
		var took []float64
		each = cost(comers, func() {
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for !over.Load() {
				<-tick.C
				began := time.Now()
				_ = all[0].WriteMessage(websocket.TextMessage, []byte("still there?"))
				if _, _, err := all[0].ReadMessage(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began).Seconds())
			}
		})
		slices.Sort(took)
		return took[len(took)*9/10], each
	}
	for range b.N {
		theirs, theirEach := crowd(plain(b, true))
		got, each := crowd(ours(b, true))
		b.ReportMetric(got*1e3, "p90-ms")
		b.ReportMetric(got/theirs, "×plain-p90")
		b.ReportMetric(each*1e6, "cpu-µs/connection")
		b.ReportMetric(each/theirEach, "×plain")
	}
	b.ReportMetric(0, "ns/op")
}

func patientDial(network, address string) (net.Conn, error) {
	return net.DialTimeout(network, address, patience)
}
