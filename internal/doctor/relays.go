package doctor

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// checkRelays asks every STUN and TURN server that the tracker names, side by side.
func checkRelays(ctx context.Context, e *examination) []Finding {
	if e.welcome == nil {
		return skipped(noWelcome)
	}
	servers := e.welcome.ICEServers
	if len(servers) == 0 {
		if loopbackHost(e.cfg.Tracker) {
			return ok("none is named, and none is needed on one machine")
		}
		return warn("no-relays", "the tracker names no STUN or TURN server: viewers behind different NATs do not link", "run leeway turn and name it in tracker.ice_servers (docs/operations/turn.md)")
	}
	type asked struct {
		url    string
		server signal.ICEServer
	}
	var all []asked
	for _, s := range servers {
		for _, u := range s.URLs {
			all = append(all, asked{u, s})
		}
	}
	found := make([][]Finding, len(all))
	var busy sync.WaitGroup
	for i, a := range all {
		busy.Go(func() { found[i] = e.relay(ctx, a.url, a.server) })
	}
	busy.Wait()
	var list []Finding
	for _, f := range found {
		list = append(list, f...)
	}
	return list
}

func (e *examination) relay(ctx context.Context, at string, s signal.ICEServer) []Finding {
	seen, err := rtclink.Try(ctx, at, s.Username, s.Credential, e.tls())
	turn := strings.HasPrefix(at, "turn")
	switch {
	case err == nil && turn:
		return ok("%s gave the relayed address %s", at, seen.Addr())
	case err == nil:
		return ok("%s answers", at)
	case errors.Is(err, rtclink.ErrRelayRefused):
		return fail("turn-refused", err.Error(), "compare the secret of tracker.ice_servers with turn.secrets, and the clocks of tracker and relay; a quota (turn.max_allocations, max_per_address) is in the relay's log")
	case turn:
		return fail("turn-dead", err.Error(), "start leeway turn there, open its port (3478/udp and tcp, 5349/tcp) in the firewall, or take it out of tracker.ice_servers")
	}
	return fail("stun-dead", err.Error(), "start the STUN server, open its port, or take it out of tracker.ice_servers")
}
