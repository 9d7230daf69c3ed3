package schedule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// random makes an input as a viewer in the midst of things has it: values near the edges of the rules.
func random(r *rand.Rand) Input {
	pick := func(vs ...int64) int64 { return vs[r.IntN(len(vs))] }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	now := pick(0, 500_000, 20_000_000, 90_000_000)
	in := Input{NowUs: now, Self: fmt.Sprintf("%032x", r.Uint64()), Policy: DefaultPolicy, Linking: chance(50), SeedLinking: chance(30), CreditUs: pick(-1, -1, 0, 300_000), SlowCreditUs: pick(0, 300_000, 2_000_000)}
	in.Policy.Background = chance(30)
	in.Policy.PieceCap = int(pick(0, 5, 20, 128))
	if chance(5) {
		in.Off = Reasons[r.IntN(len(Reasons))]
	}
	for range r.IntN(5) {
		in.Segments = append(in.Segments, randomSegment(r, now))
	}
	for range r.IntN(7) {
		in.Peers = append(in.Peers, randomPeer(r, now, in.Segments))
	}
	slices.SortFunc(in.Peers, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	in.Peers = slices.CompactFunc(in.Peers, func(a, b Peer) bool { return a.ID == b.ID })
	for _, s := range in.Segments {
		for n := range s.Pieces {
			for _, p := range in.Peers {
				if _, have := slices.BinarySearch(s.Have, n); have || !chance(8) {
					continue
				}
				sent := now - pick(0, 100_000, 450_000, 2_000_000)
				in.Requests = append(in.Requests, Request{s.ID, n, p.ID, Lane(pick(0, 0, 1)), sent, sent + pick(0, 50_000)})
			}
		}
	}
	return in
}

func randomPieces(r *rand.Rand, of int) []int {
	out := []int{}
	share := r.IntN(110)
	for n := range of {
		if r.IntN(100) < share {
			out = append(out, n)
		}
	}
	return out
}

func randomSegment(r *rand.Rand, now int64) Segment {
	pick := func(vs ...int64) int64 { return vs[r.IntN(len(vs))] }
	s := Segment{
		ID: fmt.Sprintf("%032x", r.Uint64()), DurationUs: pick(2_000_000, 4_004_000, 6_000_001), OriginUs: pick(-1, -1, 0, 300_000, 1_000_003),
		DeadlineUs: now + pick(-1_000_000, 0, 500_000, 1_400_000, 2_900_000, 6_006_000, 9_000_000, 30_000_000),
		AskedUs:    max(-1, now-pick(0, 10, 999_999, 1_000_000, 1_600_000, 2_100_000, 4_100_000)), Certificate: CertHeld,
		CertAskedUs: -1, CertPeers: []string{}, Pieces: int(pick(1, 7, 40)), Origin: []Origin{OriginIdle, OriginIdle, OriginRunning, OriginFailed}[r.IntN(4)],
	}
	if r.IntN(4) == 0 {
		s.AskedUs = -1
	}
	if r.IntN(2) == 0 {
		s.Certificate = []Certification{CertNone, CertAsked, CertRefused}[r.IntN(3)]
		s.Pieces = 0
		if s.Certificate != CertNone || r.IntN(2) == 0 {
			s.CertAskedUs = max(0, now-pick(0, 499_999, 500_001, 1_100_000, 2_000_000))
			s.CertPeers = []string{fmt.Sprintf("%032x", r.IntN(9))}
		}
	}
	s.Have = randomPieces(r, s.Pieces)
	return s
}

func randomPeer(r *rand.Rand, now int64, segments []Segment) Peer {
	pick := func(vs ...int64) int64 { return vs[r.IntN(len(vs))] }
	p := Peer{
		ID: fmt.Sprintf("%032x", r.Uint64()), Role: Viewer, Rate: pick(0, 40_000, 65_536, 300_007, 2_000_000), RTTUs: pick(0, 900, 30_000, 200_000),
		Slots: int(pick(0, 1, 3, 32)), Queued: pick(0, 0, 16384, 131_072, 524_288), Holds: map[string]Holding{}, Heard: map[string]int64{},
	}
	if r.IntN(3) == 0 {
		p.Role, p.OnDemand = Seed, r.IntN(4) > 0
	}
	if r.IntN(6) == 0 {
		p.ID = fmt.Sprintf("%032x", r.IntN(9))
	}
	if r.IntN(5) == 0 {
		p.StalledUntilUs = now + pick(-5, 0, 1, 2_000_000)
	}
	if r.IntN(5) == 0 {
		p.BehindUntilUs = now + pick(-5, 0, 1, 2_000_000)
	}
	for _, s := range segments {
		switch r.IntN(4) {
		case 0:
			p.Holds[s.ID] = Holding{Complete: true}
		case 1, 2:
			p.Holds[s.ID] = Holding{Pieces: randomPieces(r, s.Pieces)}
			if r.IntN(2) == 0 {
				p.Heard[s.ID] = now - pick(0, 400_000, 1_500_000)
			}
		}
	}
	return p
}

const runs = 3000

func TestWhatHoldsOfEveryDecision(t *testing.T) {
	for seed := range uint64(runs) {
		in := random(rand.New(rand.NewPCG(seed, 7)))
		before, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		actions := Decide(in)
		after, err := json.Marshal(in)
		if err != nil || string(before) != string(after) {
			t.Fatalf("input %d was changed (%v)", seed, err)
		}
		if !reflect.DeepEqual(actions, Decide(in)) {
			t.Fatalf("input %d: decided otherwise the second time", seed)
		}
		if problem := audit(in, actions); problem != "" {
			t.Fatalf("input %d: %s\n%s\n%+v", seed, problem, before, actions)
		}
	}
}

// audit looks for what no decision may do, by the input and the actions alone.
func audit(in Input, actions []Action) string {
	type place struct {
		segment string
		piece   int
	}
	flying := map[place][]string{}
	for _, r := range in.Requests {
		flying[place{r.Segment, r.Piece}] = append(flying[place{r.Segment, r.Piece}], r.Peer)
	}
	inFlight, canceled := len(in.Requests), map[string]bool{}
	started := map[string]bool{}
	if problem := auditHeld(in, actions); problem != "" {
		return problem
	}
	for i, a := range actions {
		at := place{a.Segment, a.Piece}
		switch a.Type {
		case DoCancel:
			inFlight--
			canceled[a.Peer] = true
			flying[at] = slices.DeleteFunc(flying[at], func(p string) bool { return p == a.Peer })
		case DoRequest:
			if problem := auditRequest(in, a, flying[at], canceled); problem != "" {
				return problem
			}
			inFlight++
			flying[at] = append(flying[at], a.Peer)
			if inFlight > in.Policy.PieceCap {
				return fmt.Sprintf("%d pieces in flight", inFlight)
			}
		case DoOrigin:
			s := segmentOf(in, a.Segment)
			if started[a.Segment] || s.Origin != OriginIdle || s.AskedUs < 0 || !slices.Contains(Reasons, Reason(a.Why)) {
				return fmt.Sprintf("origin of %+v for %s", s, a.Why)
			}
			started[a.Segment] = true
		case DoFail:
			s := segmentOf(in, a.Segment)
			if s.AskedUs < 0 || s.Origin != OriginFailed || slices.ContainsFunc(actions, func(b Action) bool { return b.Type == DoRequest && b.Segment == s.ID }) {
				return fmt.Sprintf("%+v is given up", s)
			}
		case DoWake:
			if i != len(actions)-1 || a.AtUs <= in.NowUs {
				return "a wake that is not last, or not ahead"
			}
		}
	}
	return ""
}

// auditHeld looks for what is held on hope: a request that waits for no peer that has said that it holds the segment and for no
// seed; for longer than requests may wait until a piece is verified, or then for holders that send next to nothing; or with less time
// left than is safe. What a seed has been asked for in full is a rescue.
func auditHeld(in Input, actions []Action) string {
	for i := range in.Segments {
		s := &in.Segments[i]
		started := slices.ContainsFunc(actions, func(a Action) bool { return a.Type == DoOrigin && a.Segment == s.ID })
		if s.AskedUs < 0 || s.Origin != OriginIdle || s.complete() || started {
			continue
		}
		reason := in.SeedLinking || slices.ContainsFunc(in.Peers, func(p Peer) bool { _, said := p.Holds[s.ID]; return said || p.OnDemand })
		credit, sum := in.CreditUs, 0.0
		for _, p := range in.Peers {
			if _, said := p.Holds[s.ID]; said || p.OnDemand {
				sum += float64(p.Rate)
			}
		}
		if slow := sum == 0 || sum*float64(s.DurationUs)/1e6 < float64(s.Pieces*pieceSize)/32-1; credit < 0 && slow && !rescued(in, actions, s) {
			credit = in.SlowCreditUs
		}
		wake := slices.ContainsFunc(actions, func(a Action) bool {
			return a.Type == DoWake && (credit < 0 || a.AtUs <= in.NowUs+credit)
		})
		if !reason || credit == 0 || !wake || s.DeadlineUs-in.NowUs < s.UrgentWindow(in.Policy.UrgentPermille)/2 {
			return fmt.Sprintf("held: %+v, %t, %t", s, reason, wake)
		}
	}
	return ""
}

// rescued says whether one seed brings all that is not in hand.
func rescued(in Input, actions []Action, s *Segment) bool {
	return slices.ContainsFunc(in.Peers, func(p Peer) bool {
		asked := map[int]bool{}
		for _, r := range in.Requests {
			asked[r.Piece] = asked[r.Piece] || r.Segment == s.ID && r.Peer == p.ID
		}
		for _, a := range actions {
			asked[a.Piece] = asked[a.Piece] || a.Type == DoRequest && a.Segment == s.ID && a.Peer == p.ID
		}
		for n := range s.Pieces {
			if _, have := slices.BinarySearch(s.Have, n); !have && !asked[n] {
				return false
			}
		}
		return p.Role == Seed
	})
}

func auditRequest(in Input, a Action, flying []string, canceled map[string]bool) string {
	s := segmentOf(in, a.Segment)
	if slices.Contains(flying, a.Peer) {
		return "a piece asked twice from one peer"
	}
	if len(flying) > 0 {
		return fmt.Sprintf("piece %d is in flight already", a.Piece)
	}
	if slices.Contains(s.Have, a.Piece) || a.Piece >= s.Pieces || s.Certificate != CertHeld {
		return fmt.Sprintf("piece %d of %+v asked for", a.Piece, s)
	}
	if (a.Lane == Background) != (s.AskedUs < 0) || in.Off != "" {
		return "wrong lane, or asked while off"
	}
	for _, p := range in.Peers {
		if p.ID != a.Peer {
			continue
		}
		if p.StalledUntilUs > in.NowUs || canceled[p.ID] {
			return "asked a stalled peer"
		}
		if a.Lane == Background && p.BehindUntilUs > in.NowUs {
			return "asked a peer in the background that is left alone there"
		}
		if h, ok := p.Holds[a.Segment]; p.Slots <= 0 || ok && !h.has(a.Piece) || !ok && !p.OnDemand {
			return "asked a peer that has no slot or has it not"
		}
		return ""
	}
	return "asked a peer that is not there"
}

func segmentOf(in Input, id string) Segment {
	i := slices.IndexFunc(in.Segments, func(s Segment) bool { return s.ID == id })
	if i < 0 {
		return Segment{}
	}
	return in.Segments[i]
}

func TestRank(t *testing.T) {
	if Rank("AB", 1, "cd") != Rank("ab", 1, "CD") {
		t.Error("digits in upper case are the same bytes")
	}
	if Rank("ab", 1, "cd") == Rank("ab", 2, "cd") || Rank("ab", 1, "cd") == Rank("ab", 256, "cd") {
		t.Error("pieces do not enter")
	}
}

// BenchmarkDecide is a viewer with 30 peers, four segments of 128 pieces each, in the midst of things.
func BenchmarkDecide(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	in := Input{NowUs: 1, Self: "ff", Policy: DefaultPolicy}
	for range 4 {
		s := randomSegment(r, 1)
		s.Certificate, s.Pieces, s.AskedUs, s.DeadlineUs, s.Origin, s.Have = CertHeld, 128, 0, 30_000_000, OriginIdle, nil
		in.Segments = append(in.Segments, s)
	}
	for range 30 {
		in.Peers = append(in.Peers, randomPeer(r, 1, in.Segments))
	}
	slices.SortFunc(in.Peers, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	for b.Loop() {
		Decide(in)
	}
}
