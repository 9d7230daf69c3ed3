package viewer

import (
	"encoding/hex"
	"maps"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Source is where bytes came from: the closed set of spec/metrics.md.
type Source string

// The sources.
const (
	FromOrigin Source = "origin"
	FromSeed   Source = "seed"
	FromPeer   Source = "peer"
)

// sourceFrom is what bytes of a peer count as.
func sourceFrom(role schedule.Role) Source {
	if role == schedule.Seed {
		return FromSeed
	}
	return FromPeer
}

// ledger counts what spec/tracker-protocol.md ("Statistics") names: since the last report, and in all.
type ledger struct{ delta, total signal.Stats }

func (l *ledger) both(f func(*signal.Stats)) {
	f(&l.delta)
	f(&l.total)
}

// take returns what was counted since the last take.
func (l *ledger) take() signal.Stats {
	d := l.delta
	l.delta = signal.Stats{}
	return d
}

// sum is a copy of everything so far.
func (l *ledger) sum() signal.Stats {
	t := l.total
	t.Lanes = maps.Clone(t.Lanes)
	t.Bytes, t.Uploaded, t.Segments, t.Parts = maps.Clone(t.Bytes), maps.Clone(t.Uploaded), maps.Clone(t.Segments), maps.Clone(t.Parts)
	t.Reasons, t.LinkFailures = maps.Clone(t.Reasons), maps.Clone(t.LinkFailures)
	return t
}

func bump(m *map[string]int64, key string, n int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	(*m)[key] += n
}

// received counts verified bytes from a peer.
func (l *ledger) received(from string, role schedule.Role, path transfer.Path, n int) {
	if role == schedule.Viewer {
		l.peer(from, func(p *signal.PeerStats) { *either(path, &p.In, &p.RelayIn) += int64(n) })
	}
	key := string(sourceFrom(role))
	if path == transfer.Relay {
		key += "_relay"
	}
	l.both(func(s *signal.Stats) { bump(&s.Bytes, key, int64(n)) })
}

// played counts bytes of the origin that went to the player.
func (l *ledger) played(n int) {
	l.both(func(s *signal.Stats) { bump(&s.Bytes, string(FromOrigin), int64(n)) })
}

func (l *ledger) uploaded(to string, path transfer.Path, lane peer.Lane, n int) {
	l.peer(to, func(p *signal.PeerStats) { *either(path, &p.Out, &p.RelayOut) += int64(n) })
	l.both(func(s *signal.Stats) {
		bump(&s.Uploaded, string(path), int64(n))
		bump(&s.Lanes, metric.Lanes[lane], int64(n))
	})
}

// blamed notes that a peer was banned for what it did.
func (l *ledger) blamed(id string) { l.peer(id, func(p *signal.PeerStats) { p.Blame++ }) }

// peer notes what is to be said of one peer. Of more than a report has room for the first are told.
func (l *ledger) peer(id string, f func(*signal.PeerStats)) {
	var key signal.ID
	if b, err := hex.DecodeString(id); err != nil || copy(key[:], b) != len(key) {
		return
	}
	if l.delta.Peers == nil {
		l.delta.Peers = map[signal.ID]signal.PeerStats{}
	}
	p, known := l.delta.Peers[key]
	if !known && len(l.delta.Peers) >= signal.MaxStatPeers {
		return
	}
	f(&p)
	l.delta.Peers[key] = p
}

// either is what counts the bytes of a path.
func either(path transfer.Path, direct, relay *int64) *int64 {
	if path == transfer.Relay {
		return relay
	}
	return direct
}

// segment counts a segment that went to the player; reason is empty when every byte came from viewers.
func (l *ledger) segment(from Source, reason schedule.Reason) {
	l.both(func(s *signal.Stats) {
		bump(&s.Segments, string(from), 1)
		if reason != "" {
			bump(&s.Reasons, string(reason), 1)
		}
	})
}

// part counts a part that went to the player, which counts as a segment, too. The source was so many hops away, and so many parents
// were lost since the part before.
func (l *ledger) part(from Source, hops, lost int) {
	l.both(func(s *signal.Stats) {
		bump(&s.Parts, string(from), 1)
		bump(&s.Parts, "hops", int64(hops))
		bump(&s.Parts, "lost", int64(lost))
	})
}

func (l *ledger) linkFailed(reason string) {
	l.both(func(s *signal.Stats) { bump(&s.LinkFailures, reason, 1) })
}

// came is how many bytes came in all.
func (l *ledger) came() (n int64) {
	for _, k := range l.total.Bytes {
		n += k
	}
	return n
}

// prefetched counts bytes that came in the background; lost those of them that were fetched ahead and are not played.
func (l *ledger) prefetched(n int) { l.both(func(s *signal.Stats) { s.PrefetchedBytes += int64(n) }) }
func (l *ledger) lost(n int)       { l.both(func(s *signal.Stats) { s.PrefetchWasted += int64(n) }) }
func (l *ledger) promoted(n int)   { l.both(func(s *signal.Stats) { s.Promotions += int64(n) }) }

// unlisted counts a segment that a seed does not know, by the parameters in its name.
func (l *ledger) unlisted(parameters []string) {
	l.both(func(s *signal.Stats) {
		for _, name := range parameters {
			if _, known := s.UnlistedQuery[name]; signal.IsParameter(name) && (known || len(s.UnlistedQuery) < signal.MaxParameters) {
				bump(&s.UnlistedQuery, name, 1)
			}
		}
	})
}

func (l *ledger) duplicate(n int) { l.both(func(s *signal.Stats) { s.DuplicateBytes += int64(n) }) }
func (l *ledger) wasted(n int)    { l.both(func(s *signal.Stats) { s.WastedBytes += int64(n) }) }
func (l *ledger) rejected(n int)  { l.both(func(s *signal.Stats) { s.RejectedBytes += int64(n) }) }
func (l *ledger) dispute()        { l.both(func(s *signal.Stats) { s.Contradictions++; s.Disputes++ }) }
func (l *ledger) contradiction()  { l.both(func(s *signal.Stats) { s.Contradictions++ }) }
