package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// check is one thing that is looked at. It runs when the checks named in after have run, whatever they found, and reads what they
// left in the examination; a check that misses something there skips itself.
type check struct {
	name  string
	after []string
	limit time.Duration
	run   func(ctx context.Context, e *examination) []Finding
}

// checks are in the order in which findings are told.
func checks(c Config) []check {
	const short, long = 5 * time.Second, 6 * time.Second
	return []check{
		{"config", nil, short, checkConfig},
		{"manifest", nil, short, checkManifest},
		{"segments", []string{"manifest"}, short, checkSegments},
		{"cors", []string{"segments"}, short, checkCORS},
		{"shareable", []string{"segments"}, short, checkShareable},
		{"tracker", nil, short, checkTracker},
		{"welcome", []string{"tracker"}, short, checkWelcome},
		{"clock", []string{"welcome", "manifest"}, short, checkClock},
		{"site", []string{"welcome", "segments"}, short, checkSite},
		{"signed", []string{"site"}, short, checkSigned},
		{"seed", []string{"site"}, short, checkSeed},
		{"origin", []string{"manifest"}, long, checkOrigin},
		{"relays", []string{"welcome"}, short, checkRelays},
		{"piece", []string{"seed", "signed", "cors"}, c.Patience + 2*time.Second, checkPiece},
		{"nats", nil, short, checkBus},
		{"buffers", nil, short, checkBuffers},
		{"files", nil, short, checkFiles},
		{"admin", nil, short, checkAdmin},
	}
}

// Examine runs all checks, each within its limit. heard, if not nil, gets each finding as soon as it and those before it are there.
func Examine(ctx context.Context, c Config, heard func(Finding)) Report {
	c = c.complete()
	e := newExamination(c)
	defer e.close()
	begun := time.Now()
	list := checks(c)
	done, found := map[string]chan struct{}{}, make([][]Finding, len(list))
	for _, k := range list {
		done[k.name] = make(chan struct{})
	}
	var busy sync.WaitGroup
	for i, k := range list {
		busy.Go(func() {
			defer close(done[k.name])
			for _, name := range k.after {
				<-done[name]
			}
			found[i] = k.within(ctx, e)
		})
	}
	report := Report{Healthy: true}
	for i, k := range list {
		<-done[k.name]
		for _, f := range found[i] {
			report.Healthy = report.Healthy && f.Status != Fail
			report.Findings = append(report.Findings, f)
			if heard != nil {
				heard(f)
			}
		}
	}
	busy.Wait()
	report.TookMs = time.Since(begun).Milliseconds()
	return report
}

// within runs a check within its limit.
func (k check) within(ctx context.Context, e *examination) []Finding {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	begun := time.Now()
	found := k.run(ctx, e)
	took := time.Since(begun)
	for i := range found {
		found[i].Check, found[i].Took, found[i].TookMs = k.name, took, took.Milliseconds()
	}
	return found
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Status: OK, Code: "ok", Text: fmt.Sprintf(format, args...)}}
}

func skipped(format string, args ...any) []Finding {
	return []Finding{{Status: Skip, Code: "skipped", Text: fmt.Sprintf(format, args...)}}
}

func fail(code, text, fix string) []Finding {
	return []Finding{{Status: Fail, Code: code, Text: text, Fix: fix}}
}

func warn(code, text, fix string) []Finding {
	return []Finding{{Status: Warn, Code: code, Text: text, Fix: fix}}
}
