package netlab

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestBenchQueues is how long segments take over TCP, one after the other on a connection, by the queue of a line whose path is long.
func TestBenchQueues(t *testing.T) {
	w := sheet(t, "five segments of 700 kB over kernel TCP, 4 Mbit/s, 150 ms each way; twelve lines at a time")
	fmt.Fprintln(w, "control\tqueue\tfirst: min\tmedian\tmax\tfifth: min\tmedian\tmax\tverdict")
	const rate, rtt = 4_000_000, 300 * time.Millisecond
	for _, control := range []string{"cubic", "bbr"} {
		for _, queue := range []time.Duration{100 * time.Millisecond, rtt, 2 * rtt} {
			first, fifth, r := segments(t, control, Link{Rate: rate, Delay: rtt / 2, Queue: BDP(rate, queue)})
			fmt.Fprintf(w, "%s\t%v", control, queue)
			for _, of := range [][]time.Duration{first, fifth} {
				slices.Sort(of)
				for _, d := range []time.Duration{of[0], of[len(of)/2], of[len(of)-1]} {
					fmt.Fprintf(w, "\t%.2f s", d.Seconds())
				}
			}
			fmt.Fprintf(w, "\t%s\n", verdict(r.Certify()))
		}
	}
}

// segments has a dozen hosts on lines of their own fetch five segments, and returns when the first was there, and the fifth.
func segments(t *testing.T, control string, down Link) (first, fifth []time.Duration, r Report) {
	t.Helper()
	lab, err := New(Options{CongestionControl: control})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lab.Close() }()
	core := lab.Router("core")
	server, _ := lab.Attach("server", core, Path{})
	hosts := make([]*Host, 12)
	for i := range hosts {
		hosts[i], _ = lab.Attach(fmt.Sprintf("viewer%d", i), core, Path{Down: down, Up: Link{Delay: down.Delay}})
	}
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	listener := listen(t, server)
	served := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 700_000)) })}
	go func() { _ = served.Serve(listener) }()
	defer func() { _ = served.Close() }()
	if err := lab.Mark(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, h := range hosts {
		wg.Go(func() {
			client := http.Client{Transport: &http.Transport{DialContext: h.DialContext}}
			defer client.CloseIdleConnections()
			begun := time.Now()
			for n := range 5 {
				response, err := client.Get("http://" + listener.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				mu.Lock()
				switch n {
				case 0:
					first = append(first, time.Since(begun))
				case 4:
					fifth = append(fifth, time.Since(begun))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if r, err = lab.Report(); err != nil {
		t.Fatal(err)
	}
	return first, fifth, r
}
