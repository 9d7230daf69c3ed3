// Package viewer is the headless viewer: what the browser library and a player do together, by the same specifications
// and vectors, without a browser. It plays a film or a live stream of HLS or DASH in real time, fetches segments by the schedule from other
// viewers, seeds and the origin, serves what it holds to others, and measures what a person would see: startup delay,
// stalls, bitrate. Load generators, benches and tests are made of many of them.
//
// Everything of one viewer runs on its Loop, one thing after the other; only the data of links is taken in where it
// arrives. Sockets, links and HTTP are ports, so that a viewer can live in a network namespace of its own, or in a
// simulation.
package viewer

import (
	"cmp"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Seek is a jump of the viewer.
type Seek struct {
	After time.Duration // of the first picture
	To    time.Duration // on the film's timeline
}

// Pause is a stretch in which the viewer does not play.
type Pause struct {
	After time.Duration // of the first picture
	For   time.Duration
}

// Config of a viewer.
//
// Large: a key for each thing that a caller may set.
type Config struct {
	URL     string // of the manifest: a master or media playlist, or an MPD
	Tracker string // ws or wss URL; empty: no peer delivery
	Origin  string // header of the handshake; a program may leave it out and name its site
	Site    string
	// Token gives the join token, if there is one: the first, and each next before the one in hand runs out. It does not wait.
	Token  func() string
	Title  string // explicit; empty: by the title rule
	Client string // name/version told to the tracker

	Rendition  string        // "auto" (default), "lowest", "highest", or a rendition's name, of an MPD the ID of a representation
	Speed      float64       // the film is shown so many times as fast; 0 is 1
	Buffer     time.Duration // what the player keeps ahead; 0 is DefaultBuffer
	Seeks      []Seek
	Pauses     []Pause
	CatchUp    float64       // the most at which a live stream is played while it is further behind than it is to be; 0 is 1, as in hls.js
	LowLatency bool          // parts of a live stream, or chunks of DASH, are played and shared as they come, where it has any
	Leave      time.Duration // after the start; 0: at the film's end
	// ReadyOffers is how many offers go out with the join, to peers that the tracker picks: those links come a round trip
	// sooner. At most signal.MaxOffers.
	ReadyOffers int
	// JoinAfter is how long joining waits for the first picture, at most; 0 is DefaultJoinAfter, negative: not at all.
	JoinAfter time.Duration

	Device     Device
	Policy     schedule.Policy // the zero value is schedule.DefaultPolicy, its waits divided by Speed
	StoreBytes int64           // pieces held; 0: 64 MiB
	Record     io.Writer       // gets the schedule's inputs and actions, one JSON object a line
	OnSegment  func(*Result)   // sees every segment that the player gets; on the loop
	OnNotice   func(code, text string)
	Rand       *rand.Rand // jitter and link IDs; nil: from the system's randomness
}

// Device is what a page learns of the machine that it is shown on.
type Device struct {
	Line       Line
	Battery    bool
	NoPrefetch bool // whatever the site allows
}

// Defaults of Config.
const (
	DefaultBuffer = 30 * time.Second
	// DefaultJoinAfter is less than a page waits, which has a script to load as well (spec/schedule.md, Waiting).
	DefaultJoinAfter = time.Second
)

func (c *Config) complete() error {
	if c.URL == "" {
		return errors.New("viewer: no manifest to play (give its URL)")
	}
	c.Speed = cmp.Or(c.Speed, 1)
	if c.Speed < 0 || c.Speed > 1000 {
		return fmt.Errorf("viewer: a speed of %g (give 0.1 … 1000)", c.Speed)
	}
	c.CatchUp = cmp.Or(c.CatchUp, 1)
	if c.CatchUp < 1 || c.CatchUp > 2 {
		return fmt.Errorf("viewer: to catch up at a speed of %g (give 1 … 2)", c.CatchUp)
	}
	c.Buffer = cmp.Or(c.Buffer, DefaultBuffer)
	c.JoinAfter = cmp.Or(c.JoinAfter, DefaultJoinAfter)
	if c.Policy == (schedule.Policy{}) {
		c.Policy = hurried(schedule.DefaultPolicy, c.Speed)
	}
	c.StoreBytes = cmp.Or(c.StoreBytes, defaultStore)
	if c.Client == "" {
		c.Client = "leeway-viewer"
	}
	if c.OnNotice == nil {
		c.OnNotice = func(string, string) {}
	}
	if c.Rand == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never fails
		c.Rand = rand.New(rand.NewChaCha8(seed))
	}
	return nil
}

