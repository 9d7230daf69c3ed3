package load

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// measured is a run of an arm and a peer that say what the test sets.
func measured() (u *run, arm, peer *Arm) {
	arm, peer = &Arm{Name: "arm-1", gone: make(chan struct{})}, &Arm{Name: PeerName, gone: make(chan struct{})}
	u = &run{Runner: &Runner{}, arms: []*Arm{arm}, peer: peer, total: NewDelays()}
	u.second.Store(NewDelays())
	return u, arm, peer
}

// TestAnArmThatStandsStillSpoilsItsSeconds: what it did before it was suspended does not go on.
func TestAnArmThatStandsStillSpoilsItsSeconds(t *testing.T) {
	u, arm, _ := measured()
	s := newSampler(u)
	var spoiled []bool
	for second := 1; second <= 12; second++ {
		if second < 5 || second > 9 {
			arm.statistics = armwire.StatisticsBody{At: int64(second) * 1e6}
		}
		one := s.sample(time.Unix(int64(second), 0))
		spoiled = append(spoiled, slices.Contains(one.Spoiled, "an arm said nothing"))
	}
	// Those of seconds 5 to 9 are missing. One may be late.
	want := []bool{false, false, false, false, false, true, true, true, true, false, false, false}
	if !slices.Equal(spoiled, want) {
		t.Errorf("spoiled %v, want %v", spoiled, want)
	}
}

// chunk is what an arm tells of a second in which so many chunks came so late.
func chunk(t *testing.T, n int64, late time.Duration) armwire.Message {
	t.Helper()
	h := hdrhistogram.New(1, longestDelay.Microseconds(), digits)
	if err := h.RecordValues(late.Microseconds(), n); err != nil {
		t.Fatal(err)
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(armwire.StatisticsBody{At: 1, Delays: armwire.Delays{Chunk: string(b)}})
	if err != nil {
		t.Fatal(err)
	}
	return armwire.Message{Kind: armwire.Statistics, Body: body}
}

// TestDelaysAreOfWhenAllClientsAreThere: for 100 s clients come and all is well; for the 5 s that they are all there, no chunk is in time
// for a hundredth of the clients. Those are less than a hundredth of all chunks.
func TestDelaysAreOfWhenAllClientsAreThere(t *testing.T) {
	u, arm, _ := measured()
	u.Scenario.Groups = []Group{{RampUp: 100 * time.Second, Hold: 5 * time.Second, RampDown: 10 * time.Second}}
	u.began = time.Unix(1000, 0)
	s := newSampler(u)
	for second := 1; second <= 115; second++ {
		u.hear(arm, chunk(t, 980, 2*time.Millisecond))
		if second > 100 && second <= 105 {
			u.hear(arm, chunk(t, 20, 3*time.Second))
		}
		s.samples = append(s.samples, s.sample(u.began.Add(time.Duration(second)*time.Second)))
	}
	r := u.result(s, nil, false)
	if got := r.Figures["chunk_p99"]; got < 2.9 {
		t.Errorf("99 %% of the chunks are %v s late at the most", got)
	}
	// Groups of which one leaves before the other comes are never there together.
	u.Scenario.Groups = append(u.Scenario.Groups, Group{After: time.Hour, Hold: time.Second})
	s.whole = nil
	if one := s.sample(u.began.Add(104 * time.Second)); one.Whole || s.whole != nil {
		t.Error("all clients are there, though some come in an hour")
	}
	if got := u.result(s, nil, false).Figures["chunk_p99"]; got > 0.01 {
		t.Errorf("of the whole run: %v s", got)
	}
}

// TestANACKIsCountedOnce: the arm that sent it has counted it, and so has the peer that it came to.
func TestANACKIsCountedOnce(t *testing.T) {
	u, arm, peer := measured()
	s := newSampler(u)
	one := Sample{}
	for second := int64(1); second <= 2; second++ {
		arm.statistics = armwire.StatisticsBody{At: second * 1e6, Traffic: armwire.TrafficCounts{NACKs: 30 * second, ReceivedPackets: 1000 * second}}
		peer.statistics = armwire.StatisticsBody{At: second * 1e6, Traffic: armwire.TrafficCounts{NACKs: 30 * second, ReceivedPackets: 10 * second}}
		one = s.sample(time.Unix(second, 0))
	}
	r := u.result(s, nil, false)
	if one.NACKs != 30 || one.Packets != 1000 || r.Figures["nacks"] != 60 {
		t.Errorf("%d of %v packets in a second, %v in all", one.NACKs, one.Packets, r.Figures["nacks"])
	}
}

func TestClocksThatAreNotOne(t *testing.T) {
	began := time.Unix(1000, 0)
	for ahead, want := range map[time.Duration]bool{
		0: false, 30 * time.Millisecond: false, -30 * time.Millisecond: false, // within the way there or back, and a step of the pacer
		300 * time.Millisecond: true, -300 * time.Millisecond: true,
	} {
		got := apart(began.Add(25*time.Millisecond+ahead).UnixMicro(), began, 50*time.Millisecond)
		if (got != 0) != want || want && got != ahead {
			t.Errorf("a clock that is %s ahead is %s ahead", ahead, got)
		}
	}
}

// TestDelaysBetweenTwoClocksAreNotTold: a chunk of 200 ms is in time by the clock of an arm that is 300 ms behind.
func TestDelaysBetweenTwoClocksAreNotTold(t *testing.T) {
	for behavior, told := range map[Behavior]bool{Active: false, Mesh: false, Echo: true} {
		u, arm, _ := measured()
		u.Scenario = Scenario{Groups: []Group{{Behavior: behavior}}, Thresholds: []string{"chunk_p99<100ms"}}
		s := newSampler(u)
		u.hear(arm, chunk(t, 100, time.Microsecond))
		s.samples = append(s.samples, s.sample(time.Unix(1, 0)))
		r := u.result(s, map[string]time.Duration{"rack-2": -300 * time.Millisecond}, false)
		_, is := r.Figures["chunk_p99"]
		if is != told || (r.Verdict == Passed) != told || (r.Samples[0].Chunk > 0) != told || told != (r.Clocks == "") {
			t.Errorf("%s: %s, %v, %q", behavior, r.Verdict, r.Figures, r.Reasons)
		}
	}
}
