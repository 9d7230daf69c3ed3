package signal

import "encoding/json"

// Hello opens a session; the first message of a client.
type Hello struct {
	Request int    `json:"id,omitempty"`
	Version int    `json:"version"`
	Client  string `json:"client,omitempty"` // name/version of the software
	Site    string `json:"site,omitempty"`   // empty: the site of the handshake's Origin
	Token   string `json:"token,omitempty"`
	Ticket  string `json:"ticket,omitempty"` // of an earlier welcome
}

// Welcome answers Hello.
type Welcome struct {
	Request       int             `json:"id,omitempty"`
	Session       ID              `json:"session"`
	Ticket        string          `json:"ticket"`
	Resumed       bool            `json:"resumed"`
	ServerTime    int64           `json:"server_time_ms"` // ms since the Unix epoch
	Site          json.RawMessage `json:"site"`           // configuration of spec/site.md without fetch_base, an object
	ICEServers    []ICEServer     `json:"ice_servers"`
	Expire        int64           `json:"credentials_expire_ms,omitempty"` // ms since the Unix epoch; 0: never
	VerifyKeys    []VerifyKey     `json:"verify_keys"`
	Revocations   []Revocation    `json:"revocations"`
	Policy        Policy          `json:"policy"`
	Limits        Limits          `json:"limits"`
	UpdateEvery   int64           `json:"update_interval_ms"`
	StatsInterval int64           `json:"stats_interval_ms"`
	TokenExpires  int64           `json:"token_expires_ms,omitempty"` // ms since the Unix epoch; 0: the site asks for no token
}

// Token shows another join token, before the one that was shown last runs out (spec/access.md).
type Token struct {
	Request int    `json:"id,omitempty"`
	Token   string `json:"token"`
}

// Granted answers Token.
type Granted struct {
	Request      int   `json:"id,omitempty"`
	TokenExpires int64 `json:"token_expires_ms"` // ms since the Unix epoch
}

// ICEServer is one STUN or TURN server, as RTCPeerConnection takes it.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// VerifyKey is a public key whose certificates of one algorithm may be trusted.
type VerifyKey struct {
	KeyID Bytes `json:"key_id"` // 8 bytes
	Alg   int   `json:"alg"`    // AlgSeed, AlgPackager
	Key   Bytes `json:"key"`    // uncompressed point, 65 bytes
}

// Revocation withdraws certificates: either all of a key, or those of a site below a prefix issued before a time
// (spec/certificate.md). Exactly one of KeyID and Site is set.
type Revocation struct {
	KeyID       Bytes  `json:"key_id,omitempty"` // 8 bytes
	Site        string `json:"site,omitempty"`
	Prefix      string `json:"prefix,omitempty"`        // of the key; "/" is the whole site
	MinIssuedAt int64  `json:"min_issued_at,omitempty"` // ms since the Unix epoch
}

// Policy is what the site allows this viewer.
type Policy struct {
	Role            string `json:"role"` // full, leech, relay-only, off
	ControlGroup    bool   `json:"control_group"`
	Prefetch        bool   `json:"prefetch"`
	WasteBytes      int64  `json:"waste_bytes"`
	MaxLinks        int    `json:"max_links"`
	Relay           string `json:"relay"`                  // allow, never
	Local           string `json:"local"`                  // ask, never, if-granted
	SignedManifests string `json:"signed_manifests"`       // off, share
	UploadKbps      int64  `json:"upload_kbps,omitempty"`  // kbit/s that it may send to other viewers; 0: any
	DiskBytes       int64  `json:"disk_bytes,omitempty"`   // bytes that a page may keep on its viewer's disk; 0: none
	UnknownLine     string `json:"unknown_line,omitempty"` // leech, full; not said by older trackers, which is leech
}

// Limits tells the client what this tracker takes.
type Limits struct {
	MessageBytes      int `json:"message_bytes"`
	Swarms            int `json:"swarms"`
	MessagesPerSecond int `json:"messages_per_second"`
	Links             int `json:"links"`
}

// Range is a stretch of the presentation timeline in ms.
type Range struct {
	From int64 `json:"from_ms"`
	To   int64 `json:"to_ms"`
}

// Plan is the channel plan of a link (spec/peer-protocol.md).
type Plan struct {
	V       int `json:"v"`
	Data    int `json:"data"`    // data channels, 1–8
	Message int `json:"message"` // largest message accepted on a data channel, bytes
}

// Offer is a ready offer inside a join.
type Offer struct {
	Link ID     `json:"link"`
	SDP  string `json:"sdp"`
	Plan *Plan  `json:"plan,omitempty"`
	// Early says that the answer may carry what its sender says first on the link.
	Early bool `json:"early,omitempty"`
	// Wanted are segments whose certificates may be among that.
	Wanted []ID `json:"wanted,omitempty"`
}

// Join enters the swarm of a title.
type Join struct {
	Request  int     `json:"id,omitempty"`
	Title    string  `json:"title"`
	Manifest string  `json:"manifest,omitempty"` // key of the manifest without a query; empty: no seed serves the swarm
	Role     string  `json:"role"`
	Want     int     `json:"want"` // further links the viewer would take
	Range    *Range  `json:"range,omitempty"`
	Offers   []Offer `json:"offers,omitempty"`
	Ahead    bool    `json:"ahead,omitempty"` // sent before the welcome was there
}

