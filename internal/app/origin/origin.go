// Package origin is the web server of `leeway origin` and `leeway up`, which stands in for a site's own where there is none: it serves a
// film or a live stream, has players wait for what a low-latency playlist lists next, sends a segment while it grows, misbehaves where it
// is told to, and keeps a ledger of the requests.
package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/metric"
)

// The clients of the origin and what they asked for: closed sets, labels of its metrics.
const (
	Viewer = "viewer"
	Seed   = "seed"

	classPlaylist = "playlist"
	classSegment  = "segment"
	classOther    = "other"
)

var (
	requests = &metric.Def{
		Name: "leeway_origin_requests_total", Help: "Requests to the origin of `leeway up`", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "client", Values: []string{Viewer, Seed}}, {Name: "class", Values: []string{classPlaylist, classSegment, classOther}}},
	}
	sent = &metric.Def{
		Name: "leeway_origin_sent_bytes_total", Help: "Body bytes sent by the origin of `leeway up`", Kind: metric.Counter,
		Labels: requests.Labels,
	}
)

// Metrics returns what the origin counts.
func Metrics() []*metric.Def { return []*metric.Def{requests, sent} }

// Faults that the origin plays for media segments, and late, which a stream is published by; experiments.
const (
	FaultNone = "none"
	fault404  = "404"
	fault500  = "500"
	faultSlow = "slow"
	faultLate = "late"

	slowRate = 16 << 10 // bytes per second of fault "slow"
	lateBy   = 5 * time.Second
)

// Faults lists the closed set.
var Faults = []string{FaultNone, fault404, fault500, faultSlow, faultLate}

var contentTypes = map[string]string{
	".m3u8": "application/vnd.apple.mpegurl",
	".mpd":  "application/dash+xml",
	".ts":   "video/mp2t",
	".m4s":  "video/iso.segment",
	".mp4":  "video/mp4",
	".aac":  "audio/aac",
	".vtt":  "text/vtt; charset=utf-8",
}

// ClockName is where the time of day is, below the prefix: xs:dateTime, for UTCTiming of an MPD.
const ClockName = "time"

// TSBelow is where a film that was made here is as HLS of MPEG-TS, below the film.
const TSBelow = "ts/"

// Server serves a directory of HLS, and DASH, below a path, as a plain web server would, and keeps a ledger of the requests:
// viewers and the seed use different listeners, so the client of a request is known.
type Server struct {
	Root      *os.Root // what is served
	TS        *os.Root // the film as MPEG-TS, served below it, too; nil: there is none
	Prefix    string   // of the paths, such as "/media/bbb/"
	Temporary string   // folder that goes with the server; empty: the folder stays
	Replays   bool     // what is served is a film as a live stream
	// Lists are what a packager signed of the film, by their paths below Prefix; nil: what the folders have.
	Lists map[string][]byte

	sink    metric.Sink
	fault   atomic.Value // string
	reloads reloads

	mu      sync.Mutex
	ledger  Ledger  // guarded by mu
	digests digests // guarded by mu
}

// Open serves dir below prefix, which begins and ends with a slash.
func Open(dir, prefix string, sink metric.Sink) (*Server, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("origin: open the film: %w", err)
	}
	o := &Server{Root: root, Prefix: prefix, sink: sink}
	o.fault.Store(FaultNone)
	o.ledger, o.digests.of = newLedger(), map[string]string{}
	return o, nil
}

// Close releases the directory, and removes it if it was made for the server.
func (o *Server) Close() error {
	err := o.Root.Close()
	if o.TS != nil {
		err = errors.Join(err, o.TS.Close())
	}
	if o.Temporary != "" {
		err = errors.Join(err, os.RemoveAll(o.Temporary))
	}
	return err
}

// SetFault makes the origin misbehave for media segments from now on, or behave again (FaultNone).
func (o *Server) SetFault(kind string) error {
	switch kind {
	case faultLate:
		if !o.Replays {
			return errors.New("origin: only a replay can be late (--replay)")
		}
		fallthrough
	case FaultNone, fault404, fault500, faultSlow:
		o.fault.Store(kind)
		return nil
	}
	return fmt.Errorf("origin: no fault %q (one of %s)", kind, strings.Join(Faults, ", "))
}

// Late is by how much what a stream publishes is to be late.
func (o *Server) Late() time.Duration {
	if o.fault.Load() == faultLate {
		return lateBy
	}
	return 0
}

// Handler answers one client's requests.
func (o *Server) Handler(client string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "ETag, Content-Length, Content-Range, Accept-Ranges")
		h.Set("Timing-Allow-Origin", "*")
		switch r.Method {
		case http.MethodOptions:
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "Range, If-None-Match")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		case http.MethodGet, http.MethodHead:
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "The origin answers GET and HEAD.", http.StatusMethodNotAllowed)
			return
		}
		o.serve(w, r, client)
	})
}

