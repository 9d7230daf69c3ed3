package probe

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// Bounds of connections of the quality test (spec/probe.md, Quality by data channel; spec/budgets.md).
const (
	maxOffer       = 16 << 10 // bytes of a request
	maxHalfOpen    = 32       // connections that are not open yet
	maxHalfOpenOne = 4        // of one address
	packetCost     = 96       // bytes that a message has around it: addresses, keys, lengths
)

// Line is a connection with the two channels of a quality test, and the one of loads that give way once Lane is closed.
type Line interface {
	background.Link
	Lane() <-chan struct{}
	Send(message []byte) error
	Say(text []byte) error
	// Waiting is how many bytes are not acknowledged.
	Waiting() int
	RTT() time.Duration
	// Marks is how many packets came with each DSCP; false: that cannot be told.
	Marks() ([quality.MaxDSCP + 1]int64, bool)
	// Cut ends the line, without waiting.
	Cut()
}

// LineEvents are what a line tells. Message, Control and Lane are called by one goroutine each.
type LineEvents interface {
	Open()
	Message(b []byte, text bool, at time.Time)
	Control(b []byte, text bool)
	Lane(b []byte, text bool)
	Closed(err error) // last
}

// Asked is an offer of a line.
type Asked struct {
	Offer   string     // SDP
	Client  netip.Addr // whose packets are taken
	Reached netip.Addr // this server's address that the client has reached
	DSCP    int
}

// OfferError says that an offer is to blame.
type OfferError struct{ Err error }

// Error implements error.
func (e *OfferError) Error() string { return e.Err.Error() }

// signal is the body of an offer and of an answer.
type signal struct {
	Type string `json:"type"`
	SDP  string `json:"sdp"`
}

// serveQuality answers an offer.
func (s *Server) serveQuality(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Answer == nil {
		s.refuse(w, refusal{refusedProtocol, http.StatusNotFound, "This server has no data channels.", ""})
		return
	}
	dscp, err := markAsked(r)
	if err != nil {
		s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, err.Error(), ""})
		return
	}
	client, ok := s.admit(w, r, startCost-smallCost)
	if !ok {
		return
	}
	var offer signal
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOffer)).Decode(&offer); err != nil || offer.Type != "offer" {
		status := http.StatusBadRequest
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
		}
		s.refuse(w, refusal{refusedProtocol, status, `The body has to be {"type": "offer", "sdp": "…"}, of at most 16 KiB.`, ""})
		return
	}
	if !s.opening(access.Network(client)) {
		s.refuse(w, refusal{refusedHalfOpen, http.StatusTooManyRequests, "As many connections are on their way as may; come back when they are open.", "10"})
		return
	}
	t, refused := s.begin(qualityTest, client)
	if refused != nil {
		s.opened(access.Network(client))
		s.refuse(w, *refused)
		return
	}
	answer, err := s.answer(t, Asked{Offer: offer.SDP, Client: client, Reached: reached(r), DSCP: dscp})
	switch blamed := (*OfferError)(nil); {
	case err == nil:
		writeJSON(w, signal{"answer", answer})
	case errors.As(err, &blamed):
		s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, "The offer cannot be read: " + err.Error(), ""})
	default:
		s.cfg.Log.Error("a data channel could not be answered", "error", err)
		http.Error(w, "The server could not answer.", http.StatusInternalServerError)
	}
}

// markAsked reads the DSCP that a client asks for.
func markAsked(r *http.Request) (int, error) {
	text := r.URL.Query().Get("dscp")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > quality.MaxDSCP {
		return 0, errors.New("dscp is no number from 0 to 63")
	}
	return n, nil
}

// reached is the address that a request came to.
func reached(r *http.Request) netip.Addr {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.Addr{}
	}
	at, _ := netip.ParseAddrPort(local.String())
	return at.Addr().Unmap()
}

// answer makes the line of an offer, whose end is the test's.
func (s *Server) answer(t *test, asked Asked) (string, error) {
	x := newLineSession(t)
	line, answer, err := s.cfg.Answer(asked, x)
	if err != nil {
		x.halfOpen.Do(func() { s.opened(t.network) })
		t.end(endProtocol)
		return "", err
	}
	go x.run(line)
	return answer, nil
}

// opening counts a connection that is on its way; false: there are as many as may be.
func (s *Server) opening(network netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halfOpen.Take(network, 1)
}

// opened counts one that is no longer.
func (s *Server) opened(network netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halfOpen.Give(network, 1)
}

// remember takes room for the record of a stream of a network; false: that, or all together, have as much as they may.
func (s *Server) remember(network netip.Prefix, messages int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded.Take(network, messages)
}

func (s *Server) forget(network netip.Prefix, messages int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded.Give(network, messages)
}
