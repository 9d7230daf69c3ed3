package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
)

// What strangers can make a process write (spec/budgets.md).
const (
	maxLogLines    = 20               // of one message in a window
	logWindow      = 10 * time.Second // begins with a message's first line
	maxLogMessages = 1024             // that have a window of their own; all others share one
)

var droppedLinesMetric = &metric.Def{
	Name: "leeway_log_dropped_lines_total", Help: "Log lines not written since their message came too often", Kind: metric.Counter,
}

// logQuota bounds the lines of each message: a message is a constant of the code, what strangers vary is in its attributes. The first
// line of the next window says how many were dropped. Debug lines are not bounded, since an operator asked for them.
type logQuota struct {
	next  slog.Handler
	state *logWindows
}

// logWindows is what all handlers of one logger share.
type logWindows struct {
	sink laterSink

	mu   sync.Mutex
	open map[string]*logLines
}

// logLines is the window of one message.
type logLines struct {
	began   time.Time
	written int
	dropped int
}

func newLogQuota(next slog.Handler) logQuota {
	return logQuota{next: next, state: &logWindows{open: map[string]*logLines{}}}
}

// countDroppedLines has the lines that a logger drops counted from now on.
func countDroppedLines(log *slog.Logger, sink metric.Sink) {
	if q, ok := log.Handler().(logQuota); ok {
		q.state.sink.set(sink)
	}
}

// Enabled implements slog.Handler.
func (q logQuota) Enabled(ctx context.Context, l slog.Level) bool { return q.next.Enabled(ctx, l) }

// WithGroup implements slog.Handler.
func (q logQuota) WithGroup(name string) slog.Handler {
	return logQuota{q.next.WithGroup(name), q.state}
}

// WithAttrs implements slog.Handler.
func (q logQuota) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logQuota{q.next.WithAttrs(attrs), q.state}
}

// Handle implements slog.Handler.
func (q logQuota) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		write, dropped := q.state.take(r.Message, r.Time)
		if !write {
			q.state.sink.Add(droppedLinesMetric, 1)
			return nil
		}
		if dropped > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("dropped_lines", dropped))
		}
	}
	return q.next.Handle(ctx, r)
}

// take says whether a line of a message may be written now, and how many of it were dropped in the window before.
func (w *logWindows) take(message string, now time.Time) (write bool, dropped int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.open[message]
	if lines == nil {
		if len(w.open) >= maxLogMessages {
			message = ""
			lines = w.open[message]
		}
		if lines == nil {
			lines = &logLines{began: now}
			w.open[message] = lines
		}
	}
	if now.Sub(lines.began) >= logWindow {
		dropped = lines.dropped
		*lines = logLines{began: now}
	}
	if lines.written >= maxLogLines {
		lines.dropped++
		return false, 0
	}
	lines.written++
	return true, dropped
}
