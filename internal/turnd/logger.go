package turnd

import "github.com/pion/logging"

// silence takes pion's logs: they hold addresses of viewers, and what they tell is counted.
type silence struct{}

func (silence) NewLogger(string) logging.LeveledLogger { return silence{} }
func (silence) Trace(string)                           {}
func (silence) Tracef(string, ...any)                  {}
func (silence) Debug(string)                           {}
func (silence) Debugf(string, ...any)                  {}
func (silence) Info(string)                            {}
func (silence) Infof(string, ...any)                   {}
func (silence) Warn(string)                            {}
func (silence) Warnf(string, ...any)                   {}
func (silence) Error(string)                           {}
func (silence) Errorf(string, ...any)                  {}
