// Package seed is the operator's server peer: it takes titles from the bus, follows their HLS playlists below the site's
// fetch_base, certifies the segments that viewers ask for and serves their pieces (spec/peer-protocol.md).
//
// Nothing that a viewer says reaches the origin but the manifest's path, which came through the tracker: URLs come
// from fetch_base and from playlists that the seed fetched itself.
//
// Lock order: Service.mu, then title.mu, then store.mu; budgets and links have locks of their own, taken last. No lock is
// held while a port is called.
package seed

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
)

// Bus carries messages between replicas.
type Bus interface {
	Publish(subject string, data []byte) error
	Subscribe(subject string, f func(subject string, data []byte, reply func([]byte) error)) (unsubscribe func(), err error)
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	Connected() bool
}

// Links answers offers of viewers. Close ends all links and waits for them.
type Links interface {
	Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error)
}

// Fetch is one request to a site's origin.
type Fetch struct {
	Path        string // below fetch_base: path and query, beginning with /
	Ranged      bool   // only bytes First to Last, inclusive
	First, Last int64
	MaxBytes    int64  // more is outcome too-large
	Shared      bool   // the bytes will be passed on: refuse what the response marks as not for everyone
	Validator   string // of what is held: not-modified is an answer then
}

// Fetched is what came.
type Fetched struct {
	Data         []byte
	ObjectLength int64  // bytes of the whole object
	Validator    string // ETag, else Last-Modified, else empty
	Path         string // below fetch_base, after redirects; empty when they led elsewhere
}

// Outcome of a request to an origin: the closed set of the metric.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeNotModified Outcome = "not-modified"
	OutcomeNotFound    Outcome = "not-found"
	OutcomeClient      Outcome = "client-error"
	OutcomeServer      Outcome = "server-error"
	OutcomeTimeout     Outcome = "timeout"
	OutcomeRefused     Outcome = "refused"
	OutcomeTooLarge    Outcome = "too-large"
	OutcomeNetwork     Outcome = "network"
)

// Outcomes lists the closed set.
var Outcomes = []Outcome{
	OutcomeOK, OutcomeNotModified, OutcomeNotFound, OutcomeClient, OutcomeServer,
	OutcomeTimeout, OutcomeRefused, OutcomeTooLarge, OutcomeNetwork,
}

// FetchError is why a fetch brought nothing.
type FetchError struct {
	Outcome      Outcome
	Path         string
	ObjectLength int64 // too-large: bytes of the object, 0 unknown
	Cause        error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("fetch %s from origin: %s: %v", e.Path, e.Outcome, e.Cause)
}

// Unwrap is the cause.
func (e *FetchError) Unwrap() error { return e.Cause }

// Origin fetches from one site's fetch_base. Errors are *FetchError.
type Origin interface {
	Get(ctx context.Context, f Fetch) (*Fetched, error)
}

// Site is one site that the seed serves.
type Site struct {
	Site       *site.Site
	Origin     Origin
	Rate       int64 // bytes/s that may be sent, 0 unlimited
	BytesDaily int64 // bytes a day that may be sent, 0 unlimited
}

// Config of a seed.
//
// Large: a key for each thing that a caller may set.
type Config struct {
	// DataDir holds the signing key and the store.
	DataDir     string
	Sites       []Site
	MemoryBytes int64 // pieces held in memory; 0: 256 MiB
	DiskBytes   int64 // pieces held on disk; 0: 4 GiB
	MaxLinks    int   // 0: 500
	MaxTitles   int   // 0: 1,000
	IndexBytes  int64 // what playlists list, in memory; 0: 64 MiB
	Rate        int64 // bytes/s that may be sent in all, 0 unlimited
	BytesDaily  int64 // bytes a day that may be sent in all, 0 unlimited
	// SessionFactor bounds what one link gets: factor × the title's highest bitrate × the link's age. 0: 1.5.
	SessionFactor float64
	// LookAhead is how many segments after one that was asked for are fetched before they are. Negative: none, 0: 1 (viewers ask ahead themselves).
	LookAhead int
	// Outside is where viewers are told that the seed is, and Bell hears who reaches it there; without them nobody asks.
	Outside []netip.AddrPort
	Bell    Doorbell
	// Fleet joins the seed with others; nil: it is alone.
	Fleet *Fleet
	// SocketRead and SocketWrite are the socket's buffer sizes, for the metrics.
	SocketRead, SocketWrite int
	Metrics                 metric.Sink
	Log                     *slog.Logger
	Now                     func() time.Time
}

func (c *Config) complete() error {
	if c.DataDir == "" {
		return fmt.Errorf("seed: no data directory (seed.data_dir)")
	}
	setDefault(&c.MemoryBytes, 256<<20)
	setDefault(&c.DiskBytes, 4<<30)
	setDefault(&c.MaxLinks, 500)
	setDefault(&c.MaxTitles, 1000)
	setDefault(&c.IndexBytes, 64<<20)
	setDefault(&c.SessionFactor, 1.5)
	setDefault(&c.LookAhead, 1)
	if c.Metrics == nil {
		c.Metrics = metric.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, s := range c.Sites {
		if s.Site == nil || s.Origin == nil {
			return fmt.Errorf("seed: a site without configuration or origin")
		}
	}
	return nil
}

func setDefault[T int | int64 | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
