package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// tlsTimeout bounds the handshake with the embedded server.
const tlsTimeout = 5 * time.Second

var directions = []string{"in", "out"}

var (
	defMessages = &metric.Def{
		Name: "leeway_bus_messages_total", Help: "Messages on the bus by kind of subject", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "subject", Values: bus.SubjectKinds}, {Name: "direction", Values: directions}},
	}
	defConnected = &metric.Def{Name: "leeway_bus_connected", Help: "1 while the bus is up", Kind: metric.Gauge}
	defRefused   = &metric.Def{Name: "leeway_bus_refused_total", Help: "Subjects that the NATS server refused to this user", Kind: metric.Counter}
)

// Metrics lists what this package counts.
func Metrics() []*metric.Def { return []*metric.Def{defMessages, defConnected, defRefused} }

func startServer(cfg Config) (*server.Server, error) {
	opts := &server.Options{
		DontListen: true, NoSigs: true, NoLog: true, MaxPayload: bus.MaxMessage + 4096, Username: cfg.User, Password: cfg.Password,
	}
	if cfg.Listen != "" {
		host, port, err := net.SplitHostPort(cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("natsbus: listen address %q: %w", cfg.Listen, err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("natsbus: listen port %q: %w", port, err)
		}
		if n == 0 {
			n = server.RANDOM_PORT
		}
		opts.DontListen, opts.Host, opts.Port = false, host, n
		if err := serveTLS(opts, cfg); err != nil {
			return nil, err
		}
	}
	s, err := begin(opts)
	if err != nil {
		return nil, fmt.Errorf("natsbus: embedded server on %q: %w (is the address this machine's, and free?)", cfg.Listen, err)
	}
	return s, nil
}

// begin starts a server and returns it when it takes connections.
func begin(opts *server.Options) (*server.Server, error) {
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	failed := make(fatal, 1)
	s.SetLogger(failed, false, false)
	s.Start()
	if err := failed.orReady(s); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, err
	}
	return s, nil
}

// exposed says whether others than this machine may join without a password or a certificate.
func exposed(cfg Config) bool {
	if cfg.Listen == "" || cfg.User != "" || cfg.CertFile != "" && cfg.CAFile != "" {
		return false
	}
	host, _, _ := net.SplitHostPort(cfg.Listen)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// fatal is a logger that keeps what ends the server, a port in use above all; nothing else tells.
type fatal chan error

func (f fatal) Fatalf(format string, v ...any) {
	select {
	case f <- fmt.Errorf(format, v...):
	default: // the first is the cause
	}
}
func (fatal) Noticef(string, ...any) {}
func (fatal) Warnf(string, ...any)   {}
func (fatal) Errorf(string, ...any)  {}
func (fatal) Debugf(string, ...any)  {}
func (fatal) Tracef(string, ...any)  {}

// orReady waits until the server takes connections.
func (f fatal) orReady(s *server.Server) error {
	for end := time.Now().Add(readyTimeout); time.Now().Before(end); {
		if s.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
		select {
		case err := <-f:
			return err
		default:
		}
	}
	return fmt.Errorf("not ready after %s", readyTimeout)
}

// serveTLS makes the embedded server speak TLS where there is a certificate.
func serveTLS(opts *server.Options, cfg Config) error {
	if cfg.CertFile == "" {
		return nil
	}
	c, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cfg.CertFile, KeyFile: cfg.KeyFile, CaFile: cfg.CAFile, Verify: cfg.CAFile != ""})
	if err != nil {
		return fmt.Errorf("natsbus: TLS of the embedded server from %q and %q: %w", cfg.CertFile, cfg.KeyFile, err)
	}
	opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, c, tlsTimeout.Seconds()
	return nil
}

// URL is where further replicas reach the embedded server; empty without one, or when it serves this process only.
func (b *Bus) URL() string {
	if b.embedded == nil || b.embedded.Addr() == nil {
		return ""
	}
	return b.embedded.ClientURL()
}

// Connected says whether the bus is up.
func (b *Bus) Connected() bool { return b.conn.IsConnected() }

