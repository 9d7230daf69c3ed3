package bus

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const maxHash = 64 // characters of a keyed hash

var (
	errNoID   = errors.New("an id is missing")
	errNoPart = errors.New("there is no such part of a swarm")
)

// Validate implements Message.
func (m *TrackerBeat) Validate() error {
	if m.Tracker.IsZero() {
		return errNoID
	}
	return nil
}

// Validate implements Message.
func (m *SeedBeat) Validate() error {
	if m.Seed.IsZero() {
		return errNoID
	}
	if len(m.Sites) > MaxSites || m.LoadPermille < 0 || m.LoadPermille > 1000 {
		return fmt.Errorf("%d sites, load %d; at most %d sites and 1000 permille", len(m.Sites), m.LoadPermille, MaxSites)
	}
	resting := 0
	for _, swarms := range m.Resting {
		resting += len(swarms)
	}
	if resting > MaxResting || len(m.Resting) > MaxSites {
		return fmt.Errorf("%d titles of %d sites rest; at most %d of %d are told", resting, len(m.Resting), MaxResting, MaxSites)
	}
	if f := m.Fleet; f != nil && (len(f.ID) != 8 || f.At().Port() == 0 || f.At().Addr().Zone() != "") {
		return errors.New("the fleet lacks its id or its address and port")
	}
	return validKeys(m.VerifyKeys)
}

// Validate implements Message.
func (m *HomeRequest) Validate() error {
	if m.Tracker.IsZero() || m.Session.IsZero() || m.Swarm.IsZero() {
		return errNoID
	}
	if m.RTTMs < 0 || m.Want < 0 || m.Want > signal.MaxWant || m.WantsViewers() < 0 || m.Offers < 0 || m.Offers > signal.MaxOffers {
		return errors.New("a figure is out of its limits")
	}
	if m.Range != nil && (m.Range.From < 0 || m.Range.To < m.Range.From) {
		return errors.New("range ends before it begins")
	}
	if !(cluster.Part{Number: m.Part, Level: m.Level}).Valid() {
		return errNoPart
	}
	switch m.Op {
	case OpJoin, OpUpdate:
		if m.Op == OpUpdate && !m.Rejoin {
			return nil
		}
		t := Title{Site: m.Site, Title: m.Title, Manifest: m.Manifest, Swarm: m.Swarm}
		if !slices.Contains(signal.Roles, m.Role) {
			return errors.New("role is none of the known values")
		}
		return t.validate()
	case OpFailed:
		if m.Peer.IsZero() {
			return errNoID
		}
		return nil
	case OpStats:
		return validClaims(m.Claims)
	case OpLeave, OpEnter, OpQuit:
		return nil
	}
	return fmt.Errorf("operation %.16q is unknown", m.Op)
}

// Validate implements Message.
func (m *HomeAnswer) Validate() error {
	if m.Viewers < 0 || m.Seeds < 0 {
		return errors.New("a figure is negative")
	}
	if len(m.Manifest) > signal.MaxManifest {
		return errors.New("manifest is too long")
	}
	if m.Split != nil && !(cluster.Part{Number: m.Split.Part, Level: m.Split.Level}).Valid() {
		return errNoPart
	}
	return errors.Join(validTargets(m.Peers), validTargets(m.Offers))
}

// Validate implements Message.
func (m *Delivery) Validate() error {
	if err := m.Stream.validate(); err != nil {
		return err
	}
	switch m.Kind {
	case KindIntroduce:
		if m.Session.IsZero() || m.Swarm.IsZero() {
			return errNoID
		}
		return validTargets(m.Peers)
	case KindReplaced:
		if m.Session.IsZero() || m.Tracker.IsZero() {
			return errNoID
		}
		return nil
	case KindSignal:
		return m.Signal.validate()
	case KindTorrent:
		return m.Torrent.validate()
	}
	return fmt.Errorf("kind %.16q is unknown", m.Kind)
}

func (s *Stream) validate() error {
	if s != nil && (s.From.IsZero() || s.Base == 0 || s.N < s.Base || s.N == math.MaxUint64) {
		return errors.New("the place in the stream is none")
	}
	return nil
}

func (m *Torrent) validate() error {
	if m == nil || m.Tracker.IsZero() || (m.Socket == 0) != (m.Op == TorrentAnew) {
		return errNoID
	}
	switch m.Op {
	case TorrentSay, TorrentHear:
		if len(m.Message) == 0 {
			return errors.New("the message is missing")
		}
	case TorrentEnd, TorrentAnew:
	default:
		return fmt.Errorf("operation %.16q is unknown", m.Op)
	}
	return nil
}

// Validate implements Message.
func (m *Ack) Validate() error {
	if m.From.IsZero() {
		return errNoID
	}
	return nil
}

// Validate implements Message.
func (m *SeedDelivery) Validate() error {
	if err := m.Stream.validate(); err != nil {
		return err
	}
	if len(m.Subnet) > maxHash || len(m.Subject) > maxHash {
		return errors.New("a hash is too long")
	}
	switch m.Kind {
	case KindTitle:
		if m.Title == nil {
			return errors.New("title is missing")
		}
		return m.Title.validate()
	case KindSignal:
		if m.Title != nil {
			if err := m.Title.validate(); err != nil {
				return err
			}
		}
		return m.Signal.validate()
	}
	return fmt.Errorf("kind %.16q is unknown", m.Kind)
}

