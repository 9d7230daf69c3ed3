package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/rtclink"
)

// How a seed is told where viewers find it, beside by an address.
const (
	announceNode = "node"  // the Kubernetes node that it runs on
	announceSTUN = "stun:" // what a server sees
)

// announceWithin bounds how long others are asked.
const announceWithin = 15 * time.Second

// announceProblem says what is wrong with a word of seed.announce.
func announceProblem(text, node string) string {
	switch server, stun := strings.CutPrefix(text, announceSTUN); {
	case stun && (server == "" || strings.HasPrefix(server, "//")):
		return fmt.Sprintf("%q names no server (such as stun:turn.example.com:3478)", text)
	case stun:
		return ""
	case text == announceNode && node == "":
		return "node needs the node's name: LEEWAY_SEED_NODE, from the field spec.nodeName of the pod"
	case text == announceNode:
		return ""
	}
	if _, err := netip.ParseAddr(text); err != nil {
		return fmt.Sprintf("%q is no IP address (nor node, nor stun:HOST:PORT)", text)
	}
	return ""
}

// announced is where viewers find this seed; none says that the machine's own addresses are good.
func (p seedParts) announced(ctx context.Context) (all []netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, announceWithin)
	defer cancel()
	for _, text := range p.config.Announce {
		if problem := announceProblem(text, p.config.Node); problem != "" {
			return nil, cmdline.Usage(fmt.Errorf("seed.announce: %s", problem))
		}
		var found []netip.Addr
		switch server, stun := strings.CutPrefix(text, announceSTUN); {
		case stun:
			found, err = p.seenBy(ctx, server)
		case text == announceNode:
			found, err = p.nodeAddresses(ctx)
		default:
			found = []netip.Addr{netip.MustParseAddr(text)}
		}
		if err != nil {
			return nil, fmt.Errorf("seed.announce: %s: %w", text, err)
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		p.log.Info("viewers are told that the seed is here", "address", all)
	}
	return all, nil
}

// seenBy asks a STUN server for the public address of the socket that the seed is about to open.
func (p seedParts) seenBy(ctx context.Context, server string) (all []netip.Addr, err error) {
	seen, err := rtclink.Mapped(ctx, p.listen, server)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(p.listen)
	if err != nil {
		return nil, err
	}
	for _, at := range seen {
		if strconv.Itoa(int(at.Port())) != port {
			p.log.Warn("a NAT changes the seed's port on the way out: have it pass the port on, or viewers do not reach it", "port", port, "seen", at.Port())
		}
		all = append(all, at.Addr())
	}
	return all, nil
}
