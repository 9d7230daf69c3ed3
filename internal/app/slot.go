package app

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// instance is a tracker or a seed that runs.
type instance struct {
	switcher
	ready func() error // says why it can take no work, or nil
	cut   func()       // ends its connections as a power cut would, before stop; nil: stop says goodbye
	stop  func()       // drains it; nothing of it is left then

	tracker  *tracker.Tracker // nil: a seed
	handlers trackerHandlers
}

// slot is the place of a service in its process. The service may end and start again there (outage.go); what asks for it in between
// finds the one that ended.
type slot struct {
	open func() (*instance, error)
	now  atomic.Pointer[instance]
	away atomic.Bool
}

// newSlot starts a service.
func newSlot(open func() (*instance, error)) (*slot, error) {
	s := &slot{open: open}
	first, err := open()
	s.now.Store(first)
	return s, err
}

// end stops the service without a word where it can. Neither it nor revive nor stop is called beside another of them.
func (s *slot) end() {
	s.away.Store(true)
	was := s.now.Load()
	if was.cut != nil {
		was.cut()
	}
	was.stop()
}

// revive starts the service that ended.
func (s *slot) revive() error {
	again, err := s.open()
	if err != nil {
		return err
	}
	s.now.Store(again)
	s.away.Store(false)
	return nil
}

// stop drains the service, unless it has ended.
func (s *slot) stop() {
	if !s.away.Swap(true) {
		s.now.Load().stop()
	}
}

func (s *slot) ready() error {
	if s.away.Load() {
		return errors.New("stopped for a while from the demo page")
	}
	return s.now.Load().ready()
}

// port answers with a handler of the tracker that runs. While there is none it hangs up: to a client that is a machine that is down.
func (s *slot) port(of func(trackerHandlers) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		of(s.now.Load().handlers).ServeHTTP(w, r)
	})
}

// Statements implements switcher.
func (s *slot) Statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	return s.now.Load().Statements(site, off, reason, until)
}

// Configure implements switcher.
func (s *slot) Configure(site string, off bool) { s.now.Load().Configure(site, off) }

// Packagers implements switcher.
func (s *slot) Packagers(site string, keys []certificate.VerifyKey) {
	s.now.Load().Packagers(site, keys)
}

// Collect implements metric.Collector, for the tracker that runs.
func (s *slot) Collect(tell func(d *metric.Def, v float64, labels ...string)) {
	if t := s.now.Load().tracker; t != nil {
		t.Collect(tell)
	}
}

// trackerHandlers are what one tracker answers with.
type trackerHandlers struct {
	socket   http.Handler // WebSockets on /
	announce http.Handler // WebSockets on /announce
	allowed  http.Handler // whether pages of an origin may join
	cmcd     http.Handler // reports of players
}

// trackerPorts are what the slot of a tracker has on the public port and for the admin port; zero without a tracker.
type trackerPorts struct {
	trackerHandlers
	admission func(net.Listener) net.Listener // what admits connections
	delivery  func() []tracker.Delivery       // for the admin port
}
