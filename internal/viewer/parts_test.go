package viewer

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestStoreForgetsTheLeastUsedAndNeverWhatIsPinned(t *testing.T) {
	var evicted []string
	s := newStore(100_000, func(id string) bool { return id == "pinned" }, func(id string) { evicted = append(evicted, id) })
	for _, id := range []string{"pinned", "a", "b"} {
		s.open(id, 30_000)
	}
	data := bytes.Repeat([]byte("x"), 16384)
	if !s.put("a", 0, data) || s.put("a", 0, data) || s.put("none", 0, data) {
		t.Error("a piece is put once, and into a segment that is open")
	}
	if p := s.piece("a", 0); &p[0] != &data[0] || s.piece("a", 1) != nil || s.piece("a", 2) != nil {
		t.Error("pieces are shared, and nothing is there that was not put")
	}
	s.open("c", 30_000) // b is older than a, which was just read
	if !slices.Equal(evicted, []string{"b"}) || s.bytes != 90_000 || !slices.Equal(s.ids(), []string{"pinned", "a", "c"}) {
		t.Errorf("evicted %v, %d bytes, %v", evicted, s.bytes, s.ids())
	}
	s.open("huge", 200_000)
	if s.get("pinned") == nil || len(s.ids()) != 2 {
		t.Errorf("%v are left", s.ids())
	}
	if e := s.open("whole", 16_000); e.complete() || !s.put("whole", 0, data[:16_000]) || !e.complete() || !slices.Equal(e.held(), []int{0}) {
		t.Error("one piece of one makes a whole")
	}
}

func TestHoldings(t *testing.T) {
	h := newHoldings()
	id := func(n byte) segment.ID { return segment.ID{n} }
	h.apply([]peer.HaveEntry{
		{Segment: id(1), State: peer.HoldsComplete, Pieces: 3},
		{Segment: id(2), State: peer.HoldsPartial, Pieces: 10, Bitmap: []byte{0b10100000, 0b01000000}},
	}, 77)
	one, two := "01000000000000000000000000000000", "02000000000000000000000000000000"
	if !h.holds[one].Complete || !slices.Equal(h.holds[two].Pieces, []int{0, 2, 9}) || h.heard[two] != 77 || h.heard[one] != 0 {
		t.Errorf("%+v %v", h.holds, h.heard)
	}
	if !h.remove(one, 1) || h.remove(one, 1) || h.remove(two, 3) || h.remove("none", 0) {
		t.Error("a piece is removed once, if it was announced")
	}
	if !slices.Equal(h.holds[one].Pieces, []int{0, 2}) {
		t.Errorf("%+v", h.holds[one])
	}
	h.apply([]peer.HaveEntry{{Segment: id(2), State: peer.HoldsNone}}, 78)
	if _, ok := h.holds[two]; ok || len(h.order) != 1 {
		t.Errorf("%+v %v", h.holds, h.order)
	}
	for i := range peer.MaxHaveSegments {
		h.apply([]peer.HaveEntry{{Segment: segment.ID{9, byte(i >> 8), byte(i)}, State: peer.HoldsComplete, Pieces: 1}}, 79)
	}
	if _, ok := h.holds[one]; ok || len(h.holds) != peer.MaxHaveSegments {
		t.Errorf("%d segments are remembered; the oldest is to go", len(h.holds))
	}
}

func TestDiagnosis(t *testing.T) {
	srflx := func(mapped, related string) string {
		return "candidate:1 1 udp 1 198.51.100.7 " + mapped + " typ srflx raddr 10.0.0.1 rport " + related
	}
	for name, c := range map[string]struct {
		ours    []string
		remote  bool
		servers bool
		fail    string
		cause   schedule.Reason
	}{
		"nothing known":           {fail: "timeout"},
		"no answer of any server": {ours: []string{"candidate:1 1 udp 1 10.0.0.1 5000 typ host"}, servers: true, fail: "udp-blocked", cause: schedule.UDPBlocked},
		"a relay":                 {ours: []string{"candidate:1 1 udp 1 198.51.100.9 5000 typ relay raddr 0.0.0.0 rport 0"}, servers: true, fail: "timeout"},
		"two ports for one":       {ours: []string{srflx("6000", "5000"), srflx("6001", "5000")}, servers: true, fail: "timeout", cause: schedule.SymmetricNAT},
		"both behind NAT":         {ours: []string{srflx("6000", "5000")}, remote: true, servers: true, fail: "timeout", cause: schedule.SymmetricNAT},
		"one behind NAT":          {ours: []string{srflx("6000", "5000")}, servers: true, fail: "timeout"},
	} {
		f := facts{remote: c.remote}
		for _, o := range c.ours {
			f.local(o, false)
		}
		f.local("", true)
		if fail, cause := f.diagnose(c.servers); fail != c.fail || cause != c.cause {
			t.Errorf("%s: %s %s", name, fail, cause)
		}
	}
	for url, want := range map[string]bool{"stun:a": true, "turn:a?transport=udp": true, "turn:a?transport=tcp": false, "turns:a": false} {
		if overUDP([]ICEServer{{URLs: []string{url}}}) != want {
			t.Errorf("%s is over UDP: %v", url, !want)
		}
	}
}

func TestLoopRunsInOrderAndStops(t *testing.T) {
	loop, stop := NewLoop()
	var got []int
	done := make(chan struct{})
	for i := range 100 {
		loop.Post(func() { got = append(got, i) })
	}
	loop.Post(func() { loop.After(0, func() { t.Error("a stopped timer went off") })() })
	loop.After(time.Millisecond, func() {
		loop.Go(func() {}, func() { close(done) })
	})
	<-done
	stop()
	stop()
	loop.Post(func() { t.Error("posted after the end") })
	loop.Go(func() { t.Error("begun after the end") }, func() {})
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
}