func (o *Server) serve(w http.ResponseWriter, r *http.Request, client string) {
	name, below := strings.CutPrefix(r.URL.Path, o.Prefix)
	class := classOf(name)
	out := &countedWriter{ResponseWriter: w, ctx: r.Context()}
	if client == Viewer {
		out.limit = limiterOf(r.Context())
	}
	known := false
	defer func() { o.book(r.URL.Path, client, class, known, out.sent) }()
	fault := o.fault.Load().(string)
	if class == classSegment {
		switch fault {
		case fault404:
			http.Error(out, "Not found, as asked for by --origin-fault.", http.StatusNotFound)
			return
		case fault500:
			http.Error(out, "Failing, as asked for by --origin-fault.", http.StatusInternalServerError)
			return
		case faultSlow:
			out.limit = newLimiter(slowRate)
		}
	}
	if !below || name == "" || path.Clean(name) != name {
		http.NotFound(out, r)
		return
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // those of no address share
	if status := o.reloads.hold(r.Context(), from.Addr(), name, r.URL.Query()); status != http.StatusOK {
		http.Error(out, "The playlist or part is not there: see _HLS_msn, _HLS_part and EXT-X-PRELOAD-HINT in RFC 8216bis.", status)
		return
	}
	if list, is := o.Lists[name]; is {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "public, no-cache")
		http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(list))
		return
	}
	if name == ClockName {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		_, _ = io.WriteString(out, time.Now().UTC().Format("2006-01-02T15:04:05.000Z")) // the client may be gone
		return
	}
	if known = o.grow(out, r, from.Addr(), name); known {
		return
	}
	root, file := o.Root, name
	if rest, is := strings.CutPrefix(name, TSBelow); is && o.TS != nil {
		root, file = o.TS, rest
	}
	f, err := root.Open(file)
	if err != nil {
		http.NotFound(out, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(out, r)
		return
	}
	known = true
	describe(w.Header(), name)
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano()))
	http.ServeContent(out, r, "", info.ModTime(), f)
}

// describe sets what answers say of a file.
func describe(h http.Header, name string) {
	if kind, ok := contentTypes[path.Ext(name)]; ok {
		h.Set("Content-Type", kind)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	// Revalidated each time: a browser's own cache, shared by the windows of a demo, would hide what viewers ask for.
	h.Set("Cache-Control", "public, no-cache")
}

func (o *Server) book(urlPath, client, class string, known bool, bytes int64) {
	o.sink.Add(requests, 1, client, class)
	o.sink.Add(sent, float64(bytes), client, class)
	segment := ""
	if class == classSegment && known {
		segment = urlPath
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.book(client, segment, bytes)
}

// ServeFault answers POST /origin/fault?kind=404 on the admin port: an experiment while viewers watch.
func (o *Server) ServeFault(w http.ResponseWriter, r *http.Request) {
	if err := o.SetFault(r.URL.Query().Get("kind")); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Published takes down that a file of the stream was published: what waits for it is answered then.
func (o *Server) Published(file string) error {
	var err error
	switch {
	case path.Ext(file) == ".m3u8":
		err = o.listed(file)
	case classOf(file) == classSegment:
		o.reloads.came(file)
		err = o.note(file)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has gone again
	}
	return err
}

func classOf(name string) string {
	switch path.Ext(name) {
	case ".m3u8", ".mpd":
		return classPlaylist
	case ".ts", ".m4s", ".mp4", ".aac":
		return classSegment
	}
	return classOther
}

// countedWriter counts body bytes and paces them.
type countedWriter struct {
	http.ResponseWriter
	ctx   context.Context // the request's; pacing ends with it
	limit *rate.Limiter   // nil is unshaped
	sent  int64
}

// Write implements io.Writer. It hides the inner ReaderFrom on purpose: a body copied past it would be neither counted
// nor paced.
func (w *countedWriter) Write(b []byte) (int, error) {
	total := 0
	for len(b) > 0 {
		part := b
		if w.limit != nil {
			part = b[:min(len(b), w.limit.Burst())]
			if err := w.limit.WaitN(w.ctx, len(part)); err != nil {
				return total, err
			}
		}
		n, err := w.ResponseWriter.Write(part)
		total, w.sent = total+n, w.sent+int64(n)
		if err != nil {
			return total, err
		}
		if w.limit != nil {
			if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
				return total, err
			}
		}
		b = b[n:]
	}
	return total, nil
}

// newLimiter paces at bytesPerSecond in steps of about 20 ms.
func newLimiter(bytesPerSecond int) *rate.Limiter {
	burst := max(bytesPerSecond/50, 256)
	l := rate.NewLimiter(rate.Limit(bytesPerSecond), burst)
	l.AllowN(time.Now(), burst) // begins empty: a full bucket would let the first bytes through in one go
	return l
}

type limiterKey struct{}

// ShapeConnections gives each connection a limiter of its own: what a viewer's line to the origin can carry.
func ShapeConnections(bytesPerSecond int) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, limiterKey{}, newLimiter(bytesPerSecond))
	}
}

func limiterOf(ctx context.Context) *rate.Limiter {
	l, _ := ctx.Value(limiterKey{}).(*rate.Limiter)
	return l
}
