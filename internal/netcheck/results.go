package netcheck

import (
	"math"

	"github.com/leeway-video/leeway/internal/netstat"
)

// Results are what a check has measured (spec/probe.md, Results).
type Results struct {
	Version   int    `json:"version"`
	Server    string `json:"server"`
	StartedMS int64  `json:"started_ms"`
	OneWay    string `json:"one_way,omitempty"` // "clock": the clocks do not allow delays of one way
	// Reachability is nil where the server names no STUN servers.
	Reachability *Reachability            `json:"reachability,omitempty"`
	Figures      []netstat.Figure         `json:"figures"`
	Scores       map[string]netstat.Score `json:"scores"`
	HTTP         []netstat.Figure         `json:"http,omitempty"`
	Classes      []Class                  `json:"classes,omitempty"`
	// Confidence is that of request_responsiveness.
	Confidence map[netstat.Direction]netstat.Confidence `json:"confidence,omitempty"`
}

// Find is the largest value of a kind, of one direction or, where that is empty, of any.
func (r *Results) Find(k netstat.Kind, d netstat.Direction) (value float64, ok bool) {
	value = math.Inf(-1)
	for _, f := range r.Figures {
		if f.Name == k.Name && (d == "" || f.Direction == d) {
			value, ok = max(value, f.Value), true
		}
	}
	return value, ok
}

// score computes the scores: the smallest baseline, and of the others the worse direction.
func (r *Results) score() {
	latency := -1.0
	for _, f := range r.Figures {
		if f.Name == netstat.BaselineRTT.Name && (latency < 0 || f.Value*1000 < latency) {
			latency = f.Value * 1000
		}
	}
	or := func(k netstat.Kind, d netstat.Direction, scale float64) float64 {
		if v, ok := r.Find(k, d); ok {
			return v * scale
		}
		return -1
	}
	r.Scores = netstat.Experience{
		Loss: or(netstat.Loss, "", 1), Latency: latency, Loaded: or(netstat.LoadedRTT, "", 1000), Jitter: or(netstat.Jitter, "", 1000),
		Download: or(netstat.Throughput, netstat.Down, 1), Upload: or(netstat.Throughput, netstat.Up, 1),
	}.Scores()
}
