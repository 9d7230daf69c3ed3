package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/viewer"
)

// progressEvery is how often a line says how far viewers are.
const progressEvery = 2 * time.Second

// viewerCmd is `leeway viewer`.
//
// Large: a field for each flag.
type viewerCmd struct {
	URL         string        `arg:"" help:"Manifest of a film or live stream of HLS or DASH."`
	Tracker     string        `help:"Tracker; by default the manifest's host." placeholder:"URL"`
	NoPeers     bool          `help:"Play from the origin alone, for comparison." name:"no-peers"`
	Count       int           `help:"Viewers that start together." default:"1"`
	Stagger     time.Duration `help:"Time between the starts of two viewers." default:"0s"`
	Rendition   string        `help:"auto, lowest, highest or a rendition's name; of DASH the ID of a representation." default:"auto"`
	Speed       float64       `help:"Playback speed as a multiple of real time." default:"1"`
	Buffer      time.Duration `help:"Length of the player's buffer." default:"30s"`
	Seek        []string      `help:"Seek: AFTER=TO, both as durations, AFTER counted from the first picture; may be repeated." placeholder:"AFTER=TO"`
	Pause       []string      `help:"Pause: AFTER=FOR, both as durations, AFTER counted from the first picture; may be repeated." placeholder:"AFTER=FOR"`
	CatchUp     float64       `help:"Most at which a live stream is played while it is further behind than it is to be, 1 to 2." default:"1" placeholder:"N"`
	LowLatency  bool          `help:"Play the parts of a low-latency live stream of HLS, or the chunks of one of DASH, as they come, and share them with peers that do." name:"low-latency"`
	Leave       time.Duration `help:"Leave after this time instead of at the film's end." placeholder:"DURATION"`
	Site        string        `help:"Name of the site, if the manifest's host does not determine it." placeholder:"NAME"`
	Token       string        `help:"Join token." env:"LEEWAY_VIEWER_TOKEN" placeholder:"TOKEN" xor:"token"`
	TokenFile   string        `help:"File with the join token. It is read again, so a new token must be written before the old one ends." placeholder:"FILE" xor:"token"`
	Title       string        `help:"Explicit title." placeholder:"TITLE"`
	Listen      string        `help:"UDP address of links; by default every address of the machine." placeholder:"HOST:PORT"`
	Device      []string      `help:"What a page would find of its device: ${enum}. May be repeated. A viewer on a metered or an unknown line, or with a coarse clock, sends nothing." placeholder:"WHAT" enum:"metered,unknown,coarse,battery,no-prefetch"`
	PionRecords bool          `help:"Use pion's DTLS records for links instead of Leeway's own; needs more processor time."`
	FailOn      []string      `help:"Exit with 1 if a viewer had this: ${enum}. May be repeated." placeholder:"WHAT" enum:"no-tracker,no-link,no-peers,stall,errors"`
	Record      string        `help:"Record what the schedule of the first viewer saw and decided, for leeway-lab schedule replay." placeholder:"FILE"`
}

// Help is shown below the usage.
func (viewerCmd) Help() string {
	return `Plays a film or a live stream as a browser with the library does, without a picture: in real time, with real links and stalls. Prints a line
every two seconds on standard error and a JSON summary on standard output, one object for each viewer. What keeps a viewer from the tracker is
said on standard error; it plays from the origin meanwhile. Exits with 1 when playback failed, when a viewer had no byte at all, or for
what --fail-on names: no-tracker (no session), no-link (no link opened), no-peers (no verified byte of a viewer or a seed), stall, errors
(a fetch failed).

A live MPD is played by this machine's clock: without --low-latency by whole segments, at least two of them behind it.

Examples:
  leeway viewer http://127.0.0.1:8080/media/bbb/master.m3u8
  leeway viewer --count 4 --leave 1m http://127.0.0.1:8080/media/bbb/master.m3u8
  leeway viewer --leave 20s --fail-on no-peers https://video.example.com/film/master.m3u8 || echo "nothing is shared"
  leeway viewer --token-file token.txt https://video.example.com/film/master.m3u8
  leeway viewer --count 2 --fail-on no-peers https://video.example.com/film/manifest.mpd
  leeway viewer --no-peers --rendition highest https://video.example.com/film/master.m3u8
  leeway viewer --pause 20s=10s --catch-up 1.2 http://127.0.0.1:8080/media/live/master.m3u8
  leeway viewer --device metered --device battery https://video.example.com/film/master.m3u8
  leeway viewer --low-latency --leave 1m http://127.0.0.1:8080/media/live/master.m3u8
  leeway viewer --seek 20s=5m --seek 40s=1m --record run.jsonl https://video.example.com/film/master.m3u8`
}

