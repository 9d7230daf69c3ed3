package rtclink

import (
	"errors"
	"fmt"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
)

var (
	errCandidate = errors.New("rtclink: candidate: malformed, or of a kind that is not used")
	errRefused   = errors.New("rtclink: candidate: refused")
)

// newAgent makes the ICE agent of a link over s; answered is called when a check of its was answered, and in gets the data.
func (h *Host) newAgent(s *socket, answered func(), in *intake) (*ice.Agent, error) {
	options := []ice.AgentOption{
		ice.WithUDPMux(share{s.mux, answered, in}),
		ice.WithNet(h.net), // one for all: each would list the machine's interfaces and keep the list
		ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4, ice.NetworkTypeUDP6}),
		// A viewer's .local candidates are not looked up: its own checks reach us and make it a peer-reflexive
		// candidate. A lookup costs a multicast socket and five goroutines a link.
		ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithDisconnectedTimeout(quietAfter),
		ice.WithFailedTimeout(LostAfter - quietAfter),
		ice.WithKeepaliveInterval(h.cfg.Keepalive),
		ice.WithLoggerFactory(h.loggers),
	}
	if h.cfg.Loopback || s.addr.IP.IsLoopback() {
		options = append(options, ice.WithIncludeLoopback())
	}
	if h.cfg.RelayOnly {
		options = append(options, ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeRelay}))
	}
	if len(h.cfg.Announce) > 0 {
		external := make([]string, len(h.cfg.Announce))
		for i, a := range h.cfg.Announce {
			external[i] = a.String()
		}
		options = append(options, ice.WithAddressRewriteRules(ice.AddressRewriteRule{
			External: external, AsCandidateType: ice.CandidateTypeHost, Mode: ice.AddressRewriteReplace,
		}))
	}
	servers, err := h.servers()
	if err != nil {
		return nil, err
	}
	agent, err := ice.NewAgentWithOptions(append(options, ice.WithUrls(servers))...)
	if err != nil {
		return nil, fmt.Errorf("rtclink: ICE agent: %w", err)
	}
	return agent, nil
}

// servers reads the configured STUN and TURN servers.
func (h *Host) servers() ([]*stun.URI, error) {
	var out []*stun.URI
	for _, s := range h.cfg.ICEServers {
		for _, u := range s.URLs {
			uri, err := stun.ParseURI(u)
			if err != nil {
				return nil, fmt.Errorf("rtclink: ICE server %q: %w", u, err)
			}
			uri.Username, uri.Password = s.Username, s.Credential
			out = append(out, uri)
		}
	}
	return out, nil
}
