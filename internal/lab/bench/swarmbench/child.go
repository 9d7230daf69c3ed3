package swarmbench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/viewer"
)

// roleViewer is the child process of one headless viewer: it plays a plan and says what it was given to play.
const roleViewer = "viewer"

// order is what a child is told.
type order struct {
	Manifest string
	Peers    bool
	Plan     Plan
	Speed    float64
	Stay     time.Duration // how long a guest stays
	Parts    bool          // of a low-latency stream are played and shared
	Record   string        // file for what the schedule saw and decided; empty: none
}

// played is one segment as the player got it.
type played struct {
	URL         string
	Ranged      bool
	First, Last int64
	Bytes       int
	Digest      string // SHA-256, hexadecimal
}

// told is what a child answers.
type told struct {
	Summary viewer.Summary
	Played  []played
}

// readOrder reads what a child is told, and what its viewer is to be like.
func readOrder(in *json.Decoder) (o order, cfg viewer.Config, err error) {
	if err := in.Decode(&o); err != nil {
		return o, cfg, fmt.Errorf("read the order: %w", err)
	}
	cfg, err = o.config()
	return o, cfg, err
}

// playRole plays what is ordered, in the network that the process is in, and tells once it is over.
func playRole(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	o, cfg, err := readOrder(in)
	if err != nil {
		return err
	}
	if o.Record != "" {
		tape, err := os.Create(o.Record)
		if err != nil {
			return err
		}
		defer tape.Close()
		cfg.Record = tape
	}
	var answer told
	cfg.OnSegment = func(r *viewer.Result) { answer.Played = append(answer.Played, witness(r)) } // on the viewer's loop
	v, err := headless.Start(cfg, headless.Network{Through: pollution(o.Plan.Pollutes)})
	if err != nil {
		return err
	}
	if !o.Plan.Dies {
		defer v.Close()
	}
	var gone <-chan time.Time
	if o.Plan.Dies {
		gone = time.After(o.Plan.LeaveAfter)
	}
	select {
	case <-v.Done():
	case <-gone:
		last := make(chan told, 1)
		v.Report(func(s viewer.Summary) { last <- told{s, slices.Clone(answer.Played)} })
		return out.Write(<-last) // the process ends: no peer hears of it
	case <-ctx.Done():
		return ctx.Err()
	}
	answer.Summary = v.Summary() // by the loop, so that nothing is added to Played afterwards
	return out.Write(answer)
}

func (o order) config() (viewer.Config, error) {
	at, err := url.Parse(o.Manifest)
	if err != nil {
		return viewer.Config{}, err
	}
	p := o.Plan
	cfg := viewer.Config{
		URL: o.Manifest, Origin: at.Scheme + "://" + at.Host, Client: "leeway-bench", Speed: o.Speed, Leave: p.LeaveAfter, LowLatency: o.Parts,
	}
	if p.Dies {
		cfg.Leave = 0
	}
	if o.Peers {
		cfg.Tracker = (&url.URL{Scheme: "ws", Host: at.Host, Path: "/"}).String()
	}
	if p.SeekAfter > 0 {
		cfg.Seeks = []viewer.Seek{{After: p.SeekAfter, To: p.SeekTo}}
	}
	return cfg, nil
}

// witness takes down what the player was given.
func witness(r *viewer.Result) played {
	sum := sha256.New()
	for _, p := range r.Pieces {
		_, _ = sum.Write(p) // never fails
	}
	return played{URL: r.URL, Ranged: r.Ranged, First: r.First, Last: r.Last, Bytes: r.Len(), Digest: hex.EncodeToString(sum.Sum(nil))}
}
