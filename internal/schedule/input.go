// Package schedule decides what a viewer fetches from which source, and why: decide(input) → actions, a pure function on
// integers (spec/schedule.md). The twin of web/packages/core/src/schedule, held to it to the bit by
// spec/vectors/schedule.json; inputs recorded in a browser replay in Go (internal/lab/replay).
package schedule

import (
	"encoding/json"
	"slices"
)

// Policy is what a site and the library's defaults allow.
type Policy struct {
	UrgentPermille int64 `json:"urgent_permille"` // of a segment's duration
	PatienceUs     int64 `json:"patience_us"`
	CertPatienceUs int64 `json:"cert_patience_us"`
	LinkPatienceUs int64 `json:"link_patience_us"`
	PieceCap       int   `json:"piece_cap"` // pieces in flight in all
	PeerCap        int64 `json:"peer_cap"`  // bytes outstanding to one viewer
	SeedCap        int64 `json:"seed_cap"`  // bytes outstanding to one seed while viewers are linked
	Background     bool  `json:"background"`
	MaxWaitUs      int64 `json:"max_wait_us"`
}

// DefaultPolicy is spec/schedule.md's.
var DefaultPolicy = Policy{
	UrgentPermille: 1500, PatienceUs: 1_000_000, CertPatienceUs: 2_000_000, LinkPatienceUs: 1_500_000,
	PieceCap: 128, PeerCap: 524_288, SeedCap: 131_072, MaxWaitUs: 2_000_000,
}

// Certification is how far a segment's certificate has come.
type Certification string

// The certifications.
const (
	CertNone    Certification = "none"
	CertAsked   Certification = "asked"
	CertHeld    Certification = "held"
	CertRefused Certification = "refused"
)

// Origin is what the origin does for a segment.
type Origin string

// The states of an origin.
const (
	OriginIdle    Origin = "idle"
	OriginRunning Origin = "running"
	OriginFailed  Origin = "failed"
)

// Role of a peer.
type Role string

// The roles.
const (
	Viewer Role = "viewer"
	Seed   Role = "seed"
)

// Lane of a request: 0 foreground, 1 background.
type Lane uint8

// The lanes.
const (
	Foreground Lane = 0
	Background Lane = 1
)

// Segment is one that is wanted, in playback order. Times in µs.
type Segment struct {
	ID          string        `json:"id"`          // hexadecimal
	DeadlineUs  int64         `json:"deadline_us"` // when the playhead gets there
	DurationUs  int64         `json:"duration_us"`
	AskedUs     int64         `json:"asked_us"` // when the player asked; -1: it has not
	Certificate Certification `json:"certificate"`
	CertAskedUs int64         `json:"cert_asked_us"`          // when it was first asked for; -1: never
	CertHeldUs  int64         `json:"cert_held_us,omitempty"` // when it was verified; 0: not, or not known
	CertPeers   []string      `json:"cert_peers"`             // peers that were asked, in order, or that refused
	Pieces      int           `json:"pieces"`                 // 0 while unknown
	Have        []int         `json:"have"`                   // verified pieces, sorted
	Packaged    bool          `json:"packaged,omitempty"`     // a list has its short certificate: the viewer completes it with what the origin sends
	Origin      Origin        `json:"origin"`
	OriginUs    int64         `json:"origin_us"` // what the origin would take for what is left at the estimated capacity; -1 unknown
}

// Holding is what a peer has of a segment: all of it, or the pieces listed (sorted).
type Holding struct {
	Complete bool
	Pieces   []int
}

// UnmarshalJSON reads "complete" or a list.
func (h *Holding) UnmarshalJSON(b []byte) error {
	*h = Holding{}
	if string(b) == `"complete"` {
		h.Complete = true
		return nil
	}
	return json.Unmarshal(b, &h.Pieces)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (h Holding) MarshalJSON() ([]byte, error) {
	switch {
	case h.Complete:
		return []byte(`"complete"`), nil
	case h.Pieces == nil:
		return []byte("[]"), nil
	}
	return json.Marshal(h.Pieces)
}

func (h Holding) has(piece int) bool {
	if h.Complete {
		return true
	}
	_, found := slices.BinarySearch(h.Pieces, piece)
	return found
}

// Peer is one that is linked.
type Peer struct {
	ID             string             `json:"id"` // hexadecimal
	Role           Role               `json:"role"`
	Rate           int64              `json:"rate"` // bytes per second, 0 unknown
	RTTUs          int64              `json:"rtt_us"`
	Slots          int                `json:"slots"`  // free request slots
	Queued         int64              `json:"queued"` // bytes outstanding to it
	OnDemand       bool               `json:"on_demand"`
	StalledUntilUs int64              `json:"stalled_until_us"`
	BehindUntilUs  int64              `json:"behind_until_us,omitempty"` // until when nothing is asked of it in the background; 0: it may be asked
	Holds          map[string]Holding `json:"holds"`                     // by segment
	Heard          map[string]int64   `json:"heard"`                     // when it last announced a segment that it holds in part
}

// Request is one in flight.
type Request struct {
	Segment    string `json:"segment"`
	Piece      int    `json:"piece"`
	Peer       string `json:"peer"`
	Lane       Lane   `json:"lane"`
	SentUs     int64  `json:"sent_us"`
	ProgressUs int64  `json:"progress_us"` // last data of this peer, or SentUs if later
}

// Input is all that Decide sees.
type Input struct {
	NowUs        int64  `json:"now_us"`
	Self         string `json:"self"`
	Policy       Policy `json:"policy"`
	CreditUs     int64  `json:"credit_us"`      // how long requests may still wait, in all, until a piece is verified; -1: one was
	SlowCreditUs int64  `json:"slow_credit_us"` // how long they may then still wait for holders that are not known to send enough
	Linking      bool   `json:"linking"`        // a first link may still come up
	// SeedLinking: a seed that was introduced in this session may still be linked.
	SeedLinking bool      `json:"seed_linking"`
	Off         Reason    `json:"off"`            // why peer delivery is off; empty: it is on
	Live        bool      `json:"live,omitempty"` // what the player asked for last is of a stream that goes on
	Segments    []Segment `json:"segments"`
	Peers       []Peer    `json:"peers"` // sorted by ID
	Requests    []Request `json:"requests"`
}
