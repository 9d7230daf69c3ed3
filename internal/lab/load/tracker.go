package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// loopbackSources is how many addresses sessions with a tracker on loopback come from: a tracker bounds what one address may do.
const loopbackSources = 200

// tracker is where sessions of behavior join go.
type tracker struct {
	address netip.AddrPort
	path    string
	tls     *tls.Config // nil: plaintext
	sources []netip.Addr
}

// lookUp resolves the address of a tracker once, for all sessions.
func lookUp(ctx context.Context, text string) (t tracker, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return t, errors.New("the address of the tracker cannot be read")
	}
	port := u.Port()
	if u.Scheme == "wss" {
		t.tls = &tls.Config{ServerName: u.Hostname()}
	}
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return t, fmt.Errorf("tracker %s: port %q", shown(text), port)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return t, fmt.Errorf("tracker %s: %w", shown(text), err)
	}
	t.address, t.path = netip.AddrPortFrom(found[0].Unmap(), uint16(n)), u.RequestURI()
	if t.address.Addr().Is4() && t.address.Addr().IsLoopback() {
		for i := range loopbackSources {
			t.sources = append(t.sources, netip.AddrFrom4([4]byte{127, 1, 0, byte(1 + i)}))
		}
	}
	return t, nil
}

// source is the address that a session comes from; none: as the system likes.
func (t *tracker) source(number int) []netip.Addr {
	if len(t.sources) == 0 {
		return nil
	}
	return t.sources[number%len(t.sources):][:1]
}
