package bus

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Limits of bodies.
const (
	MaxSites   = 256 // of a seed
	MaxResting = 64  // titles that a seed says it lets rest
	MaxPeers   = 64  // in an answer
	MaxRevoked = 512 // in one message; a list that is longer is cut, the newest first
)

// TrackerBeat says that a tracker lives. It goes out every two seconds, when draining begins, and once on leaving; a tracker
// that hears one of a tracker it did not know answers with its own at once.
type TrackerBeat struct {
	Tracker   signal.ID `json:"tracker"`
	StartedMs int64     `json:"started_ms"` // ms since the Unix epoch
	Sessions  int       `json:"sessions"`
	Draining  bool      `json:"draining"` // takes no new swarms home
	Gone      bool      `json:"gone"`     // the last beat
}

// SeedBeat says that a seed lives and what it can do. It goes out every two seconds, on change, when a tracker beats that was
// not heard before, and once on leaving.
type SeedBeat struct {
	Seed         signal.ID `json:"seed"`
	Sites        []string  `json:"sites"`
	VerifyKeys   []SeedKey `json:"verify_keys"`
	LoadPermille int       `json:"load_permille"` // of what its budgets allow; 1000 takes no new links
	Draining     bool      `json:"draining"`      // is not introduced any more
	Gone         bool      `json:"gone"`          // the last beat

	Fleet *SeedFleet `json:"fleet,omitempty"` // nil: it is alone

	Resting map[string][]signal.ID `json:"resting,omitempty"` // swarms of titles that rest, by site; for people alone
}

// SeedFleet says which other seeds have segments of a seed, and where they ask for them.
type SeedFleet struct {
	ID      signal.Bytes `json:"id"`      // of the fleet, 8 bytes
	Address string       `json:"address"` // IP address and port
}

// At is the address; the zero value for one that is none.
func (f *SeedFleet) At() netip.AddrPort {
	at, _ := netip.ParseAddrPort(f.Address)
	return at
}

// SeedKey is a verify key and the sites that it may sign for.
type SeedKey struct {
	signal.VerifyKey
	Sites []string `json:"sites"`
}

// Operations of a HomeRequest.
const (
	OpJoin   = "join"
	OpUpdate = "update"
	OpLeave  = "leave"
	OpFailed = "failed" // the link between Session and Peer never opened
	OpStats  = "stats"  // what Session says of peers
	OpEnter  = "enter"  // Session is one of the subject's that Swarm stands for
	OpQuit   = "quit"   // it is not any more
)

// HomeRequest is what the tracker that holds a session asks of a swarm's home. A request without a reply inbox (a re-join
// after the home changed, a keep-alive) is not answered.
//
// Large: the fields of one message of the bus.
type HomeRequest struct {
	Op       string    `json:"op"`
	Tracker  signal.ID `json:"tracker"` // holds the session
	Session  signal.ID `json:"session"`
	Swarm    signal.ID `json:"swarm"`
	Serial   uint64    `json:"serial,omitempty"`   // of the session's requests: one that comes again is answered as before
	Part     uint32    `json:"part,omitempty"`     // of the swarm, where it is parted
	Level    int       `json:"level,omitempty"`    // how many bits of part count
	Site     string    `json:"site,omitempty"`     // join
	Title    string    `json:"title,omitempty"`    // join
	Manifest string    `json:"manifest,omitempty"` // join
	Role     string    `json:"role,omitempty"`     // join: full, leech, relay-only, off
	Group    string    `json:"group,omitempty"`    // join: of the token
	Address  string    `json:"address,omitempty"`  // join: keyed hash, never an address
	Subnet   string    `json:"subnet,omitempty"`   // join: keyed hash
	Region   string    `json:"region,omitempty"`   // join: label from configuration
	Subject  string    `json:"subject,omitempty"`  // join: of the token, keyed hash

	RTTMs     int           `json:"rtt_ms,omitempty"` // of the session's socket; 0 unknown
	Range     *signal.Range `json:"range,omitempty"`
	Saturated bool          `json:"saturated,omitempty"`
	Want      int           `json:"want,omitempty"`
	Learns    *int          `json:"learns,omitempty"` // how many viewers more it may learn of; nil: as many as it wants
	Offers    int           `json:"offers,omitempty"` // join: how many ready offers there are
	Rejoin    bool          `json:"rejoin,omitempty"` // the viewer did not ask: a join after the home changed, an update as keep-alive with all of a join
	Peer      signal.ID     `json:"peer,omitzero"`    // failed
	Claims    []Claim       `json:"claims,omitempty"` // stats
}