// Joined answers Join.
type Joined struct {
	Request int `json:"id,omitempty"`
	Swarm   ID  `json:"swarm"`
	Viewers int `json:"viewers"` // members with a role other than off, the joiner among them
	Seeds   int `json:"seeds"`
	// Offered are the peers that got the ready offers.
	Offered []Offered `json:"offered,omitempty"`
}

// Offered is a ready offer on its way to a peer.
type Offered struct {
	Link ID     `json:"link"`
	Peer ID     `json:"peer"`
	Role string `json:"role"` // viewer, seed
}

// Peer is one peer of an introduction.
type Peer struct {
	Peer ID     `json:"peer"`
	Role string `json:"role"` // viewer, seed
}

// Introduce tells the receiver to offer to each peer named.
type Introduce struct {
	Swarm ID     `json:"swarm"`
	Peers []Peer `json:"peers"`
}

// Update says where a viewer is and what it would take.
type Update struct {
	Request   int    `json:"id,omitempty"`
	Swarm     ID     `json:"swarm"`
	Range     *Range `json:"range,omitempty"`
	Saturated bool   `json:"saturated"`
	Links     int    `json:"links"`
	Want      int    `json:"want"`
}

// Leave leaves a swarm.
type Leave struct {
	Request int `json:"id,omitempty"`
	Swarm   ID  `json:"swarm"`
}

// Signal is one message between two peers on the way to a link. To is set from client to tracker, From and Role from tracker
// to client.
//
// Large: the fields of one message of spec/tracker-protocol.md.
type Signal struct {
	Request   int     `json:"id,omitempty"`
	Swarm     ID      `json:"swarm"`
	To        ID      `json:"to,omitzero"`
	From      ID      `json:"from,omitzero"`
	Role      string  `json:"role,omitempty"` // viewer, seed
	Link      ID      `json:"link"`
	Kind      string  `json:"kind"`                       // offer, answer, candidate, end, fail
	SDP       string  `json:"sdp,omitempty"`              // offer, answer
	Plan      *Plan   `json:"plan,omitempty"`             // offer, answer
	Early     bool    `json:"early,omitempty"`            // offer: the answer may say something
	Wanted    []ID    `json:"wanted,omitempty"`           // offer: segments whose certificates may be among that
	Said      []Bytes `json:"said,omitempty"`             // answer: the first messages of its sender's control channel
	Candidate string  `json:"candidate,omitempty"`        // candidate
	Mid       string  `json:"sdp_mid,omitempty"`          // candidate
	MLine     int     `json:"sdp_m_line_index,omitempty"` // candidate
	Reason    string  `json:"reason,omitempty"`           // fail
}

// Stats are figures since the last Stats of the same swarm.
//
// Large: the fields of one message of spec/tracker-protocol.md.
type Stats struct {
	Request  int              `json:"id,omitempty"`
	Swarm    ID               `json:"swarm"`
	Interval int64            `json:"interval_ms"`
	Bytes    map[string]int64 `json:"bytes,omitempty"`    // keys StatBytes
	Uploaded map[string]int64 `json:"uploaded,omitempty"` // keys metric.Paths
	Segments map[string]int64 `json:"segments,omitempty"` // keys metric.Sources
	Parts    map[string]int64 `json:"parts,omitempty"`    // keys StatParts; part of Segments, too
	Reasons  map[string]int64 `json:"reasons,omitempty"`  // keys metric.Reasons; others are skipped
	// UnlistedQuery counts segments that a seed does not know, by the names of the parameters in their names.
	UnlistedQuery  map[string]int64 `json:"unlisted_query,omitempty"`
	DuplicateBytes int64            `json:"duplicate_bytes,omitempty"`
	WastedBytes    int64            `json:"wasted_bytes,omitempty"`
	RejectedBytes  int64            `json:"rejected_bytes,omitempty"`
	Lanes          map[string]int64 `json:"lanes,omitempty"` // uploaded, keys metric.Lanes
	Pacing         *Pacing          `json:"pacing,omitempty"`
	// Bytes of the background lane, and those of them that were fetched ahead and not played (part of WastedBytes, too).
	PrefetchedBytes int64            `json:"prefetched_bytes,omitempty"`
	PrefetchWasted  int64            `json:"prefetch_wasted_bytes,omitempty"`
	Promotions      int64            `json:"promotions,omitempty"` // background requests that became foreground
	DiskBytes       int64            `json:"disk_bytes,omitempty"` // of segments that were read from the viewer's own disk
	Stalls          int64            `json:"stalls,omitempty"`
	StallMs         int64            `json:"stall_ms,omitempty"`
	PlayedMs        int64            `json:"played_ms,omitempty"`
	PlayedBits      int64            `json:"played_bits,omitempty"`
	Switches        int64            `json:"switches,omitempty"`
	StartupMs       int64            `json:"startup_ms,omitempty"`
	LiveMs          int64            `json:"live_ms,omitempty"`  // played of a live stream with a clock
	LiveLag         int64            `json:"live_lag,omitempty"` // seconds behind that clock, added up over LiveMs
	Contradictions  int64            `json:"contradictions,omitempty"`
	Disputes        int64            `json:"disputes,omitempty"`      // contradictions of two certificates
	LinkFailures    map[string]int64 `json:"link_failures,omitempty"` // keys FailReasons
	// Peers are the figures of single peers. They are claims: a peer may report other figures of this viewer.
	Peers map[ID]PeerStats `json:"peers,omitempty"`
}