// Run plays until the viewers are done or ctx ends.
func (c *viewerCmd) Run(ctx context.Context, r *run) error {
	config, network, err := c.config(r)
	if err != nil {
		return err
	}
	if c.Record != "" {
		f, err := os.Create(c.Record)
		if err != nil {
			return cmdline.Usage(fmt.Errorf("viewer: record: %w", err))
		}
		defer f.Close()
		config.Record = f
	}
	var list []*headless.Viewer
	defer func() {
		var wg sync.WaitGroup
		for _, v := range list {
			wg.Go(v.Close)
		}
		wg.Wait()
	}()
	for i := range c.Count {
		if i > 0 && !sleep.For(ctx, c.Stagger) {
			break
		}
		v, err := headless.Start(config, network)
		if err != nil {
			return cmdline.Usage(err)
		}
		list = append(list, v)
		config.Record = nil
	}
	watch(ctx, r.env.Stderr, list)
	return c.summarize(r.env.Stdout, list)
}

func (c *viewerCmd) config(r *run) (viewer.Config, headless.Network, error) {
	fail := func(err error) (viewer.Config, headless.Network, error) {
		return viewer.Config{}, headless.Network{}, cmdline.Usage(fmt.Errorf("viewer: %w", err))
	}
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return fail(fmt.Errorf("%q is no http or https URL of a manifest", c.URL))
	}
	if c.Count < 1 || c.Count > 1000 {
		return fail(fmt.Errorf("--count %d (give 1 … 1000)", c.Count))
	}
	if _, port, err := net.SplitHostPort(c.Listen); c.Listen != "" && (err != nil || port != "0" && c.Count > 1) {
		return fail(fmt.Errorf("--listen %q (give HOST:PORT; port 0 for several viewers, each of which has one of its own)", c.Listen))
	}
	if c.TokenFile != "" {
		if _, err := os.ReadFile(c.TokenFile); err != nil {
			return fail(fmt.Errorf("--token-file: %w", err))
		}
	}
	_, log, err := r.load(c)
	if err != nil {
		return viewer.Config{}, headless.Network{}, err
	}
	cfg := viewer.Config{
		URL: c.URL, Site: c.Site, Token: c.tokens(log), Title: c.Title, Client: "leeway-viewer/" + Version,
		Rendition: c.Rendition, Speed: c.Speed, Buffer: c.Buffer, Leave: c.Leave, CatchUp: c.CatchUp, LowLatency: c.LowLatency, Device: c.device(),
		OnNotice: func(code, text string) { log.Warn("viewer: "+text, "code", code) },
	}
	if c.Site == "" {
		cfg.Origin = at.Scheme + "://" + at.Host // a page beside the film
	}
	if !c.NoPeers {
		if cfg.Tracker, err = trackerURL(c.Tracker, at); err != nil {
			return fail(err)
		}
	}
	for _, text := range c.Seek {
		after, to, err := twoDurations(text)
		if err != nil {
			return fail(fmt.Errorf("--seek %q (give two durations, such as 20s=5m)", text))
		}
		cfg.Seeks = append(cfg.Seeks, viewer.Seek{After: after, To: to})
	}
	for _, text := range c.Pause {
		after, length, err := twoDurations(text)
		if err != nil {
			return fail(fmt.Errorf("--pause %q (give two durations, such as 20s=10s)", text))
		}
		cfg.Pauses = append(cfg.Pauses, viewer.Pause{After: after, For: length})
	}
	network := headless.Network{Listen: c.Listen, Log: log, Unreached: unreached(log), Loopback: loopback(at.Host) || loopback(at.Hostname()+":0"), PionRecords: c.PionRecords}
	return cfg, network, nil
}

// device is what the viewer takes for its device.
func (c *viewerCmd) device() viewer.Device {
	is := func(what string) bool { return slices.Contains(c.Device, what) }
	line := viewer.Line{Metered: is("metered"), Unknown: is("unknown"), Coarse: is("coarse")}
	return viewer.Device{Line: line, Battery: is("battery"), NoPrefetch: is("no-prefetch")}
}

// twoDurations reads A=B.
func twoDurations(text string) (a, b time.Duration, err error) {
	first, second, ok := strings.Cut(text, "=")
	a, err1 := time.ParseDuration(first)
	b, err2 := time.ParseDuration(second)
	if !ok || err1 != nil || err2 != nil || a < 0 || b < 0 {
		return 0, 0, errors.New("not two durations")
	}
	return a, b, nil
}

// tokens gives what the viewer shows; nil: nothing.
func (c *viewerCmd) tokens(log *slog.Logger) func() string {
	switch {
	case c.TokenFile != "":
		return func() string {
			text, err := os.ReadFile(c.TokenFile)
			if err != nil {
				log.Warn("viewer: the join token cannot be read", "error", err)
			}
			return strings.TrimSpace(string(text))
		}
	case c.Token != "":
		return func() string { return c.Token }
	}
	return nil
}

