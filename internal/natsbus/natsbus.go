// Package natsbus carries messages between replicas over NATS. One replica runs an embedded server and talks to it in
// process; many share a server of their own. The code from the first subscription on is the same.
package natsbus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/leeway-video/leeway/internal/metric"
)

// pingEvery is how often the server is asked whether it is there. One that is lost without a word is noticed when it has not
// answered maxPings of them.
const (
	pingEvery = 2 * time.Second
	maxPings  = 2
)

// readyTimeout bounds the start of the embedded server.
const readyTimeout = 10 * time.Second

// Config says which server to use.
type Config struct {
	URL             string // of a server ("nats://host:4222", several with commas); empty: embedded
	Listen          string // embedded only: host:port for further replicas; empty: in process only
	User, Password  string // embedded too: what Listen asks of further replicas
	CredentialsFile string // of a NATS account: token and key in one file, as nsc writes it
	NKeyFile        string // of a NATS user known by its public key: a file with the seed
	CAFile          string // TLS roots; empty: the system's. Embedded: clients must show a certificate of these
	CertFile        string // TLS certificate of this client; embedded: of the server, which then speaks TLS
	KeyFile         string
	Name            string // of this client, in the server's lists
	Inbox           string // part of a subject: answers come to _INBOX.<Inbox>, so that a server can keep them from others; empty: _INBOX

	Log     *slog.Logger
	Metrics metric.Sink
	Lost    func(error) // called once, if the connection has ended for good and Close did not end it; nil: it is not told
}

// Bus is a connection to the server.
type Bus struct {
	conn     *nats.Conn
	embedded *server.Server // nil with Config.URL
	closed   chan struct{}
	metrics  metric.Sink
	once     sync.Once
	closing  atomic.Bool
}

// ErrAway is in the error of Open where no server answers. It may come up later; any other error is of the configuration.
var ErrAway = errors.New("no NATS server answers")

// Open connects, starting the embedded server where no URL is given.
func Open(cfg Config) (*Bus, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Metrics = cmp.Or(cfg.Metrics, metric.Discard)
	if err := errors.Join(cfg.Check(), cfg.files()); err != nil {
		return nil, fmt.Errorf("natsbus: %w", err)
	}
	b := &Bus{closed: make(chan struct{}), metrics: cfg.Metrics}
	opts, err := b.options(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.URL == "" {
		s, err := startServer(cfg)
		if err != nil {
			return nil, err
		}
		b.embedded = s
		if exposed(cfg) {
			cfg.Log.Warn("the bus admits every client that can reach it: such a client can announce keys that sign any bytes", "listen", cfg.Listen,
				"hint", "set nats.user and nats.password, or nats.ca_file for certificates of clients")
		}
		opts = append(opts, nats.InProcessServer(s))
	}
	conn, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		b.stopServer()
		if away(err) {
			return nil, fmt.Errorf("natsbus: connect to %q: %w: %w (is the server up?)", redacted(cfg.URL), ErrAway, plain(err))
		}
		return nil, fmt.Errorf("natsbus: connect to %q: %w (is the server up, and are user and TLS settings its own?)", redacted(cfg.URL), plain(err))
	}
	b.conn = conn
	b.metrics.Set(defConnected, 1)
	return b, nil
}

// away says whether an attempt to connect met no server: nothing listens, packets are lost, the name is not known yet, or what listens
// hangs up, as a server that starts or stops does.
func away(err error) bool {
	var op *net.OpError
	var name *net.DNSError
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, io.EOF) || errors.As(err, &name) ||
		errors.As(err, &op) && (op.Op == "dial" || op.Op == "read")
}

// redacted is a list of servers without what stands before an @: user, password or token; errors end up in logs.
func redacted(servers string) string {
	list := strings.Split(servers, ",")
	for i, s := range list {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(s), "://")
		if !ok {
			scheme, rest = "nats", scheme
		}
		list[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(list, ",")
}

// plain is an error without the URL that the parser of URLs puts into its own.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return errors.New("the URL cannot be read")
	}
	return err
}

func (b *Bus) options(cfg Config) ([]nats.Option, error) {
	log := cfg.Log
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.MaxReconnects(-1), // a replica without its bus goes on serving its sockets and waits
		nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectJitter(500*time.Millisecond, time.Second),
		nats.RetryOnFailedConnect(false),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(maxPings),
		nats.IgnoreAuthErrorAbort(), // credentials that were changed on the servers first come to the replicas in time
		nats.ClosedHandler(func(c *nats.Conn) {
			close(b.closed)
			if cfg.Lost != nil && !b.closing.Load() {
				cfg.Lost(fmt.Errorf("natsbus: the server has ended the connection, and it is not tried again: %w", c.LastError()))
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.metrics.Set(defConnected, 0)
			if err != nil {
				log.Warn("bus lost; sessions go on, introductions stay local until it is back", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			b.metrics.Set(defConnected, 1)
			log.Info("bus is back")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				b.metrics.Add(defRefused, 1)
				log.Error("the NATS server refuses a subject to this user", "error", err, "hint", "compare the user's permissions with spec/cluster.md")
				return
			}
			log.Warn("bus", "error", err)
		}),
	}
	if cfg.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(inboxes+cfg.Inbox))
	}
	if cfg.User != "" {
		opts = append(opts, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(cfg.CredentialsFile))
	}
	if cfg.NKeyFile != "" {
		key, err := nats.NkeyOptionFromSeed(cfg.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("natsbus: nkey_file %q: %w (it holds the seed of a user, which begins with SU)", cfg.NKeyFile, err)
		}
		opts = append(opts, key)
	}
	if cfg.URL == "" {
		return opts, nil // in process: there is no network in between
	}
	if cfg.CAFile != "" {
		opts = append(opts, nats.RootCAs(cfg.CAFile))
	}
	if cfg.CertFile != "" {
		opts = append(opts, nats.ClientCert(cfg.CertFile, cfg.KeyFile))
	}
	return opts, nil
}

// Check says which settings contradict each other.
func (c Config) Check() error {
	ways := 0
	for _, way := range []string{c.User, c.CredentialsFile, c.NKeyFile} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("more than one of user, credentials_file and nkey_file is set; a server asks for one")
	case c.User == "" && c.Password != "":
		return errors.New("a password without a user")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("cert_file and key_file go together")
	case c.URL == "" && (c.CredentialsFile != "" || c.NKeyFile != ""):
		return errors.New("credentials_file and nkey_file are for a server elsewhere; name it by url")
	}
	for _, server := range strings.Split(c.URL, ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			continue // nats.go takes no notice of it either
		}
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		if u, err := url.Parse(server); err != nil || u.Hostname() == "" {
			return fmt.Errorf("url: %q is no server's address (such as nats://nats:4222, several with commas between them)", redacted(server))
		}
	}
	return nil
}

// files says which file of the configuration is missing.
func (c Config) files() error {
	for _, file := range []struct{ key, name string }{
		{"credentials_file", c.CredentialsFile}, {"nkey_file", c.NKeyFile}, {"ca_file", c.CAFile}, {"cert_file", c.CertFile}, {"key_file", c.KeyFile},
	} {
		if file.name == "" {
			continue
		}
		if _, err := os.Stat(file.name); err != nil {
			return fmt.Errorf("%s: %w", file.key, err)
		}
	}
	return nil
}
