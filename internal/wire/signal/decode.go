package signal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/swarm"
)

// Decode reads a message of either direction. The error is always a *MalformedError. A message of a type that is not
// known comes back as *Unknown without an error.
func Decode(b []byte) (Message, error) {
	f, err := parseMessage(b)
	if err != nil {
		return nil, err
	}
	id := int(f.integer("id", false, 1, MaxRequestID))
	f.problem.Request = id
	name := f.text("type", true, 1, MaxType)
	var m Message
	if f.problem.Problem == "" {
		m = decodeType(name, id, f)
	}
	if f.problem.Problem != "" {
		return nil, f.problem
	}
	return m, nil
}

func decodeType(name string, id int, f fields) Message {
	switch name {
	case "hello":
		return &Hello{
			Request: id, Version: int(f.integer("version", true, 1, 255)), Client: f.text("client", false, 0, MaxClient),
			Site: f.text("site", false, 0, MaxSite), Token: f.text("token", false, 0, MaxToken), Ticket: f.text("ticket", false, 0, MaxTicket),
		}
	case "welcome":
		return decodeWelcome(id, f)
	case "join":
		return decodeJoin(id, f)
	case "joined":
		return decodeJoined(id, f)
	case "introduce":
		m := &Introduce{Peers: []Peer{}, Swarm: f.id("swarm", true)}
		f.objects("peers", true, MaxPeers, func(p fields) {
			m.Peers = append(m.Peers, Peer{Peer: p.id("peer", true), Role: p.oneOf("role", true, PeerRoles)})
		})
		return m
	case "update":
		return &Update{
			Request: id, Swarm: f.id("swarm", true), Range: decodeRange(f), Saturated: f.flag("saturated"),
			Links: int(f.integer("links", false, 0, 1024)), Want: int(f.integer("want", false, 0, MaxWant)),
		}
	case "leave":
		return &Leave{Request: id, Swarm: f.id("swarm", true)}
	case "signal":
		return decodeSignal(id, f)
	case "stats":
		return decodeStats(id, f)
	case "token":
		return &Token{Request: id, Token: f.text("token", true, 1, MaxToken)}
	case "granted":
		return &Granted{Request: id, TokenExpires: f.integer("token_expires_ms", true, 1, MaxInteger)}
	}
	return decodePushed(name, id, f)
}

func decodePushed(name string, id int, f fields) Message {
	switch name {
	case "ticket":
		return &Ticket{Ticket: f.text("ticket", true, 1, MaxTicket)}
	case "keys":
		return &Keys{VerifyKeys: decodeKeys(f)}
	case "ice":
		return &SetServers{ICEServers: decodeServers(f), Expire: f.integer("credentials_expire_ms", false, 0, MaxInteger)}
	case "revoke":
		return &Revoke{Revocations: decodeRevocations(f)}
	case "policy":
		return &SetPolicy{Policy: decodePolicy(f)}
	case "reconnect":
		return &Reconnect{AfterMs: f.integer("after_ms", true, 0, MaxInteger)}
	case "error":
		return &Error{
			Request: id, Code: f.text("code", true, 1, MaxType), Message: f.text("message", true, 0, MaxText),
			Hint: f.text("hint", false, 0, MaxText), RetryAfterMs: f.integer("retry_after_ms", false, 0, MaxInteger),
		}
	}
	return &Unknown{Name: name}
}

func decodeWelcome(id int, f fields) Message {
	m := &Welcome{
		ICEServers: decodeServers(f),
		Request:    id, Session: f.id("session", true), Ticket: f.text("ticket", true, 1, MaxTicket), Resumed: f.flag("resumed"),
		ServerTime: f.integer("server_time_ms", true, 0, MaxInteger), Expire: f.integer("credentials_expire_ms", false, 0, MaxInteger),
		VerifyKeys: decodeKeys(f), Revocations: decodeRevocations(f), Policy: decodePolicy(f),
		TokenExpires: f.integer("token_expires_ms", false, 0, MaxInteger),
		UpdateEvery:  f.integer("update_interval_ms", true, MinInterval, MaxInterval), StatsInterval: f.integer("stats_interval_ms", true, MinInterval, MaxInterval),
	}
	if _, ok := f.object("site", true); ok {
		raw, _ := f.members.get("site")
		m.Site = bytes.Clone(raw) // the message is the caller's
	}
	if l, ok := f.object("limits", true); ok {
		m.Limits = Limits{
			MessageBytes: l.count("message_bytes"), Swarms: l.count("swarms"),
			MessagesPerSecond: l.count("messages_per_second"), Links: l.count("links"),
		}
	}
	return m
}

func decodeServers(f fields) []ICEServer {
	all := []ICEServer{}
	f.objects("ice_servers", true, MaxServers, func(s fields) { all = append(all, decodeServer(s)) })
	return all
}

