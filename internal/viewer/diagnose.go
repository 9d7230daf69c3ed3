package viewer

import (
	"strings"

	"github.com/leeway-video/leeway/internal/schedule"
)

// blame is what the attempts that failed last say about the network.
type blame struct {
	reason schedule.Reason
	times  int // in a row
}

// add notes a failed attempt; an empty reason says nothing.
func (b *blame) add(reason schedule.Reason) {
	if reason == "" {
		return
	}
	if reason != b.reason {
		b.reason, b.times = reason, 0
	}
	b.times++
}

// sure is the reason once two attempts in a row have failed for it.
func (b *blame) sure() schedule.Reason {
	if b.times < 2 {
		return ""
	}
	return b.reason
}

// facts of an attempt, from which its failure is explained.
type facts struct {
	gathered  bool
	reflexive []string // local candidates as a STUN server saw them
	relayed   bool
	remote    bool // a reflexive candidate of the other side was heard of
}

func (f *facts) local(candidate string, end bool) {
	switch {
	case end:
		f.gathered = true
	case strings.Contains(candidate, " typ srflx"):
		f.reflexive = append(f.reflexive, candidate)
	case strings.Contains(candidate, " typ relay"):
		f.relayed = true
	}
}

// diagnose explains why an attempt did not open: a guess, and only a time-out where nothing shows.
func (f *facts) diagnose(servers bool) (fail string, cause schedule.Reason) {
	if servers && f.gathered && len(f.reflexive) == 0 && !f.relayed {
		return "udp-blocked", schedule.UDPBlocked
	}
	// One local port that two servers see as two: the address translation depends on the destination.
	ports := map[string]bool{}
	for _, c := range f.reflexive {
		if _, related, ok := strings.Cut(c, " rport "); ok {
			port, _, _ := strings.Cut(related, " ")
			ports[port] = true
		}
	}
	if len(ports) > 0 && len(ports) < len(f.reflexive) || len(f.reflexive) > 0 && f.remote {
		return "timeout", schedule.SymmetricNAT
	}
	return "timeout", ""
}

// overUDP says whether a list has a STUN or TURN server that is reached by UDP.
func overUDP(servers []ICEServer) bool {
	for _, s := range servers {
		for _, u := range s.URLs {
			if (strings.HasPrefix(u, "stun:") || strings.HasPrefix(u, "turn:")) && !strings.Contains(u, "transport=tcp") {
				return true
			}
		}
	}
	return false
}
