// Package natsnode runs a server of a NATS cluster in this process, for benches and tests that take one away.
package natsnode

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/leeway-video/leeway/internal/wire/bus"
)

// patience bounds how long a server may take to begin.
const patience = 10 * time.Second

// Config is of one server of a NATS cluster.
type Config struct {
	Name    string
	Listen  string   // HOST:PORT for clients
	Cluster string   // HOST:PORT for the other servers
	Routes  []string // HOST:PORT, the Cluster of others
	User    string   // that clients have to name
	Pass    string

	CertFile, KeyFile string // TLS for clients; empty: plaintext
}

// Node is a server of a NATS cluster in this process.
type Node struct{ server *server.Server }

// Start starts a server and returns when it takes clients. The others need not be there yet.
func Start(cfg Config) (*Node, error) {
	opts := &server.Options{
		ServerName: cfg.Name, NoSigs: true, NoLog: true, MaxPayload: bus.MaxMessage + 4096, Username: cfg.User, Password: cfg.Pass,
	}
	opts.Cluster.Name = "leeway"
	for _, at := range []struct {
		address string
		host    *string
		port    *int
	}{{cfg.Listen, &opts.Host, &opts.Port}, {cfg.Cluster, &opts.Cluster.Host, &opts.Cluster.Port}} {
		host, port, err := net.SplitHostPort(at.address)
		if err != nil {
			return nil, fmt.Errorf("natsnode: node %s at %q: %w", cfg.Name, at.address, err)
		}
		*at.host = host
		if *at.port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("natsnode: node %s at %q: %w", cfg.Name, at.address, err)
		}
	}
	for _, r := range cfg.Routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	if cfg.CertFile != "" {
		c, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cfg.CertFile, KeyFile: cfg.KeyFile})
		if err != nil {
			return nil, fmt.Errorf("natsnode: node %s: %w", cfg.Name, err)
		}
		opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, c, patience.Seconds()
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("natsnode: node %s: %w", cfg.Name, err)
	}
	n := &Node{s}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return nil, errors.Join(fmt.Errorf("natsnode: node %s takes no clients at %s", cfg.Name, cfg.Listen), n.Close())
	}
	return n, nil
}

// Joined says whether so many other servers are connected.
func (n *Node) Joined(others int) bool {
	routed := map[string]bool{}
	z, err := n.server.Routez(nil)
	if err != nil {
		return false
	}
	for _, r := range z.Routes {
		routed[r.RemoteID] = true
	}
	return len(routed) >= others
}

// Addr is HOST:PORT for clients.
func (n *Node) Addr() string { return n.server.Addr().String() }

// Close ends the server.
func (n *Node) Close() error {
	n.server.Shutdown()
	n.server.WaitForShutdown()
	return nil
}