// trackerURL is where the tracker is: what was given, or / on the manifest's host, as `leeway up` has it.
func trackerURL(given string, manifest *url.URL) (string, error) {
	u := &url.URL{Scheme: manifest.Scheme, Host: manifest.Host, Path: "/"}
	if given != "" {
		var err error
		if u, err = url.Parse(given); err != nil || u.Host == "" {
			return "", fmt.Errorf("--tracker %q is no URL (give wss://HOST/)", given)
		}
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("--tracker %q is no WebSocket URL (give wss://HOST/)", given)
	}
	return u.String(), nil
}

// watch prints how things stand until all are done.
func watch(ctx context.Context, w io.Writer, list []*headless.Viewer) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for _, v := range list {
		for done := false; !done; {
			select {
			case <-v.Done():
				done = true
			case <-ctx.Done():
				return
			case <-tick.C:
				progress(w, list)
			}
		}
	}
}

func progress(w io.Writer, list []*headless.Viewer) {
	for i, v := range list {
		s := v.Summary()
		b := s.Stats.Bytes
		fmt.Fprintf(w, "viewer %d  %s  buffer %.0f s  %d kbit/s  stalls %d  links %d  origin %d kB  seed %d kB  peers %d kB  sent %d kB\n",
			i+1, whereabouts(s), float64(s.BufferMs)/1000, s.MeanBitrate/1000, s.Stats.Stalls, s.Links,
			b["origin"]/1000, (b["seed"]+b["seed_relay"])/1000, (b["peer"]+b["peer_relay"])/1000, (s.Stats.Uploaded["direct"]+s.Stats.Uploaded["relay"])/1000)
		if s.Errors > 0 {
			fmt.Fprintf(w, "viewer %d  %d fetches failed, the last: %s\n", i+1, s.Errors, s.LastError)
		}
	}
}

// whereabouts says where a viewer is: of a film that has an end, or behind the clock of a live stream.
func whereabouts(s viewer.Summary) string {
	switch {
	case s.LengthMs > 0:
		return clock(s.PositionMs) + " of " + clock(s.LengthMs)
	case s.LagMs > 0:
		return fmt.Sprintf("%s  %.1f s behind live", clock(s.PositionMs), float64(s.LagMs)/1000)
	}
	return clock(s.PositionMs)
}

// clock writes a moment of the film.
func clock(ms int64) string { return fmt.Sprintf("%d:%02d", ms/60_000, ms/1000%60) }

// unreached says why a tracker cannot be reached, once for each reason.
func unreached(log *slog.Logger) func(error) {
	var told sync.Map
	return func(err error) {
		if _, before := told.LoadOrStore(err.Error(), true); !before {
			log.Warn("viewer: no connection to the tracker; the origin serves meanwhile", "error", err, "hint", "leeway doctor says what is wrong, and how to mend it")
		}
	}
}

// summarize prints one JSON object a viewer. The error says whose playback failed, and what else is a failure.
func (c *viewerCmd) summarize(w io.Writer, list []*headless.Viewer) error {
	out := json.NewEncoder(w)
	var failed error
	for i, v := range list {
		v.Leave()
		<-v.Done()
		s := v.Summary()
		if err := out.Encode(s); err != nil {
			return fmt.Errorf("viewer: print the summary: %w", err)
		}
		err := v.Err()
		if err == nil {
			err = c.verdict(s)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("viewer %d: %w", i+1, err))
		}
	}
	return failed
}

// verdict is why a viewer that ended well failed nevertheless; nil: it did not.
func (c *viewerCmd) verdict(s viewer.Summary) error {
	b, all := s.Stats.Bytes, int64(0)
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return errors.New("not a byte of the film was played" + lastError(s))
	}
	on := map[string]bool{}
	for _, what := range c.FailOn {
		on[what] = true
	}
	switch {
	case on["no-tracker"] && s.Session == "":
		return errors.New("no-tracker: it had no session at the tracker")
	case on["no-link"] && s.LinksOpened == 0:
		return fmt.Errorf("no-link: no link opened (%d viewers and %d seeds in the swarm)", s.Viewers, s.Seeds)
	case on["no-peers"] && all == b[string(viewer.FromOrigin)]:
		return fmt.Errorf("no-peers: all bytes came from the origin (%d links opened; reasons %v)", s.LinksOpened, s.Stats.Reasons)
	case on["stall"] && s.Stats.Stalls > 0:
		return fmt.Errorf("stall: it stalled %d times, for %d ms", s.Stats.Stalls, s.Stats.StallMs)
	case on["errors"] && s.Errors > 0:
		return fmt.Errorf("errors: %d fetches failed%s", s.Errors, lastError(s))
	}
	return nil
}

func lastError(s viewer.Summary) string {
	if s.LastError == "" {
		return ""
	}
	return "; the last error: " + s.LastError
}