// WantsViewers is how many viewers the session would take and may learn of.
func (m *HomeRequest) WantsViewers() int {
	if m.Learns == nil {
		return m.Want
	}
	return min(m.Want, *m.Learns)
}

// Claim is what a session says of a peer. Both are members of one swarm, or were a moment ago.
type Claim struct {
	Peer signal.ID `json:"peer"`
	signal.PeerStats
}

// HomeAnswer answers a HomeRequest.
type HomeAnswer struct {
	Viewers int      `json:"viewers"`
	Seeds   int      `json:"seeds"`
	Peers   []Target `json:"peers,omitempty"`   // to introduce to the session
	Offers  []Target `json:"offers,omitempty"`  // one for each ready offer that found a peer
	Unknown bool     `json:"unknown,omitempty"` // update: no such member here; join again
	Code    string   `json:"code,omitempty"`    // of the error to send, such as swarm-full; empty: done
	Split   *Part    `json:"split,omitempty"`   // the member belongs there: ask its home
	Banned  bool     `json:"banned,omitempty"`  // the member is introduced to no viewer for a while
	// Manifest is the one that the swarm's seeds are told, which need not be the member's: offers to seeds name it.
	Manifest string `json:"manifest,omitempty"`
}

// Part is a part of a swarm (cluster.Part).
type Part struct {
	Part  uint32 `json:"part"`
	Level int    `json:"level"`
}

// Target is a peer and how to reach it.
type Target struct {
	Peer    signal.ID `json:"peer"`
	Role    string    `json:"role"`             // viewer, seed
	Tracker signal.ID `json:"tracker,omitzero"` // holds a viewer's session; zero for a seed
}

// Kinds of a Delivery and of a SeedDelivery.
const (
	KindIntroduce = "introduce" // peers for a session
	KindSignal    = "signal"    // a signal for a session or a seed
	KindReplaced  = "replaced"  // the session lives at another tracker now
	KindTorrent   = "torrent"   // a message of the WebTorrent protocol
	KindTitle     = "title"     // a title to serve
)

// Delivery is for one session that the receiving tracker holds.
type Delivery struct {
	Kind    string    `json:"kind"`
	Session signal.ID `json:"session,omitzero"` // introduce, replaced
	Swarm   signal.ID `json:"swarm,omitzero"`   // introduce
	Peers   []Target  `json:"peers,omitempty"`  // introduce
	Tracker signal.ID `json:"tracker,omitzero"` // replaced: where the session is now
	Signal  *Signal   `json:"signal,omitempty"` // signal
	Torrent *Torrent  `json:"torrent,omitempty"`
	Stream  *Stream   `json:"stream,omitempty"` // of another tracker, or of a seed
}

// Operations of a Torrent.
const (
	TorrentSay  = "say"  // of a socket, to the home of a swarm
	TorrentHear = "hear" // from there, to a socket
	TorrentEnd  = "end"  // a socket has ended
	TorrentAnew = "anew" // what either knows of the other's sockets is void, and is said again
)

// Torrent is a message of the WebTorrent protocol between the tracker of a socket and the home of a swarm.
type Torrent struct {
	Op      string          `json:"op"`
	Tracker signal.ID       `json:"tracker"`           // that sends this
	Socket  uint64          `json:"socket,omitempty"`  // of the tracker that is not the home; not of anew
	Quiet   bool            `json:"quiet,omitempty"`   // say: the socket did not say so now, and hears of a refusal only
	Message json.RawMessage `json:"message,omitempty"` // say, hear
	Subnet  string          `json:"subnet,omitempty"`  // say, and hear of an offer: keyed hash of the subnet that the message comes from
}

// Stream is a delivery's place among those of one replica for another.
type Stream struct {
	From signal.ID `json:"from"`
	N    uint64    `json:"n"`
	Base uint64    `json:"base"` // the lowest number that still comes
}

