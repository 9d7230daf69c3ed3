package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
)

// TestAMessageHasSoManyLines: a stranger that causes a line with each request fills no disk, hides no other message, and is seen.
func TestAMessageHasSoManyLines(t *testing.T) {
	var out strings.Builder
	log, err := newLogger(&out, false, LogConfig{Level: "info", Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	var counted counter
	countDroppedLines(log, &counted)
	now := time.Unix(1_700_000_000, 0)
	line := func(message string) {
		r := slog.NewRecord(now, slog.LevelWarn, message, 0)
		r.AddAttrs(slog.String("site", "main"))
		if err := log.With("seed", "a").Handler().Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for range 10_000 {
		line("bad offer")
	}
	line("another")
	if n := strings.Count(out.String(), "bad offer"); n != maxLogLines || !strings.Contains(out.String(), "another") {
		t.Errorf("%d lines of one message, at most %d; the other message is there: %v", n, maxLogLines, strings.Contains(out.String(), "another"))
	}
	if counted != 10_000-maxLogLines {
		t.Errorf("%v dropped lines are counted", counted)
	}
	out.Reset()
	now = now.Add(logWindow)
	line("bad offer")
	if want := fmt.Sprintf(`"dropped_lines":%d`, 10_000-maxLogLines); !strings.Contains(out.String(), want) {
		t.Errorf("%s does not say %s", out.String(), want)
	}
}

// TestMessagesAreBounded: what a library puts into its messages does not grow the table.
func TestMessagesAreBounded(t *testing.T) {
	w := &logWindows{open: map[string]*logLines{}}
	written := 0
	for i := range 4 * maxLogMessages {
		if ok, _ := w.take(fmt.Sprint("message ", i), time.Unix(1_700_000_000, 0)); ok {
			written++
		}
	}
	if len(w.open) > maxLogMessages+1 || written != maxLogMessages+maxLogLines {
		t.Errorf("%d messages are remembered, %d lines written", len(w.open), written)
	}
}

// counter adds up what is counted.
type counter float64

func (c *counter) Add(_ *metric.Def, v float64, _ ...string) { *c += counter(v) }
func (c *counter) Set(*metric.Def, float64, ...string)       {}
func (c *counter) Observe(*metric.Def, float64, ...string)   {}