// PeerStats is what a viewer says of one peer.
type PeerStats struct {
	In       int64 `json:"in,omitempty"`  // verified bytes from it, direct
	Out      int64 `json:"out,omitempty"` // bytes to it
	RelayIn  int64 `json:"relay_in,omitempty"`
	RelayOut int64 `json:"relay_out,omitempty"`
	Blame    int64 `json:"blame,omitempty"` // times that it was banned for what it did
}

// Pacing is how a viewer's sending stands under the controller of the background transport; nil where nothing was sent since the
// last report.
type Pacing struct {
	Queuing   int64 `json:"queuing_us"`
	Base      int64 `json:"base_us"`
	Target    int64 `json:"target_us"`
	Window    int64 `json:"window_bytes"`
	Rate      int64 `json:"rate"`                // bytes per second
	Yields    int64 `json:"yields,omitempty"`    // since the last report, as are
	Slowdowns int64 `json:"slowdowns,omitempty"` // these
}

// Ticket replaces the ticket of the welcome.
type Ticket struct {
	Ticket string `json:"ticket"`
}

// Keys replaces the verify keys.
type Keys struct {
	VerifyKeys []VerifyKey `json:"verify_keys"`
}

// SetServers replaces the ICE servers, for links made from then on: their credentials are fresh.
type SetServers struct {
	ICEServers []ICEServer `json:"ice_servers"`
	Expire     int64       `json:"credentials_expire_ms,omitempty"` // ms since the Unix epoch; 0: never
}

// Revoke adds revocations.
type Revoke struct {
	Revocations []Revocation `json:"revocations"`
}

// SetPolicy replaces the policy.
type SetPolicy struct {
	Policy Policy `json:"policy"`
}

// Reconnect asks the client to close and to come back, to any tracker, after a time.
type Reconnect struct {
	AfterMs int64 `json:"after_ms"`
}

// Error is a coded error with a sentence and a hint.
type Error struct {
	Request      int    `json:"id,omitempty"`
	Code         string `json:"code"`
	Message      string `json:"message"`
	Hint         string `json:"hint,omitempty"`
	RetryAfterMs int64  `json:"retry_after_ms,omitempty"`
}

// Unknown stands for a message of a type that this codec does not know; it is to be counted and ignored.
type Unknown struct{ Name string }

// Type implements Message.
func (*Hello) Type() string      { return "hello" }
func (*Welcome) Type() string    { return "welcome" }
func (*Join) Type() string       { return "join" }
func (*Joined) Type() string     { return "joined" }
func (*Introduce) Type() string  { return "introduce" }
func (*Update) Type() string     { return "update" }
func (*Leave) Type() string      { return "leave" }
func (*Signal) Type() string     { return "signal" }
func (*Stats) Type() string      { return "stats" }
func (*Ticket) Type() string     { return "ticket" }
func (*Keys) Type() string       { return "keys" }
func (*SetServers) Type() string { return "ice" }
func (*Revoke) Type() string     { return "revoke" }
func (*SetPolicy) Type() string  { return "policy" }
func (*Reconnect) Type() string  { return "reconnect" }
func (*Token) Type() string      { return "token" }
func (*Granted) Type() string    { return "granted" }
func (*Error) Type() string      { return "error" }
func (u *Unknown) Type() string  { return u.Name }

// The closed sets of spec/tracker-protocol.md. Treat as constants.
var (
	Types       = []string{"hello", "welcome", "join", "joined", "introduce", "update", "leave", "signal", "stats", "ticket", "keys", "ice", "revoke", "policy", "reconnect", "token", "granted", "error"}
	Roles       = []string{"full", "leech", "relay-only", "off"} // of a viewer
	PeerRoles   = []string{"viewer", "seed"}
	Kinds       = []string{"offer", "answer", "candidate", "end", "fail"}
	FailReasons = []string{"gone", "busy", "timeout", "lna-denied", "udp-blocked", "refused", "plan"}
	StatBytes   = []string{"origin", "seed", "peer", "peer_relay", "seed_relay"}
	StatParts   = []string{"origin", "seed", "peer", "hops", "lost"}
	Codes       = []string{
		"bad-message", "bad-version", "bad-site", "bad-origin", "bad-token", "token-required", "token-expired", "not-ready",
		"not-joined", "not-introduced", "bad-title", "rate-limited", "too-many-swarms", "too-many-sessions", "swarm-full", "draining", "overloaded",
		"replaced", "internal",
	}
)
