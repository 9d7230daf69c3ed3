// Package seed is the operator's server peer: it takes titles from the bus, follows their HLS playlists and MPDs below the site's
// fetch_base, certifies the segments that viewers ask for and serves their pieces (spec/peer-protocol.md).
//
// Nothing that a viewer says reaches the origin but the manifest's path, which came through the tracker: URLs come
// from fetch_base and from playlists that the seed fetched itself.
//
// Each part has a lock of its own. Where one is taken under another, the order is: viewerLinks, fetches, titles, catalog, store and the
// parts of a link; then title, index and issuer; then takedowns, places, tasks and budgets. No lock is held while a port is called, except to ask a
// link for its path or its room.
package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
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
	AnyLength   bool   // of a range: an answer that does not say how long the object is will do
}

// Fetched is what came.
type Fetched struct {
	Data         []byte
	ObjectLength int64  // bytes of the whole object; 0 unknown, where AnyLength was asked for
	Validator    string // ETag, else Last-Modified, else empty
	Path         string // below fetch_base, after redirects; empty when they led elsewhere
	Sized        bool   // of Flow: the length was said ahead of the bytes
	// Clock, of Flow, is by how much the seed's clock is ahead of the origin's at least, below 0 behind it; 0: it may be right.
	Clock time.Duration
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
	ObjectLength int64         // too-large: bytes of the object, 0 unknown
	Clock        time.Duration // as in Fetched
	Cause        error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("fetch %s from origin: %s: %v", e.Path, e.Outcome, e.Cause)
}

// Unwrap is the cause.
func (e *FetchError) Unwrap() error { return e.Cause }

// Origin fetches from one site's fetch_base. Its own errors are *FetchError.
type Origin interface {
	Get(ctx context.Context, f Fetch) (*Fetched, error)
	// Flow has the bytes of a whole object, which will be passed on, taken as they come: at most MaxBytes, also where the object turns out
	// to be too large. It ends where an origin is silent for long. Fetched is without them. An error of take ends it, and is returned as it is.
	Flow(ctx context.Context, f Fetch, take func([]byte) error) (*Fetched, error)
}

// Fleet is other seeds that have segments too (package fleet). It sees the seed as a Local.
type Fleet interface {
	// Join is called once, by New, before anything else. The store has room for so many bytes.
	Join(l Local, room int64)
	// Says is what the seed's beat says of the fleet.
	Says() *bus.SeedFleet
	// Heard takes in another seed's beat, and says whether it is of a sibling that was unknown.
	Heard(m *bus.SeedBeat) (isNew bool)
	// Segment asks for a segment until ctx ends. Without an answer the origin is to be asked; an answer with a certificate has been kept.
	Segment(ctx context.Context, w Wanted) (*sibling.Answer, error)
	// Asked counts that a viewer asked for a segment.
	Asked(swarm swarm.ID, id segment.ID)
	// Warm says whether viewers may come. WarmUp returns when they may.
	Warm() bool
	WarmUp(ctx context.Context)
	// Drain has the seed own nothing any more. Linger returns when siblings have had time to ask for what it has.
	Drain()
	Linger()
	// Expire forgets seeds that do not beat any more, and counts those that can be asked, this one among them.
	Expire() int
}

// Wanted is a segment that the fleet may give.
type Wanted struct {
	Segment segment.ID
	Swarm   signal.ID
	Seeds   []signal.ID      // that serve the swarm, as its home last said
	Have    *sibling.Content // of what is held, where only a newer certificate is wanted; nil: nothing is held
	// Accept judges a certificate, and how many bytes come with it, before these are taken. Keep takes them in: ErrStale and ErrDiffers
	// are of a certificate that holds.
	Accept func(certificate []byte, length int) error
	Keep   func(data []byte) error
}

// Local is a seed as its fleet sees it.
type Local interface {
	ID() signal.ID
	// Title is a title that the seed serves, as trackers tell of it.
	Title(swarm swarm.ID) (t bus.Title, serves bool)
	// Follow has a title served as if a tracker had named it; nil: its playlists list nothing.
	Follow(ctx context.Context, t *bus.Title) Followed
}

// Followed is a title that a fleet has its seed follow: it says what the seed wants to have of a segment. nil: it has it already
// (held), or may not have it.
type Followed func(ctx context.Context, id segment.ID) (w *Wanted, held bool)

// Site is one site that the seed serves.
type Site struct {
	Site       *site.Site
	Origin     Origin
	Rate       int64 // bytes/s that may be sent, 0 unlimited
	BytesDaily int64 // bytes a day that may be sent, 0 unlimited
}

// Config of a seed. Zero values take those of Defaults.
//
// Large: a key for each thing that a caller may set.
type Config struct {
	// DataDir holds the signing key and the store.
	DataDir     string
	Sites       []Site
	MemoryBytes int64 // pieces held in memory
	DiskBytes   int64 // pieces held on disk
	MaxLinks    int
	MaxTitles   int
	IndexBytes  int64 // what playlists list, in memory
	Rate        int64 // bytes/s that may be sent in all, 0 unlimited
	BytesDaily  int64 // bytes a day that may be sent in all, 0 unlimited
	// SessionFactor bounds what one link gets: factor × the title's highest bitrate × the link's age.
	SessionFactor float64
	// LookAhead is how many segments after one that was asked for are fetched before they are; 0: none.
	LookAhead int
	// Outside is where viewers are told that the seed is, and Bell hears packets that come there; without them trackers are not asked for one.
	Outside []netip.AddrPort
	Bell    Doorbell
	// Fleet joins the seed with others; nil: it is alone.
	Fleet Fleet
	// SocketRead and SocketWrite are the socket's buffer sizes, for the metrics.
	SocketRead, SocketWrite int
	Metrics                 metric.Sink
	Log                     *slog.Logger
	Now                     func() time.Time
}

// Defaults is what zero values of a Config stand for.
func Defaults() Config {
	return Config{
		MemoryBytes: 128 << 20, DiskBytes: 4 << 30, MaxLinks: 500, MaxTitles: 1000, IndexBytes: 64 << 20, SessionFactor: 1.5,
	}
}

func (c *Config) complete() error {
	if c.DataDir == "" {
		return fmt.Errorf("seed: no data directory (seed.data_dir)")
	}
	d := Defaults()
	c.MemoryBytes = cmp.Or(c.MemoryBytes, d.MemoryBytes)
	c.DiskBytes = cmp.Or(c.DiskBytes, d.DiskBytes)
	c.MaxLinks = cmp.Or(c.MaxLinks, d.MaxLinks)
	c.MaxTitles = cmp.Or(c.MaxTitles, d.MaxTitles)
	c.IndexBytes = cmp.Or(c.IndexBytes, d.IndexBytes)
	c.SessionFactor = cmp.Or(c.SessionFactor, d.SessionFactor)
	c.Metrics = cmp.Or(c.Metrics, metric.Discard)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Fleet == nil {
		c.Fleet = alone{}
	}
	for _, s := range c.Sites {
		if s.Site == nil || s.Origin == nil {
			return fmt.Errorf("seed: a site without configuration or origin")
		}
	}
	return nil
}

// hintOf is what to do about a refusal of the origin, for a log.
func hintOf(err error) []any {
	var failed *FetchError
	if !errors.As(err, &failed) || failed.Outcome != OutcomeClient {
		return nil
	}
	return []any{"hint", "let the seed's address or its User-Agent (leeway-seed) in at the origin, or set fetch_auth of the site (docs/operations/signed-urls.md)"}
}
