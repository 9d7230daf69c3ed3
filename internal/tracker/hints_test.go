package tracker

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestNamesOfOneViewerAreHintedAt: each report is counted, and the site's log has a line in ten minutes, whatever viewers report.
func TestNamesOfOneViewerAreHintedAt(t *testing.T) {
	w := newWorld(t)
	var log testkit.Output
	n := w.tracker(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	v := n.viewer("")
	swarm := v.join().Swarm
	report := func(i int) {
		w.clock.Move(10 * time.Second)
		v.send(&signal.Stats{Swarm: swarm, Interval: 10_000, UnlistedQuery: map[string]int64{"token": 2, "expires": 2, fmt.Sprintf("p%d", i): 1}})
		testkit.Eventually(t, "counted", func() bool { return w.metrics.Value(defUnshared, "demo", ofSegment) == 2*float64(i+1) })
	}
	lines := func() int { return strings.Count(log.String(), "key.ignore_query") }
	for i := range 10 {
		report(i)
	}
	if text := log.String(); lines() != 1 || !strings.Contains(text, "token") || strings.Contains(text, "p1") {
		t.Errorf("10 reports: %s", text)
	}
	w.clock.Move(hintEvery)
	report(10)
	if lines() != 2 {
		t.Errorf("ten minutes later: %s", log.String())
	}
	v.send(&signal.Join{Request: 9, Title: "/film?token=a&lang=de", Manifest: "/film/master.m3u8", Role: "full", Want: 1})
	testkit.Eventually(t, "title counted", func() bool { return w.metrics.Value(defUnshared, "demo", ofTitle) == 1 })
	testkit.Eventually(t, "title hinted at", func() bool { return lines() == 3 && strings.Contains(log.String(), "in_names_of=titles") })
}
