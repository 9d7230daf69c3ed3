package rtclink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/pion/logging"
)

// loggers hands pion's logs to slog, from its info on, as debug: what pion calls an error (a peer that went away) is the
// ordinary life of a link here, and addresses of viewers belong in no log above that. Pion's own debug lines hold ICE
// passwords and go nowhere.
type loggers struct {
	log *slog.Logger
	// made holds the logger of each scope: a link asks for a dozen, and they are the same for all links.
	made *sync.Map // string → logging.LeveledLogger
}

func newLoggers(log *slog.Logger) loggers { return loggers{log, &sync.Map{}} }

func (l loggers) NewLogger(scope string) logging.LeveledLogger {
	if made, ok := l.made.Load(scope); ok {
		return made.(logging.LeveledLogger)
	}
	made, _ := l.made.LoadOrStore(scope, logger{l.log.With("pion", scope)})
	return made.(logging.LeveledLogger)
}

type logger struct{ log *slog.Logger }

func (l logger) Trace(string)          {}
func (l logger) Tracef(string, ...any) {}
func (l logger) Debug(string)          {}
func (l logger) Debugf(string, ...any) {}
func (l logger) Info(m string)         { l.log.Debug(m) }
func (l logger) Infof(f string, a ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(f, a...))
	}
}
func (l logger) Warn(m string)             { l.Info(m) }
func (l logger) Warnf(f string, a ...any)  { l.Infof(f, a...) }
func (l logger) Error(m string)            { l.Info(m) }
func (l logger) Errorf(f string, a ...any) { l.Infof(f, a...) }
