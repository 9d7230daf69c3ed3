package rtclink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	relay "github.com/pion/turn/v5"
)

// ErrRelayRefused is of a relay that answered and gave no allocation: the credentials, or a quota.
var ErrRelayRefused = errors.New("the relay refuses an allocation")

// Try asks one STUN or TURN server whether it serves this machine: a binding, and an allocation of a relay, which is given back.
// url is one of ICEServer.URLs. It returns the address that the server gave. roots are those of turns URLs; nil is the system's.
func Try(ctx context.Context, url, username, credential string, roots *tls.Config) (at netip.AddrPort, err error) {
	u, err := stun.ParseURI(url)
	if err != nil {
		return at, fmt.Errorf("rtclink: %q: %w", url, err)
	}
	server := net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
	conn, err := dialRelay(ctx, u, server, roots)
	if err != nil {
		return at, fmt.Errorf("rtclink: %s: %w", url, err)
	}
	defer conn.Close()
	client, err := relay.NewClient(&relay.ClientConfig{
		STUNServerAddr: server, TURNServerAddr: server, Conn: conn, Username: username, Password: credential,
		RTO: 200 * time.Millisecond, LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard},
	})
	if err == nil {
		defer client.Close()
		stop := context.AfterFunc(ctx, client.Close)
		defer stop()
		err = client.Listen()
	}
	if err != nil {
		return at, fmt.Errorf("rtclink: %s: %w", url, err)
	}
	seen, err := client.SendBindingRequest()
	if err != nil {
		return at, fmt.Errorf("rtclink: %s does not answer: %w", url, cmp.Or(ctx.Err(), err)) // the end of ctx closes the client, which then says so
	}
	if u.Scheme == stun.SchemeTypeSTUN || u.Scheme == stun.SchemeTypeSTUNS {
		return netip.ParseAddrPort(seen.String())
	}
	relayed, err := client.Allocate()
	if err != nil {
		return at, fmt.Errorf("rtclink: %s: %w: %w", url, ErrRelayRefused, err)
	}
	defer relayed.Close() //nolint:errcheck // the allocation ends with the socket
	return netip.ParseAddrPort(relayed.LocalAddr().String())
}

// dialRelay opens the socket that a URL asks for.
func dialRelay(ctx context.Context, u *stun.URI, server string, roots *tls.Config) (net.PacketConn, error) {
	secure := u.Scheme == stun.SchemeTypeTURNS || u.Scheme == stun.SchemeTypeSTUNS
	if u.Proto == stun.ProtoTypeUDP && !secure {
		to, err := net.ResolveUDPAddr("udp", server)
		if err != nil {
			return nil, err
		}
		network := "udp4" // a socket of both families would ask for a relayed address of IPv6
		if to.IP.To4() == nil {
			network = "udp6"
		}
		return (&net.ListenConfig{}).ListenPacket(ctx, network, ":0")
	}
	var conn net.Conn
	var err error
	if secure {
		roots = roots.Clone()
		if roots == nil {
			roots = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		roots.ServerName = u.Host
		conn, err = (&tls.Dialer{Config: roots}).DialContext(ctx, "tcp", server)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", server)
	}
	if err != nil {
		return nil, err
	}
	return relay.NewSTUNConn(conn), nil
}
