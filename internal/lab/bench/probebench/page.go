package probebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/netcheck"
)

// pagePatience is how long a check in a browser may take, the browser's start included.
const pagePatience = 2 * time.Minute

// pageOrder is what the page is told, in the words of web/apps/bench/src/probe/page.ts.
type pageOrder struct {
	Type   string   `json:"type"` // check
	Server string   `json:"server"`
	Plan   pagePlan `json:"plan"`
}

// pagePlan is a plan of @leeway/netcheck.
type pagePlan struct {
	Reach       bool    `json:"reach"`
	Download    bool    `json:"download"`
	Upload      bool    `json:"upload"`
	Quality     bool    `json:"quality"`
	GivesWay    bool    `json:"givesWay"`
	Connections int     `json:"connections"`
	Seconds     float64 `json:"seconds"`
	RampUp      float64 `json:"rampUp"`
}

// pageWord is what the page says.
type pageWord struct {
	Type    string          `json:"type"` // phase, results, failed
	Phase   netcheck.Phase  `json:"phase"`
	Why     string          `json:"why"`
	Results json.RawMessage `json:"results"`
}

// rampUpShare is the same part of a test as that of a check in a terminal.
const rampUpShare = 5

// inBrowser is the check of @leeway/netcheck in a browser on the client's host.
func inBrowser(firefox bool) func(context.Context, *bench.Run, *stage, plan) (results, error) {
	return func(ctx context.Context, _ *bench.Run, s *stage, p plan) (_ results, err error) {
		words := make(chan pageWord, 64)
		page := demopage.NewOrders(demopage.Script(), func(w pageWord) error {
			select {
			case words <- w:
				return nil
			default:
				return errors.New("the page says too much")
			}
		})
		defer page.Close()
		browser, err := demopage.OpenWith(ctx, s.client, demopage.Options{Page: page, Query: "?probe", Firefox: firefox})
		if err != nil {
			return results{}, err
		}
		defer func() { err = errors.Join(err, browser.Close()) }()
		page.Tell(pageOrder{Type: "check", Server: s.url(s.server.Addr()), Plan: p.ofPage()})
		return p.await(ctx, words, browser.Ended)
	}
}

func (p plan) ofPage() pagePlan {
	streams := p.streams
	if streams == 0 {
		streams = 4
	}
	return pagePlan{
		Reach:    slices.Contains(p.phases, netcheck.Reach),
		Download: slices.Contains(p.phases, netcheck.Download), Upload: slices.Contains(p.phases, netcheck.Upload), Quality: slices.Contains(p.phases, netcheck.Quality),
		GivesWay:    p.givesWay,
		Connections: streams, Seconds: p.duration.Seconds(), RampUp: p.duration.Seconds() / rampUpShare,
	}
}

// await takes what the page says until it has results.
func (p plan) await(ctx context.Context, words <-chan pageWord, ended <-chan error) (r results, err error) {
	late := time.NewTimer(pagePatience)
	defer late.Stop()
	for {
		select {
		case w := <-words:
			switch w.Type {
			case "phase":
				if p.begins != nil {
					p.begins(w.Phase)
				}
			case "results":
				var channel struct { // empty: it did what it should
					Channel string
					Reason  string `json:"channel_reason"`
				}
				if err := errors.Join(json.Unmarshal(w.Results, &r), json.Unmarshal(w.Results, &channel)); err != nil {
					return r, fmt.Errorf("results of the check: %w", err)
				}
				if channel.Channel != "" {
					return r, &endedError{fmt.Sprintf("the page's data channel was %s: %s", channel.Channel, channel.Reason)}
				}
				return r, nil
			default:
				return r, &endedError{w.Why}
			}
		case err := <-ended:
			return r, fmt.Errorf("the browser ended by itself: %w", err)
		case <-ctx.Done():
			return r, ctx.Err()
		case <-late.C:
			return r, fmt.Errorf("no result of the page within %s", pagePatience)
		}
	}
}