// Ack says which deliveries of a stream have arrived.
type Ack struct {
	From signal.ID `json:"from"` // the receiver
	Next uint64    `json:"next"` // the lowest number that has not
}

// Signal is a signal on its way. From and To are both set.
type Signal struct {
	Tracker signal.ID `json:"tracker,omitzero"` // holds From when that is a viewer; answers go there
	Part    uint32    `json:"part,omitempty"`   // of the swarm that From is in
	Hops    int       `json:"hops,omitempty"`   // 1: to the home, which knows where To is; 2: from there
	Subnet  string    `json:"subnet,omitempty"` // to a viewer: keyed hash of From's subnet, which the signal is charged to
	signal.Signal
}

// SeedDelivery is for one seed.
type SeedDelivery struct {
	Kind   string  `json:"kind"`
	Title  *Title  `json:"title,omitempty"`  // title; also with every offer, so that the order of arrival does not matter
	Signal *Signal `json:"signal,omitempty"` // signal
	Stream *Stream `json:"stream,omitempty"` // signal

	Subnet  string `json:"subnet,omitempty"`  // offer: keyed hash of the viewer's subnet, which what it costs is charged to
	Subject string `json:"subject,omitempty"` // offer: keyed hash of its token's subject, likewise
}

// Title asks a seed to serve a title. It comes when the first viewer joins, when the number of viewers changes (at most
// once a second above three), and every ten seconds; viewers = 0 says that the swarm is empty. A seed forgets a title that
// was not named for 30 s. The seed decides whether it serves; it answers offers for what it does not serve with kind fail,
// reason refused.
type Title struct {
	Site     string    `json:"site"`
	Title    string    `json:"title"`
	Manifest string    `json:"manifest"` // key without a query
	Swarm    signal.ID `json:"swarm"`
	Viewers  int       `json:"viewers"` // with a role other than off
	// Beside is the manifest of the other one of HLS and DASH that most subnets name, a key as Manifest is; not with offers.
	Beside string `json:"beside,omitempty"`
	// Chosen: the home has seen which manifests most subnets name. A seed that follows others goes over to these; not with offers.
	Chosen bool `json:"chosen,omitempty"`

	Seeds []signal.ID `json:"seeds,omitempty"` // that serve the swarm, of one fleet; not with offers

	// Credited are the bytes that viewers had from each other without a relay, by the word of both, since the home has the swarm; nil:
	// it cannot say. Not with offers.
	Credited *int64 `json:"credited,omitempty"`
}

// RevokeMessage adds revocations and switches everywhere.
type RevokeMessage struct {
	Revocations []signal.Revocation `json:"revocations"`
	Switches    []Switch            `json:"switches,omitempty"`
}

// Switch says that peer delivery of a site is off, or on again, for one reason (cluster.Switch).
type Switch struct {
	Site   string `json:"site"`
	Reason string `json:"reason"`
	Off    bool   `json:"off"`
	At     int64  `json:"at_ms"`              // ms since the Unix epoch
	Until  int64  `json:"until_ms,omitempty"` // off: ms since the Unix epoch at which it ends by itself
}

// Switches are statements as they travel.
func Switches(list []cluster.Switch) []Switch {
	out := make([]Switch, len(list))
	for i, w := range list {
		out[i] = Switch{Site: w.Site, Reason: w.Reason, Off: w.Off, At: w.At.UnixMilli()}
		if !w.Until.IsZero() {
			out[i].Until = w.Until.UnixMilli()
		}
	}
	return out
}

// Statement is what a switch says.
func (w Switch) Statement() cluster.Switch {
	s := cluster.Switch{Site: w.Site, Reason: w.Reason, Off: w.Off, At: time.UnixMilli(w.At)}
	if w.Until != 0 {
		s.Until = time.UnixMilli(w.Until)
	}
	return s
}

// RevokeList answers a request to SubjectRevokeList: what a replica that has just started needs to know. Keys are there
// because certificates outlive the seed that signed them. Seeds may ask for it too.
type RevokeList struct {
	Revocations []signal.Revocation `json:"revocations"`
	VerifyKeys  []SeedKey           `json:"verify_keys"`
	Switches    []Switch            `json:"switches,omitempty"`
}
