// Package doctor examines a set-up of Leeway and says what is wrong with it and how to mend it. Its checks look at a site as a
// viewer does (manifest, segments, tracker, relays, a link, a verified piece), and where a configuration is given also at what
// the services of that configuration would meet (Local).
//
// A check never fails by hope: one that cannot run says so, and why. Checks that do not need each other run side by side, each with a
// time limit of its own (Examine).
package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
)

// Status of a finding.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warning" // works, and costs something or soon will not
	Fail Status = "error"   // keeps viewers from sharing
	Skip Status = "skipped" // the check could not run
)

// Finding is what one check says.
type Finding struct {
	Check  string        `json:"check"`
	Status Status        `json:"status"`
	Code   string        `json:"code"`          // stable, for programs; "ok" and "skipped" of what has no code of its own
	Text   string        `json:"text"`          // what was seen
	Fix    string        `json:"fix,omitempty"` // what to do, with the name of the key or command
	Took   time.Duration `json:"-"`
	TookMs int64         `json:"took_ms"`
}

// Report is what an examination found, in the order of the checks.
type Report struct {
	Healthy  bool      `json:"healthy"` // no error; warnings and skipped checks do not count
	Findings []Finding `json:"findings"`
	TookMs   int64     `json:"took_ms"`
}

// Config says what is examined.
type Config struct {
	Manifest   string // URL; empty: what needs one is skipped
	Tracker    string // ws or wss URL; empty: what needs one is skipped
	PageOrigin string // of the page with the player; empty: the manifest's
	Site       string // name; empty: by the page's origin
	Title      string // explicit title
	Token      string // join token
	AdminPort  string // where the admin port of the tracker's host would be; empty: 9464
	Local      *Local // of the configuration; nil: none was given
	Client     string // name/version

	// Roots replace the system's, Dial the process's network, Now the clock.
	Roots *x509.CertPool
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Now   func() time.Time
	// Patience bounds the wait for a first verified piece; 0: 8 s.
	Patience time.Duration
	Log      *slog.Logger
}

// Local is what only the configuration and the machine of the services can tell.
type Local struct {
	Problems []string                        // of the configuration, each with file, line and key
	Bus      func(ctx context.Context) error // joins NATS and leaves it again; nil: the configuration names no server
	Origins  []Origin                        // as seeds of this configuration fetch from them
	Admins   map[string]string               // addresses that admin ports listen on, by key
	Secrets  []string                        // keys of tracker.ice_servers whose secret is none of turn.secrets
	Buffers  func() (read, write int, err error)
	Want     int                                             // bytes that a seed wants of each buffer
	Files    func(ctx context.Context) (n uint64, of string) // that the tracker may have open, or else this process; 0 or nil: unknown
	Sessions int                                             // tracker.max_sessions, with what else needs files
}

// Origin is the origin of one site.
type Origin struct {
	Site   *site.Site
	Base   string // fetch_base
	Origin seed.Origin
	Closed error // why no seed of this configuration can ask it; then Origin is nil
}

const (
	defaultAdmin    = "9464"
	defaultPatience = 8 * time.Second
)

func (c Config) complete() Config {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	c.AdminPort = cmp.Or(c.AdminPort, defaultAdmin)
	if c.Client == "" {
		c.Client = "leeway-doctor"
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.PageOrigin = cmp.Or(originOf(c.PageOrigin), originOf(c.Manifest))
	return c
}