// hurried shortens what a policy waits for, as much as a film that is shown faster leaves less time. Links come up no
// faster for that.
func hurried(p schedule.Policy, speed float64) schedule.Policy {
	for _, us := range []*int64{&p.PatienceUs, &p.CertPatienceUs, &p.MaxWaitUs} {
		*us = int64(float64(*us) / max(1, speed))
	}
	return p
}

// fixed is the index of the rendition that is always played, -1 for auto.
func (c *Config) fixed(levels []*rendition) (int, error) {
	switch c.Rendition {
	case "", "auto":
		if len(levels) == 1 {
			return 0, nil
		}
		return -1, nil
	case "lowest":
		return 0, nil
	case "highest":
		return len(levels) - 1, nil
	}
	var names []string
	for i, l := range levels {
		if l.name == c.Rendition {
			return i, nil
		}
		names = append(names, l.name)
	}
	return 0, fmt.Errorf("no rendition is called %q (there are %q, auto, lowest and highest)", c.Rendition, names)
}

// Viewer is one viewer. Its methods may be called from any goroutine.
type Viewer struct {
	loop   Loop
	cfg    Config
	ledger ledger
	title  *title
	player *player
	done   chan struct{}
	how    string
	err    error
	begun  time.Time
	ended  time.Time
	over   bool
}

// Start begins to play.
func Start(cfg Config, ports Ports) (*Viewer, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.Seeks, cfg.Pauses = slices.Clone(cfg.Seeks), slices.Clone(cfg.Pauses)
	v := &Viewer{loop: ports.Loop, cfg: cfg, done: make(chan struct{}), begun: ports.Loop.Now()}
	v.loop.Post(func() {
		v.title = newTitle(&v.cfg, ports, cfg.Rand, titleHost{
			ledger: &v.ledger, notice: v.cfg.OnNotice, observe: func() { v.player.observe() },
			playhead: func() (time.Duration, time.Duration) { return v.player.playhead() },
		})
		v.player = newPlayer(v.loop, &v.cfg, v.title, ports.Origin, &v.ledger, v.end)
		v.player.start()
		if v.cfg.Leave > 0 {
			v.loop.After(v.cfg.Leave, func() { v.player.finish("left", nil) })
		}
	})
	return v, nil
}

// end lets go of everything but the loop. On the loop.
func (v *Viewer) end(how string, err error) {
	if v.over {
		return
	}
	v.over, v.how, v.err, v.ended = true, how, err, v.loop.Now()
	v.title.stop()
	close(v.done)
}

// Moved tells that the machine has lost an address of its own: it is in another network now.
func (v *Viewer) Moved() { v.loop.Post(func() { v.title.moved() }) }

// Leave ends the playback as a page does that is closed.
func (v *Viewer) Leave() { v.loop.Post(func() { v.player.finish("left", nil) }) }

// Done is closed when the film is over, the viewer has left, or playback failed for good.
func (v *Viewer) Done() <-chan struct{} { return v.done }

// Err is why playback failed for good, once Done is closed.
func (v *Viewer) Err() error { return v.err }

// Report calls f with how things stand, on the loop: f must not wait.
func (v *Viewer) Report(f func(Summary)) { v.loop.Post(func() { f(v.summary()) }) }

