package swarmbench

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

//go:embed page.js
var pageScript string

// report is what the page tells.
type report struct {
	Ended string   `json:"ended"`
	Bytes int64    `json:"bytes"` // of all segments that the player got
	Given []string `json:"given"` // their paths
	Demo  struct {
		StartupMs  float64 `json:"startup_ms"` // from navigation on
		Stalls     int64   `json:"stalls"`
		StallMs    float64 `json:"stall_ms"`
		PlayedMs   float64 `json:"played_ms"`
		PlayedBits float64 `json:"played_bits"`
		Switches   int64   `json:"switches"`
		LatencyMs  float64 `json:"latency_ms"`
		Notices    []struct {
			Code string `json:"code"`
		} `json:"notices"`
	} `json:"demo"`
	Leeway *struct {
		Self   string `json:"self"`
		Titles []struct {
			Totals signal.Stats `json:"totals"`
		} `json:"titles"`
	} `json:"leeway"`
	Rival *struct {
		HTTP     int64 `json:"http"`
		P2P      int64 `json:"p2p"`
		Uploaded int64 `json:"uploaded"`
	} `json:"rival"`
}

// stats are the report in the terms of the headless viewers.
func (r report) stats() signal.Stats {
	s := signal.Stats{}
	if r.Leeway != nil && len(r.Leeway.Titles) > 0 {
		s = r.Leeway.Titles[0].Totals
	}
	if r.Rival != nil {
		s.Bytes = map[string]int64{"origin": r.Rival.HTTP, "peer": r.Rival.P2P}
		s.Uploaded = map[string]int64{"direct": r.Rival.Uploaded}
	}
	if s.Bytes == nil {
		s.Bytes = map[string]int64{}
	}
	// What the player got and the library does not know came from the origin, before the library was there.
	others := int64(0)
	for k, n := range s.Bytes {
		if k != "origin" {
			others += n
		}
	}
	s.Bytes["origin"] = max(s.Bytes["origin"], r.Bytes-others)
	d := r.Demo
	s.StartupMs, s.Stalls, s.StallMs, s.Switches = int64(d.StartupMs), d.Stalls, int64(d.StallMs), d.Switches
	s.PlayedMs, s.PlayedBits = int64(d.PlayedMs), int64(d.PlayedBits)
	return s
}

func (r report) outcome(p Plan, failed bool) Outcome {
	o := Outcome{Plan: p, Stats: r.stats(), LatencyMs: int64(r.Demo.LatencyMs), Failed: failed, Given: r.Given}
	if r.Leeway != nil {
		o.Session = r.Leeway.Self
	}
	for _, n := range r.Demo.Notices {
		o.Notices = append(o.Notices, n.Code)
	}
	return o
}

// page is the proxy between a browser and the servers: page, script, tracker and film, unchanged but for the two lines
// that have the page tell how it goes.
type page struct {
	http.Handler
	told chan report // the last one

	mu   sync.Mutex
	last report // guarded by mu
}

// newPage makes it. other is further text for the head of the page.
func newPage(dial func(ctx context.Context, network, address string) (net.Conn, error), servers string, leave time.Duration, busy float64, other string) *page {
	p := &page{told: make(chan report, 1)}
	head := fmt.Sprintf(`%s<script data-leave="%d" data-busy="%g">%s</script>`, demopage.Hush, leave.Milliseconds(), busy, pageScript) + other
	p.Handler = demopage.Telling(dial, servers, head, p.hear)
	return p
}

// hear takes a report.
func (p *page) hear(body io.Reader) error {
	var said report
	if err := json.NewDecoder(body).Decode(&said); err != nil {
		return err
	}
	p.mu.Lock()
	p.last = said
	p.mu.Unlock()
	if said.Ended != "" {
		select {
		case p.told <- said:
		default: // it has told already
		}
	}
	return nil
}