func decodeServer(f fields) ICEServer {
	s := ICEServer{URLs: []string{}, Username: f.text("username", false, 0, MaxText), Credential: f.text("credential", false, 0, MaxText)}
	f.list("urls", true, MaxURLs, func(_ int, raw json.RawMessage) {
		one := fields{path: f.path, members: members{{"urls", raw}}, problem: f.problem}
		s.URLs = append(s.URLs, one.text("urls", true, 1, MaxText))
	})
	return s
}

// count reads a number that has to be there, and that Go holds as an int.
func (f fields) count(name string) int { return int(f.integer(name, true, 0, MaxRequestID)) }

func decodeJoin(id int, f fields) Message {
	m := &Join{
		Request: id, Title: f.text("title", true, 1, MaxTitle), Manifest: f.text("manifest", false, 0, MaxManifest),
		Role: f.oneOf("role", true, Roles), Want: int(f.integer("want", false, 0, MaxWant)), Range: decodeRange(f),
	}
	f.objects("offers", false, MaxOffers, func(o fields) {
		m.Offers = append(m.Offers, Offer{
			Link: o.id("link", true), SDP: o.text("sdp", true, 1, MaxSDP), Plan: decodePlan(o), Early: o.flag("early"), Wanted: decodeWanted(o),
		})
	})
	m.Ahead = f.flag("ahead")
	return m
}

func decodeJoined(id int, f fields) Message {
	m := &Joined{Request: id, Swarm: f.id("swarm", true), Viewers: f.count("viewers"), Seeds: f.count("seeds")}
	f.objects("offered", false, MaxOffers, func(o fields) {
		m.Offered = append(m.Offered, Offered{Link: o.id("link", true), Peer: o.id("peer", true), Role: o.oneOf("role", true, PeerRoles)})
	})
	return m
}

func decodeRange(f fields) *Range {
	r, ok := f.object("range", false)
	if !ok {
		return nil
	}
	out := &Range{From: r.integer("from_ms", true, 0, MaxInteger), To: r.integer("to_ms", true, 0, MaxInteger)}
	if out.To < out.From {
		r.fail("to_ms", "is before from_ms")
	}
	return out
}

func decodePlan(f fields) *Plan {
	p, ok := f.object("plan", true)
	if !ok {
		return nil
	}
	return &Plan{
		V: int(p.integer("v", true, 1, 255)), Data: int(p.integer("data", true, 1, 8)), Message: int(p.integer("message", true, 1200, 65535)),
	}
}

func decodeSignal(id int, f fields) Message {
	m := &Signal{
		Request: id, Swarm: f.id("swarm", true), To: f.id("to", false), From: f.id("from", false), Role: f.oneOf("role", false, PeerRoles),
		Link: f.id("link", true), Kind: f.oneOf("kind", true, Kinds),
	}
	if m.To.IsZero() == m.From.IsZero() {
		f.fail("to", "or from must be there, and only one of them")
	}
	if !m.From.IsZero() && m.Role == "" {
		f.fail("role", "is missing")
	}
	switch m.Kind {
	case "offer":
		m.SDP, m.Plan, m.Early = f.text("sdp", true, 1, MaxSDP), decodePlan(f), f.flag("early")
		m.Wanted = decodeWanted(f)
	case "answer":
		m.SDP, m.Plan, m.Said = f.text("sdp", true, 1, MaxSDP), decodePlan(f), decodeSaid(f)
	case "candidate":
		m.Candidate, m.Mid = f.text("candidate", true, 1, MaxCandidate), f.text("sdp_mid", false, 0, MaxMid)
		m.MLine = int(f.integer("sdp_m_line_index", false, 0, 255))
	case "fail":
		m.Reason = f.oneOf("reason", true, FailReasons)
	}
	return m
}

// decodeWanted reads the segments that an offer names.
func decodeWanted(f fields) []ID {
	var wanted []ID
	f.each("wanted", MaxWanted, func(one fields, name string) { wanted = append(wanted, one.id(name, true)) })
	return wanted
}

// decodeSaid reads the control messages of an answer.
func decodeSaid(f fields) []Bytes {
	var said []Bytes
	f.each("said", MaxSaid, func(one fields, name string) {
		var b Bytes
		if s := one.text(name, true, 1, (MaxSaidBytes*4+2)/3); s != "" && b.UnmarshalText([]byte(s)) != nil {
			f.fail(name, "is not base64url without padding")
		}
		said = append(said, b)
	})
	return said
}

