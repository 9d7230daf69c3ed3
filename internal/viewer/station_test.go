package viewer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/viewer"
)

const (
	stationDelay   = 10 * time.Millisecond
	stationSegment = 2 * time.Second
	stationWindow  = 12     // segments in the playlist
	stationBytes   = 30_000 // of a segment
	stationURL     = "https://video.example.com/live/index.m3u8"
)

// station is a live stream with a real tracker, a real seed and real viewers, in the time of a bubble of synctest. What is between them
// is made of nothing: each message arrives after stationDelay. Files are made anew each time, so that what is in memory is theirs.
type station struct {
	t       *testing.T
	began   time.Time
	tracker *tracker.Tracker

	mu     sync.Mutex
	offers map[string]*linkEnd // guarded by mu: by SDP, not answered yet
	made   int                 // guarded by mu
}

// newStation starts tracker and seed, which end with the test.
func newStation(t *testing.T, change func(*seed.Config)) *station {
	t.Helper()
	s := &station{t: t, began: time.Now(), offers: map[string]*linkEnd{}}
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com", Policy: site.Policy{CertifyFrom: 1}})
	if err != nil {
		t.Fatal(err)
	}
	between := &stationBus{}
	cfg := seed.Config{DataDir: t.TempDir(), Sites: []seed.Site{{Site: rules, Origin: seedOrigin{s}}}}
	change(&cfg)
	served, err := seed.New(cfg, between, seedLinks{s})
	if err != nil {
		t.Fatal(err)
	}
	s.tracker, err = tracker.New(tracker.Config{Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{rules}}, between)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- served.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = s.tracker.Close()
		between.close()
	})
	return s
}

// published is how many segments there are, those that have left the playlist among them.
func (s *station) published() int { return stationWindow + int(time.Since(s.began)/stationSegment) }

// file is what the origin has under a path.
func (s *station) file(path string) []byte {
	edge := s.published()
	if path == "/live/index.m3u8" {
		first := edge - stationWindow
		list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXT-X-PROGRAM-DATE-TIME:%s\n", first,
			s.began.Add(time.Duration(first-stationWindow)*stationSegment).UTC().Format("2006-01-02T15:04:05.000Z"))
		for n := first; n < edge; n++ {
			list += fmt.Sprintf("#EXTINF:2.000,\n%d.ts\n", n)
		}
		return []byte(list)
	}
	n := -1
	if _, err := fmt.Sscanf(path, "/live/%d.ts", &n); err != nil || n < edge-2*stationWindow || n >= edge {
		return nil
	}
	return segmentBytes(path)
}

// segmentBytes are those of the segment at a path.
func segmentBytes(path string) []byte {
	var key [32]byte
	copy(key[:], path)
	b := make([]byte, stationBytes)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

var errNoFile = errors.New("no such file")

// seedOrigin is the origin as the seed asks it.
type seedOrigin struct{ *station }

// Get implements seed.Origin.
func (o seedOrigin) Get(_ context.Context, f seed.Fetch) (*seed.Fetched, error) {
	data := o.file(f.Path)
	if data == nil {
		return nil, &seed.FetchError{Outcome: seed.OutcomeNotFound, Path: f.Path, Cause: errNoFile}
	}
	return &seed.Fetched{Data: data, ObjectLength: int64(len(data)), Path: f.Path}, nil
}

// Flow implements seed.Origin.
func (seedOrigin) Flow(context.Context, seed.Fetch, func([]byte) error) (*seed.Fetched, error) {
	panic("nothing flows")
}

// viewerOrigin is the origin as viewers ask it.
type viewerOrigin struct{ *station }

// Get implements viewer.Origin.
func (o viewerOrigin) Get(f viewer.Fetch, progress func(int64), done func(viewer.Fetched, error)) (cancel func()) {
	answer := time.AfterFunc(2*stationDelay, func() {
		data := o.file(strings.TrimPrefix(f.URL, "https://video.example.com"))
		if data == nil {
			done(viewer.Fetched{}, errNoFile)
			return
		}
		if f.Ranged {
			data = data[f.First : f.Last+1]
		}
		progress(int64(len(data)))
		done(viewer.Fetched{Data: data, URL: f.URL, Transfer: stationDelay}, nil)
	})
	return func() {
		if answer.Stop() {
			go done(viewer.Fetched{}, context.Canceled)
		}
	}
}

// watch starts a viewer at an address of its own. It leaves with the test.
func (s *station) watch(change func(*viewer.Config)) *viewer.Viewer {
	s.t.Helper()
	loop, stop := viewer.NewLoop()
	s.mu.Lock()
	s.made++
	address := netip.AddrFrom4([4]byte{198, 18, 0, byte(s.made)})
	s.mu.Unlock()
	cfg := viewer.Config{URL: stationURL, Tracker: "wss://tracker.example.com", Origin: "https://video.example.com", Rand: rand.New(rand.NewPCG(1, uint64(s.made)))}
	change(&cfg)
	v, err := viewer.Start(cfg, viewer.Ports{Loop: loop, Dialer: stationDialer{s, address}, Links: viewerLinks{s}, Origin: viewerOrigin{s}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		v.Leave()
		<-v.Done()
		stop()
	})
	return v
}

// stationDialer is how a viewer at an address reaches the tracker.
type stationDialer struct {
	*station
	address netip.Addr
}

// stationSocket is both ends of a socket.
type stationSocket struct{ up, down *pipe }

// Dial implements viewer.Dialer.
func (d stationDialer) Dial(_, origin string, events viewer.SocketEvents) viewer.Socket {
	w := &stationSocket{}
	w.down = newPipe(events.Message, events.Lost)
	heard := make(chan tracker.Receiver, 1)
	var to tracker.Receiver
	w.up = newPipe(func(m []byte) {
		if to == nil {
			to = <-heard
		}
		if !to.Receive(m) {
			w.Close()
		}
	}, func() {
		if to == nil {
			to = <-heard
		}
		to.End(nil)
	})
	heard <- d.tracker.Accept(stationConn{w}, tracker.Visitor{Origin: origin, Address: d.address})
	time.AfterFunc(stationDelay, events.Opened)
	return w
}

// Send implements viewer.Socket.
func (w *stationSocket) Send(text []byte) { w.up.send(text) }

// Close implements viewer.Socket.
func (w *stationSocket) Close() {
	w.up.end()
	w.down.end()
}

// stationConn is the tracker's end of a socket.
type stationConn struct{ *stationSocket }

// Write implements tracker.Conn.
func (c stationConn) Write(message []byte) error {
	c.down.send(message)
	return nil
}

// Close implements tracker.Conn.
func (c stationConn) Close(int, string) { c.stationSocket.Close() }