// Validate implements Message.
func (m *RevokeMessage) Validate() error {
	if err := validSwitches(m.Switches); err != nil {
		return err
	}
	return validRevocations(m.Revocations)
}

// Validate implements Message.
func (m *RevokeList) Validate() error {
	if err := errors.Join(validKeys(m.VerifyKeys), validSwitches(m.Switches)); err != nil {
		return err
	}
	return validRevocations(m.Revocations)
}

func (t *Title) validate() error {
	switch {
	case t.Swarm.IsZero():
		return errNoID
	case t.Site == "" || len(t.Site) > signal.MaxSite:
		return errors.New("site is missing or too long")
	case t.Title == "" || len(t.Title) > signal.MaxTitle || !utf8.ValidString(t.Title):
		return errors.New("title is missing, too long or not UTF-8")
	case max(len(t.Manifest), len(t.Beside)) > signal.MaxManifest || t.Viewers < 0:
		return errors.New("a manifest is too long or viewers negative")
	case t.Credited != nil && *t.Credited < 0:
		return errors.New("credited is negative")
	case len(t.Seeds) > MaxPeers || slices.ContainsFunc(t.Seeds, signal.ID.IsZero):
		return fmt.Errorf("%d seeds of a title; at most %d, each with its id", len(t.Seeds), MaxPeers)
	}
	return nil
}

func (s *Signal) validate() error {
	switch {
	case s == nil:
		return errors.New("signal is missing")
	case s.Swarm.IsZero() || s.From.IsZero() || s.To.IsZero() || s.Link.IsZero():
		return errNoID
	case !slices.Contains(signal.Kinds, s.Kind) || !slices.Contains(signal.PeerRoles, s.Role):
		return errors.New("kind or role is none of the known values")
	case s.Hops < 0 || s.Hops > 2:
		return errors.New("more hops than there can be")
	case len(s.Subnet) > maxHash:
		return errors.New("a hash is too long")
	case len(s.SDP) > signal.MaxSDP || len(s.Candidate) > signal.MaxCandidate || len(s.Mid) > signal.MaxMid:
		return errors.New("sdp, candidate or sdp_mid is too long")
	case (s.Kind == "offer" || s.Kind == "answer") && (s.SDP == "" || s.Plan == nil):
		return errors.New("an offer or answer lacks its sdp or plan")
	case s.Kind == "fail" && !slices.Contains(signal.FailReasons, s.Reason):
		return errors.New("reason is none of the known values")
	}
	return nil
}

func validClaims(claims []Claim) error {
	if len(claims) > signal.MaxStatPeers {
		return fmt.Errorf("claims of %d peers; at most %d", len(claims), signal.MaxStatPeers)
	}
	for _, c := range claims {
		if c.Peer.IsZero() {
			return errNoID
		}
		for _, n := range [...]int64{c.In, c.Out, c.RelayIn, c.RelayOut, c.Blame} {
			if n < 0 || n > signal.MaxInteger {
				return errors.New("a claim is out of its limits")
			}
		}
	}
	return nil
}

func validTargets(targets []Target) error {
	if len(targets) > MaxPeers {
		return fmt.Errorf("%d peers; at most %d", len(targets), MaxPeers)
	}
	for _, t := range targets {
		if t.Peer.IsZero() || !slices.Contains(signal.PeerRoles, t.Role) || (t.Role == "viewer") == t.Tracker.IsZero() {
			return errors.New("a peer lacks its id, its role or the tracker that holds it")
		}
	}
	return nil
}

func validKeys(keys []SeedKey) error {
	if len(keys) > signal.MaxKeys {
		return fmt.Errorf("%d verify keys; at most %d", len(keys), signal.MaxKeys)
	}
	for _, k := range keys {
		if k.Alg == 1 && (len(k.KeyID) != 8 || len(k.Key) != 65) || len(k.Sites) > MaxSites {
			return errors.New("a verify key has the wrong size or too many sites")
		}
	}
	return nil
}

func validRevocations(list []signal.Revocation) error {
	if len(list) > MaxRevoked {
		return fmt.Errorf("%d revocations; at most %d", len(list), MaxRevoked)
	}
	for _, r := range list {
		byKey := len(r.KeyID) == 8 && r.Site == ""
		byPrefix := len(r.KeyID) == 0 && r.Site != "" && r.Prefix != "" && len(r.Prefix) <= signal.MaxPrefix && r.MinIssuedAt > 0
		if !byKey && !byPrefix {
			return errors.New("a revocation names neither one key nor one site, prefix and time")
		}
	}
	return nil
}

func validSwitches(list []Switch) error {
	if len(list) > cluster.MaxSwitches {
		return fmt.Errorf("%d switches; at most %d", len(list), cluster.MaxSwitches)
	}
	for _, w := range list {
		switch {
		case w.Site == "" || len(w.Site) > signal.MaxSite || w.Reason == "" || len(w.Reason) > signal.MaxSite:
			return errors.New("a switch lacks its site or reason, or they are too long")
		case w.At <= 0 || w.At > signal.MaxInteger || w.Until < 0 || w.Until > signal.MaxInteger:
			return errors.New("a switch has a time that is none")
		}
	}
	return nil
}
