package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// stranger is a program that joins a title of its own and links to the title's seed, so that the seed follows the title.
type stranger struct {
	conn           *wsconn.Conn
	link           *rtclink.Link
	self, swarm    signal.ID
	opened, closed chan struct{}
	answers        chan peer.Message // to its requests for certificates
}

func (s *stranger) Candidate(transfer.Candidate) {} // the seed hears from this side first
func (s *stranger) Data([]byte)                  {}
func (s *stranger) Drain()                       {}
func (s *stranger) Open()                        { close(s.opened) }
func (s *stranger) Closed(peer.CloseReason)      { close(s.closed) }

// Control takes the answers that it waits for, and nothing else.
func (s *stranger) Control(b []byte) {
	m, err := peer.Decode(peer.Control, b)
	if err != nil {
		return
	}
	switch m.(type) {
	case peer.Certificate, peer.CertificateNone:
		select {
		case s.answers <- m:
		default:
		}
	}
}

// ask has the seed certify the first segments of its title, and returns how many it did.
func (s *stranger) ask(ctx context.Context, title string, segments int) (certified int, err error) {
	var ids []segment.ID
	for i := range segments {
		ids = append(ids, segment.NewID("demo", segment.WholeName(fmt.Sprintf("%s/segment-of-the-film-%06d.m4s", title, i))))
	}
	b, err := peer.Append(nil, peer.CertificateRequest{Segments: ids})
	if err != nil {
		return 0, err
	}
	s.link.SendControl(b)
	for range ids {
		select {
		case m := <-s.answers:
			if _, is := m.(peer.Certificate); is {
				certified++
			}
		case <-s.closed:
			return certified, errors.New("the link ended")
		case <-ctx.Done():
			return certified, ctx.Err()
		}
	}
	return certified, nil
}

func (s *stranger) say(m signal.Message) error {
	b, err := signal.Encode(m)
	if err != nil {
		return err
	}
	return s.conn.Write(b)
}

// join says hello, joins a title, and answers until a link to the seed is open.
func (s *stranger) join(host *rtclink.Host, title string) error {
	if err := s.say(&signal.Hello{Version: signal.Version, Client: "stranger"}); err != nil {
		return err
	}
	for {
		b, err := s.conn.Read()
		if err != nil {
			return err
		}
		m, err := signal.Decode(b)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *signal.Welcome:
			s.self = m.Session
			err = s.say(&signal.Join{Request: 1, Title: title, Manifest: title + "/index.m3u8", Role: "full", Want: 4, Range: &signal.Range{To: 30_000}})
		case *signal.Introduce:
			err = s.offer(host, m)
		case *signal.Signal:
			if err = s.hear(m); err == nil && m.Kind == "end" {
				return s.open()
			}
		case *signal.Error:
			err = fmt.Errorf("the tracker answered %s: %s", m.Code, m.Message)
		}
		if err != nil {
			return err
		}
	}
}

// offer offers a link to the seed that is introduced.
func (s *stranger) offer(host *rtclink.Host, m *signal.Introduce) error {
	s.swarm = m.Swarm
	for _, p := range m.Peers {
		if p.Role != "seed" || s.link != nil {
			continue
		}
		link, offer, err := host.Offer(s)
		if err != nil {
			return err
		}
		s.link = link
		return s.say(&signal.Signal{
			Swarm: m.Swarm, To: p.Peer, Link: signal.ID(s.self), Kind: "offer", SDP: offer.SDP,
			Plan: &signal.Plan{V: offer.Plan.V, Data: offer.Plan.Data, Message: offer.Plan.Message},
		})
	}
	return nil
}

// hear takes a signal of the seed.
func (s *stranger) hear(m *signal.Signal) error {
	switch m.Kind {
	case "answer":
		return s.link.Accept(transfer.Description{SDP: m.SDP, Plan: peer.Plan{V: m.Plan.V, Data: m.Plan.Data, Message: m.Plan.Message}})
	case "candidate":
		return s.link.AddCandidate(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine)})
	case "fail":
		return errors.New("the seed refuses: " + m.Reason)
	}
	return nil
}

// open waits for the link to open, and greets the seed.
func (s *stranger) open() error {
	select {
	case <-s.opened:
	case <-s.closed:
		return errors.New("the link ended before it opened")
	}
	b, err := peer.Append(nil, peer.Hello{MinVersion: peer.Version, MaxVersion: peer.Version, MaxRequests: 64, Peer: s.self, Swarm: s.swarm})
	if err == nil {
		s.link.SendControl(b)
	}
	return err
}

// crowd is strangers, each of a network of its own, and the seed that they have follow their titles.
type crowd struct {
	seaTrial
	seed *exec.Cmd
	host *rtclink.Host
	held int // strangers that keep their links
	want int // segments that each has the seed certify

	certified atomic.Int64

	mu  sync.Mutex
	all []*stranger // guarded by mu
}