// Summary is what a viewer saw and did. Times in ms, sizes in bytes; Stats are totals in the terms of
// spec/tracker-protocol.md.
//
// Large: a record of figures, without behavior.
type Summary struct {
	Manifest string `json:"manifest"`
	Title    string `json:"title,omitempty"`
	Session  string `json:"session,omitempty"` // own peer ID, hex
	Ended    string `json:"ended,omitempty"`   // end, left, error; empty while it plays
	Error    string `json:"error,omitempty"`
	Off      string `json:"off,omitempty"` // why peer delivery is off

	PositionMs  int64   `json:"position_ms"` // on the film's timeline
	LengthMs    int64   `json:"length_ms"`
	BufferMs    int64   `json:"buffer_ms"` // ahead of the playhead, in the viewer's time
	WatchedMs   int64   `json:"watched_ms"`
	StallRatio  float64 `json:"stall_ratio"`  // stalled ÷ (played + stalled)
	MeanBitrate int64   `json:"mean_bitrate"` // bits per second of the film, over what was played
	Offload     float64 `json:"offload"`      // direct bytes from viewers ÷ all bytes
	Seeks       int     `json:"seeks"`
	SeekMs      int64   `json:"seek_ms"`    // waited after seeks, in all
	LatencyMs   int64   `json:"latency_ms"` // behind the live stream's wall clock, on average over what was played; 0 unknown
	LagMs       int64   `json:"lag_ms"`     // likewise, of the last picture that was played; 0 unknown
	Leaps       int     `json:"leaps"`      // over what had left a live playlist
	Errors      int     `json:"errors"`     // failed fetches of the player
	LastError   string  `json:"last_error,omitempty"`

	Viewers     int                      `json:"viewers"` // in the swarm, when it joined
	Seeds       int                      `json:"seeds"`
	Links       int                      `json:"links"`
	Linked      map[string]int           `json:"linked,omitempty"` // open links by role and path: "seed/direct"
	LinksOpened int                      `json:"links_opened"`
	LinksClosed map[peer.CloseReason]int `json:"links_closed"`
	Banned      int                      `json:"banned"`
	BannedPeers []string                 `json:"banned_peers,omitempty"` // their sessions
	Reconnects  int                      `json:"reconnects"`
	Capacity    int64                    `json:"capacity"` // estimated downlink, bits per second; 0 unknown
	StoreBytes  int64                    `json:"store_bytes"`
	Lists       ListFigures              `json:"lists"`
	Stats       signal.Stats             `json:"stats"`
}

// summary is on the loop.
func (v *Viewer) summary() Summary {
	t, p := v.title, v.player
	p.look()
	film := func(d time.Duration) int64 { return int64(float64(d) * v.cfg.Speed / float64(time.Millisecond)) }
	s := Summary{
		Manifest: v.cfg.URL, Title: t.naming.name, Ended: v.how, Off: string(t.off),
		PositionMs: film(p.head.position), LengthMs: film(p.length()), Seeks: p.seeks.count, SeekMs: p.seeks.waited.Milliseconds(),
		LatencyMs: p.seen.lag.mean().Milliseconds(), LagMs: p.seen.lag.last.Milliseconds(), Leaps: p.edge.leaps, Errors: p.faults.count, Viewers: t.swarm.Viewers, Seeds: t.swarm.Seeds, Links: t.links.count(true),
		LinksClosed: map[peer.CloseReason]int{}, Capacity: int64(t.line.estimate()), Stats: v.ledger.sum(),
	}
	if len(p.tracks) > 0 {
		s.BufferMs = (p.end() - p.head.position).Milliseconds()
	}
	until := v.ended
	if until.IsZero() {
		until = v.loop.Now()
	}
	s.WatchedMs = until.Sub(v.begun).Milliseconds()
	s.Stats.Swarm, s.Stats.Interval = t.swarm.Swarm, s.WatchedMs
	if v.err != nil {
		s.Error = v.err.Error()
	}
	if p.faults.last != nil {
		s.LastError = p.faults.last.Error()
	}
	if t.welcomed != nil {
		s.Session = t.welcomed.Session.Hex()
	}
	if t.session != nil {
		s.Reconnects = t.session.reconnects
	}
	if e := t.engine; e != nil {
		s.LinksOpened, s.Banned, s.StoreBytes = e.peers.opened, len(e.peers.bans), e.store.bytes
		s.BannedPeers = slices.Sorted(maps.Keys(e.peers.bans))
		maps.Copy(s.LinksClosed, e.peers.closed)
		s.Linked, s.Lists = e.peers.linked(), e.verification.lists.figures
	}
	s.ratios(v.cfg.Speed)
	return s
}

func (s *Summary) ratios(speed float64) {
	st := &s.Stats
	stall := st.StallMs
	if st.PlayedMs+stall > 0 {
		s.StallRatio = float64(stall) / float64(st.PlayedMs+stall)
	}
	if st.PlayedMs > 0 {
		s.MeanBitrate = int64(float64(st.PlayedBits) * 1000 / float64(st.PlayedMs) / speed)
	}
	all := int64(0)
	for _, n := range st.Bytes {
		all += n
	}
	if all > 0 {
		s.Offload = float64(st.Bytes[string(FromPeer)]) / float64(all)
	}
}