func decodeStats(id int, f fields) Message {
	n := func(name string) int64 { return f.integer(name, false, 0, MaxInteger) }
	return &Stats{
		Request: id, Swarm: f.id("swarm", true), Interval: f.integer("interval_ms", true, 0, MaxInteger),
		Bytes: f.counts("bytes", StatBytes), Uploaded: f.counts("uploaded", metric.Paths),
		Segments: f.counts("segments", metric.Sources), Parts: f.counts("parts", StatParts), Reasons: f.counts("reasons", metric.Reasons),
		UnlistedQuery: decodeParameters(f), DuplicateBytes: n("duplicate_bytes"), WastedBytes: n("wasted_bytes"), RejectedBytes: n("rejected_bytes"),
		Lanes: f.counts("lanes", metric.Lanes), Pacing: decodePacing(f),
		PrefetchedBytes: n("prefetched_bytes"), PrefetchWasted: n("prefetch_wasted_bytes"), Promotions: n("promotions"), DiskBytes: n("disk_bytes"),
		Stalls: n("stalls"), StallMs: n("stall_ms"), PlayedMs: n("played_ms"), PlayedBits: n("played_bits"), Switches: n("switches"),
		StartupMs: n("startup_ms"), LiveMs: n("live_ms"), LiveLag: n("live_lag"), Contradictions: n("contradictions"), Disputes: n("disputes"), LinkFailures: f.counts("link_failures", FailReasons),
		Peers: decodePeerStats(f),
	}
}

// decodeParameters reads counts by names of query parameters.
func decodeParameters(f fields) map[string]int64 {
	all, ok := f.table("unlisted_query", MaxParameters)
	if !ok {
		return nil
	}
	out := make(map[string]int64, len(all.members))
	for _, m := range all.members {
		if !IsParameter(m.name) {
			f.fail("unlisted_query", "has a name that is no query parameter of 1 to "+strconv.Itoa(maxParameter)+" bytes")
			return nil
		}
		out[m.name] = all.integer(m.name, true, 0, MaxInteger)
	}
	return out
}

// IsParameter says whether a text may be told as the name of a query parameter.
func IsParameter(s string) bool {
	return s != "" && len(s) <= maxParameter && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._~%-", r)
	})
}

// decodePeerStats reads what a viewer says of single peers, by their IDs.
func decodePeerStats(f fields) map[ID]PeerStats {
	all, ok := f.table("peers", MaxStatPeers)
	if !ok {
		return nil
	}
	out := make(map[ID]PeerStats, len(all.members))
	for _, m := range all.members {
		id, err := swarm.ParseID(m.name)
		if err != nil {
			f.fail("peers", "has a name that is not 128 bit of base64url")
			return nil
		}
		p, ok := f.open("peers.peer", m.value)
		if !ok {
			return nil
		}
		n := func(name string) int64 { return p.integer(name, false, 0, MaxInteger) }
		out[id] = PeerStats{In: n("in"), Out: n("out"), RelayIn: n("relay_in"), RelayOut: n("relay_out"), Blame: n("blame")}
	}
	return out
}

func decodePacing(f fields) *Pacing {
	p, ok := f.object("pacing", false)
	if !ok {
		return nil
	}
	n := func(name string, required bool) int64 { return p.integer(name, required, 0, MaxInteger) }
	return &Pacing{
		Queuing: n("queuing_us", true), Base: n("base_us", true), Target: n("target_us", true), Window: n("window_bytes", true), Rate: n("rate", true),
		Yields: n("yields", false), Slowdowns: n("slowdowns", false),
	}
}

func decodeKeys(f fields) []VerifyKey {
	out := []VerifyKey{}
	f.objects("verify_keys", true, MaxKeys, func(k fields) {
		alg := int(k.integer("alg", true, 1, 255))
		if alg == AlgSeed || alg == AlgPackager { // keys of other algorithms are for later versions: skipped
			out = append(out, VerifyKey{KeyID: k.binary("key_id", true, 8), Alg: alg, Key: k.binary("key", true, 65)})
		}
	})
	return out
}

func decodeRevocations(f fields) []Revocation {
	out := []Revocation{}
	f.objects("revocations", true, MaxRevoked, func(r fields) {
		v := Revocation{KeyID: r.binary("key_id", false, 8), Site: r.text("site", false, 1, MaxSite)}
		if (v.KeyID == nil) == (v.Site == "") {
			r.fail("key_id", "or site must be there, and only one of them")
		}
		if v.Site != "" {
			v.Prefix, v.MinIssuedAt = r.text("prefix", true, 1, MaxPrefix), r.integer("min_issued_at", true, 1, MaxInteger)
		}
		out = append(out, v)
	})
	return out
}

func decodePolicy(f fields) Policy {
	p, ok := f.object("policy", true)
	if !ok {
		return Policy{}
	}
	return Policy{
		Role: p.oneOf("role", true, Roles), ControlGroup: p.flag("control_group"), Prefetch: p.flag("prefetch"),
		WasteBytes: p.integer("waste_bytes", false, 0, MaxInteger), MaxLinks: int(p.integer("max_links", true, 0, 1024)),
		Relay: p.oneOf("relay", true, []string{"allow", "never"}), Local: p.oneOf("local", true, []string{"ask", "never", "if-granted"}),
		SignedManifests: p.oneOf("signed_manifests", true, []string{"off", "share"}),
		UploadKbps:      p.integer("upload_kbps", false, 0, MaxInteger),
		DiskBytes:       p.integer("disk_bytes", false, 0, MaxInteger),
		UnknownLine:     cmp.Or(p.oneOf("unknown_line", false, []string{"leech", "full"}), "leech"),
	}
}