// come has stranger n join from a network of its own.
func (c *crowd) come(ctx context.Context, n int) error {
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+n>>8), byte(n), 1)}}
	conn, err := wsconn.Dial(ctx, "ws://"+c.tracker+"/", wsconn.Config{Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: 64},
		wsconn.DialConfig{NetDial: dial.DialContext, Header: http.Header{"Origin": {c.server.URL}}})
	if err != nil {
		return err
	}
	s := &stranger{conn: conn, opened: make(chan struct{}), closed: make(chan struct{}), answers: make(chan peer.Message, c.want)}
	c.mu.Lock()
	c.all = append(c.all, s)
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { conn.Close(wsconn.CloseDone, "") })
	defer stop()
	title := fmt.Sprintf("/films/%d", n)
	err = s.join(c.host, title)
	if err == nil && n <= c.held {
		n, asked := s.ask(ctx, title, c.want)
		c.certified.Add(int64(n))
		err = asked
	}
	if err == nil && n > c.held {
		s.link.Close(peer.CloseShutdown, nil) // another one needs the place; the title stays named
	}
	return err
}

func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.host.Close()
	for _, s := range c.all {
		s.conn.Close(wsconn.CloseDone, "")
		s.conn.Wait()
	}
}

// longFilm is a playlist of so many segments.
func longFilm(segments int) []byte {
	var b strings.Builder
	b.WriteString("#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n")
	for i := range segments {
		fmt.Fprintf(&b, "#EXTINF:4,\nsegment-of-the-film-%06d.m4s\n", i)
	}
	return []byte(b.String() + "#EXT-X-ENDLIST\n")
}

// startSeed builds the program, since this one may be instrumented for the race detector, and starts a seed of it.
func (c *crowd) startSeed(config string) {
	c.t.Helper()
	program := filepath.Join(c.t.TempDir(), "leeway")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/leeway").CombinedOutput(); err != nil {
		c.t.Fatalf("build cmd/leeway: %v\n%s", err, out)
	}
	said := newLockedBuffer()
	c.seed = exec.Command(program, "seed", "--config", config)
	c.seed.Stdout, c.seed.Stderr = said, said
	if err := c.seed.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = c.seed.Process.Signal(syscall.SIGKILL)
		_ = c.seed.Wait() // says that it was killed
		if c.t.Failed() {
			c.t.Logf("the seed said:\n%s", said)
		}
	})
	c.until("the seed is ready", func() bool { return c.get(0, "/readyz") != "" })
}

// peak is the most memory that was resident at a time of the seed's life, bytes.
func (c *crowd) peak() int64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.seed.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		c.t.Fatalf("no VmHWM in %s", text)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return kb << 10
}

func newCrowd(t *testing.T, film []byte) *crowd {
	t.Helper()
	c := &crowd{seaTrial: seaTrial{t: t, tracker: freeAddress(t), admins: [2]string{freeAddress(t)}}}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(film)))
		_, _ = w.Write(film)
	}))
	t.Cleanup(c.server.Close)
	dir, bus, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	stop := startService(t, admin, "tracker", "--config", writeSite(t, filepath.Join(dir, "tracker.yaml"), c.server.URL, "", 1, map[string]any{
		"tracker": map[string]any{"listen": c.tracker, "admin": admin, "data_dir": filepath.Join(dir, "tracker"), "drain_spread": "100ms"},
		"nats":    map[string]string{"listen": bus},
	}))
	t.Cleanup(func() { _ = stop() })
	c.startSeed(writeSite(t, filepath.Join(dir, "seed.yaml"), c.server.URL, "", 1, map[string]any{
		"seed": map[string]any{"listen": "127.0.0.1:0", "admin": c.admins[0], "data_dir": filepath.Join(dir, "seed")},
		"nats": map[string]string{"url": "nats://" + bus},
	}))
	var err error
	if c.host, err = rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", SocketPerLink: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestASeedOfAThousandTitlesFitsIntoHalfAGigabyte: strangers of a thousand networks each have a seed, at its defaults, follow a title
// of its own, whose playlist lists ten hours.
func TestASeedOfAThousandTitlesFitsIntoHalfAGigabyte(t *testing.T) {
	const titles, segments, atATime, held, limit = 1000, 9000, 16, 400, 512 << 20
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the kernel of this system does not say how much memory was resident at most")
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	c := newCrowd(t, longFilm(segments))
	idle := c.peak()
	c.held, c.want = held, 4
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var next, linked atomic.Int64
	var coming sync.WaitGroup
	for range atATime {
		coming.Go(func() {
			for n := next.Add(1); n <= titles; n = next.Add(1) {
				if err := c.come(ctx, int(n)); err == nil {
					linked.Add(1)
				} else if n%100 == 1 {
					t.Logf("stranger %d: %v", n, err)
				}
			}
		})
	}
	coming.Wait()
	c.until("the seed knows all titles", func() bool { return c.metric(0, "leeway_seed_titles") == titles })
	loaded, bytes := c.metric(0, `leeway_seed_playlists_total{outcome="loaded",site="demo"}`), c.metric(0, "leeway_seed_index_bytes")
	t.Logf("%d of %d strangers linked; %v playlists loaded, indexes of %v MiB", linked.Load(), titles, loaded, bytes/(1<<20))
	stored := c.metric(0, `leeway_seed_store_bytes{tier="memory"}`)
	t.Logf("%d segments certified; a store of %v MiB", c.certified.Load(), stored/(1<<20))
	if linked.Load() < titles/2 || loaded < titles/10 || bytes < 32<<20 || stored < 120<<20 {
		t.Error("that is no attack")
	}
	t.Logf("resident at most: %d MiB, %d MiB before the first stranger came", c.peak()>>20, idle>>20)
	if c.peak() >= limit {
		t.Errorf("the seed took %d MiB", c.peak()>>20)
	}
}