// Publish sends data to all subscribers of subject.
func (b *Bus) Publish(subject string, data []byte) error {
	b.metrics.Add(defMessages, 1, bus.Kind(subject), "out")
	if err := b.conn.Publish(subject, data); err != nil {
		return fmt.Errorf("natsbus: publish to %s: %w", bus.Kind(subject), err)
	}
	return nil
}

// flushWait is how long the server may take to say that it has all that was sent.
const flushWait = 5 * time.Second

// ErrDown is what Send and Request return while the bus is lost.
var ErrDown = errors.New("natsbus: the bus is down")

// Send is Publish that returns when the server has the message. Publish keeps messages while the bus is lost and sends
// them when it is back, which is wrong for what is answered as done.
func (b *Bus) Send(subject string, data []byte) error {
	if !b.conn.IsConnected() {
		return ErrDown
	}
	before := b.conn.LastError()
	if err := b.Publish(subject, data); err != nil {
		return err
	}
	if err := b.flush(before, subject); err != nil {
		return fmt.Errorf("natsbus: send to %s: %w", bus.Kind(subject), err)
	}
	return nil
}

// ErrRefused is what Send and Subscribe return where the NATS server does not allow the subject to this user.
var ErrRefused = errors.New("the NATS server refuses the subject to this user")

// flush returns when the server has all that was sent, with ErrRefused if it refused the subject since before was the last error. The
// server reports that before it confirms the flush.
func (b *Bus) flush(before error, subject string) error {
	if err := b.conn.FlushTimeout(flushWait); err != nil {
		return err
	}
	if now := b.conn.LastError(); now != before && errors.Is(now, nats.ErrPermissionViolation) && strings.Contains(now.Error(), strconv.Quote(subject)) {
		return ErrRefused
	}
	return nil
}

// inboxes is what the subjects of answers begin with.
const inboxes = "_INBOX."

var errNoInbox = errors.New("natsbus: a message wants no answer, or wants it on a subject that is no inbox")

// Subscribe calls f for each message, one after the other. reply answers a request and fails for a message that is none.
func (b *Bus) Subscribe(subject string, f func(subject string, data []byte, reply func([]byte) error)) (func(), error) {
	before := b.conn.LastError()
	sub, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		b.metrics.Add(defMessages, 1, bus.Kind(m.Subject), "in")
		f(m.Subject, m.Data, func(data []byte) error {
			// Another subject would be said in this user's name, for one that may not say it.
			if !strings.HasPrefix(m.Reply, inboxes) {
				return errNoInbox
			}
			b.metrics.Add(defMessages, 1, "answer", "out")
			return m.Respond(data)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("natsbus: subscribe to %s: %w", bus.Kind(subject), err)
	}
	// The server must know of it before a request that expects to be heard goes out. While the bus is down it learns that when
	// it is back; waiting would hold a replica that goes on without.
	if b.conn.IsConnected() {
		if err := b.flush(before, subject); err != nil && b.conn.IsConnected() {
			_ = sub.Unsubscribe()
			return nil, fmt.Errorf("natsbus: subscribe to %s: %w", bus.Kind(subject), err)
		}
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Request sends data and waits for one answer. One that cannot go out now fails at once: kept until the bus is back, it would
// be acted on long after the requester has gone.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if !b.conn.IsConnected() && !b.conn.IsClosed() {
		return nil, fmt.Errorf("natsbus: request to %s: %w", bus.Kind(subject), ErrDown)
	}
	b.metrics.Add(defMessages, 1, bus.Kind(subject), "out")
	m, err := b.conn.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, fmt.Errorf("natsbus: request to %s: %w", bus.Kind(subject), err)
	}
	b.metrics.Add(defMessages, 1, "answer", "in")
	return m.Data, nil
}

// Close sends what is pending, ends the connection and the embedded server, and returns when both are gone.
func (b *Bus) Close() error {
	b.once.Do(func() {
		if b.conn.IsConnected() {
			_ = b.conn.FlushTimeout(time.Second)
		}
		b.closing.Store(true)
		b.conn.Close()
		<-b.closed
		b.stopServer()
		b.metrics.Set(defConnected, 0)
	})
	return nil
}

func (b *Bus) stopServer() {
	if b.embedded != nil {
		b.embedded.Shutdown()
		b.embedded.WaitForShutdown()
	}
}
