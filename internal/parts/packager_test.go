package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// aloneRig is a viewer with another one that follows the stream, and no seed.
func aloneRig(slots int) *rig {
	r := &rig{Node: New(Config{Self: ID{1}})}
	r.Linked(other, false)
	r.Stream = r.Follow(0, stream1, Settings{Slots: slots, Part: partTime})
	r.Heard(0, other, peer.Follow{Stream: stream1, On: true})
	r.list(0)
	r.settle(0)
	return r
}

// asks has the player ask for the part at a turn, and returns the certificates that are to be loaded then.
func (r *rig) asks(now int64, turn uint32) (loads []Certificate) {
	r.list(turn)
	return r.asksFor(now, turn)
}

// asksFor does so for one that is listed.
func (r *rig) asksFor(now int64, turn uint32) (loads []Certificate) {
	r.Ask(now, turn, Wanted{Deadline: now + 10*second, RTT: 50_000, Rate: 1_000_000, Packaged: true})
	for _, a := range r.settle(now) {
		if c, ok := a.(Certificate); ok {
			loads = append(loads, c)
		}
	}
	return loads
}

// loaded answers with what the packager has signed.
func (r *rig) loaded(now int64, turn uint32) {
	c := contentOf(turn)
	c.Packaged = true
	r.Loaded(now, Certificate{Stream: stream1, Turn: turn}, &c)
}

func (r *rig) misses(now int64, turn uint32) {
	r.Loaded(now, Certificate{Stream: stream1, Turn: turn}, nil)
}

// fedStripes says in how many stripes the viewer tells a peer that it is fed.
func fedStripes(acts []Act) (count int) {
	for _, p := range said[peer.Place](acts, other) {
		if p.Rank != peer.MaxRank {
			count++
		}
	}
	return count
}

// TestASourceByThePackagersWord: it loads the certificate, is the source of all stripes, and passes on what the origin sends.
func TestASourceByThePackagersWord(t *testing.T) {
	r := aloneRig(8)
	if loads := r.asks(second, 1); len(loads) != 1 || loads[0] != (Certificate{Stream: stream1, Turn: 1}) {
		t.Fatalf("%+v", loads)
	}
	_, data := partOf(1)
	r.Origin(second+1, 1, 0, pieceOf(data, 0))
	r.loaded(second+2, 1)
	if fed := fedStripes(r.settle(second + 2)); fed != stripes {
		t.Fatalf("%d stripes have a source", fed)
	}
	for s := range uint8(stripes) {
		r.Heard(second+3, other, peer.Subscribe{Stream: stream1, Stripe: s, Slots: 8})
	}
	for i := range r.Pieces(1) {
		r.Origin(second+4, 1, i, pieceOf(data, i))
	}
	acts := r.settle(second + 4)
	if parts := said[peer.Part](acts, other); len(parts) != 1 || string(parts[0].Raw) != string(rawOf(1)) {
		t.Errorf("%d certificates are told", len(parts))
	}
	pushes := 0
	for _, a := range acts {
		if _, ok := a.(Push); ok {
			pushes++
		}
	}
	if pushes != mostHanded {
		t.Errorf("%d pieces are pushed", pushes)
	}
	r.Tick(second + 3 + silence*partTime)
	if ends := len(said[peer.Place](r.settle(second+3+silence*partTime), other)); ends != stripes {
		t.Errorf("without a certificate for four parts %d stripes are told to have no source", ends)
	}
}

func TestNoCertificateIsLoadedWithoutAUse(t *testing.T) {
	places := func(r *rig, place peer.Place) {
		for s := range uint8(stripes) {
			place.Stream, place.Stripe = stream1, s
			if place.Rank == 1 {
				place.Rank = mesh.SourceRank(ID{1}, int(s), 8) - 1
			}
			r.Heard(1, other, place)
		}
	}
	for name, c := range map[string]struct {
		slots int
		does  func(r *rig)
		loads int
	}{
		"it is the source":                       {8, func(*rig) {}, 1},
		"it takes no children":                   {0, func(*rig) {}, 0},
		"no peer follows":                        {8, func(r *rig) { r.Heard(1, other, peer.Follow{Stream: stream1}) }, 0},
		"another is fed, of a lower rank":        {8, func(r *rig) { places(r, peer.Place{Rank: 1, Path: []ID{other}, Room: 1, Least: 255}) }, 0},
		"it is full":                             {8, func(r *rig) { places(r, peer.Place{Rank: 1, Path: []ID{other}, Room: 0, Least: 255}) }, 1},
		"it says that it is a seed without room": {8, func(r *rig) { places(r, peer.Place{Rank: 0, Path: []ID{other}, Room: 0, Least: 255}) }, 1},
		"of a higher rank":                       {8, func(r *rig) { places(r, peer.Place{Rank: peer.MaxRank - 1, Path: []ID{other}, Room: 1, Least: 255}) }, 1},
		"a seed alone follows": {8, func(r *rig) {
			r.Gone(1, other)
			r.Linked(seed, true)
			r.Heard(1, seed, peer.Follow{Stream: stream1, On: true})
		}, 0},
		"the certificate is known": {8, func(r *rig) {
			r.list(1)
			r.Certify(1, 1, contentOf(1))
		}, 0},
	} {
		r := aloneRig(c.slots)
		c.does(r)
		r.settle(1)
		if loads := r.asks(second, 1); len(loads) != c.loads {
			t.Errorf("%s: %d are loaded", name, len(loads))
		}
	}
	r := aloneRig(8)
	r.list(1)
	if r.Ask(second, 1, Wanted{Deadline: 10 * second}); len(r.settle(second)) == 0 || r.signed.loading != none {
		t.Error("a certificate is loaded without a packager's key")
	}
}

// TestNoCertificateIsLoadedWhileASeedSendsThem, though its trees have no room.
func TestNoCertificateIsLoadedWhileASeedSendsThem(t *testing.T) {
	r := announcedRig()
	for s := range uint8(stripes) {
		r.Heard(3, seed, peer.Place{Stream: stream1, Stripe: s, Rank: peer.MaxRank})
	}
	if loads := r.asks(4, 2); len(loads) != 0 {
		t.Errorf("%+v", loads)
	}
	if loads := r.asks(2+silence*partTime, 3); len(loads) != 1 {
		t.Errorf("once it sends none, %d are loaded", len(loads))
	}
}

// TestLoadsOfCertificatesAreBounded: one at a time, each once, and fewer and fewer where none is there.
func TestLoadsOfCertificatesAreBounded(t *testing.T) {
	r := aloneRig(8)
	r.asks(second, 1)
	if loads := r.asks(second+1, 1); len(loads) != 0 {
		t.Error("the part's certificate is loaded twice")
	}
	if loads := r.asks(second+partTime-1, 2); len(loads) != 0 {
		t.Error("two are loaded at a time")
	}
	if loads := r.asks(second+partTime, 3); len(loads) != 1 || r.signed.misses != 1 {
		t.Errorf("a load that takes longer than a part is not given up: %+v, %d misses", loads, r.signed.misses)
	}
	r.loaded(second+partTime+1, 1)
	if r.signed.loading != 3 {
		t.Error("what came of it later counts")
	}
	r.misses(second+partTime+2, 3)
	now := 2 * second
	turn, asked := uint32(3), []int64{}
	for end := now + 3600*second; now < end; now += partTime {
		turn++
		r.Listed(now, turn, segment.ID{9, byte(turn), byte(turn >> 8)}, 20_000)
		if len(r.asksFor(now, turn)) > 0 {
			asked = append(asked, now)
			r.misses(now, turn)
		}
	}
	var pauses []int64
	for i := 1; i < len(asked); i++ {
		pauses = append(pauses, (asked[i]-asked[i-1])/second)
	}
	// Two were missed above: the second from here on is the fourth in a row.
	want := []int64{0, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600}
	for i := range min(len(want), len(pauses)) {
		if pauses[i] < want[i] || pauses[i] > want[i]+1 {
			t.Errorf("pauses of %v s, want %v", pauses, want)
			break
		}
	}
	if len(asked) > len(want)+1 || len(asked) < 10 {
		t.Errorf("%d are loaded in an hour in which none is there", len(asked))
	}
	turn++
	now += maxPause
	r.asks(now, turn)
	if r.loaded(now, turn); r.signed.misses != 0 {
		t.Error("one that is there does not end the row")
	}
}

// TestASourceOfSomeStripesNeedNotWait: how long a part is, the certificate says. What the viewer is the source of is then asked of the
// origin at once, and what its parents push is not.
func TestASourceOfSomeStripesNeedNotWait(t *testing.T) {
	r := aloneRig(8)
	for s := range uint8(2) {
		r.Heard(1, other, peer.Place{Stream: stream1, Stripe: s, Path: []ID{other}, Room: 4, Least: 255})
	}
	r.list(1)
	r.Heard(2, other, peer.Part{Stream: stream1, Turn: 1, Raw: rawOf(1)})
	r.settle(2)
	for i := range r.Pieces(1) {
		if r.shelf.parts[1].stripe(i) < 2 {
			r.sends(3, other, 0, 1, i)
		}
	}
	r.settle(3)
	id, _ := partOf(2)
	r.Listed(second, 2, id, 0)
	if loads := r.asksFor(second, 2); len(loads) != 1 || r.shelf.parts[2].whole {
		t.Fatalf("%d are loaded, all of it asked for: %v", len(loads), r.shelf.parts[2].whole)
	}
	r.loaded(second+1, 2)
	asked := map[int]bool{}
	for _, a := range r.settle(second + 1) {
		if f, ok := a.(Fetch); ok {
			for _, run := range f.Runs {
				for i := run.First; i <= run.Last; i++ {
					asked[i] = true
				}
			}
		}
	}
	for i := range r.Pieces(2) {
		if own := r.shelf.parts[2].stripe(i) >= 2; asked[i] != own {
			t.Errorf("piece %d is asked of the origin: %v", i, asked[i])
		}
	}
}

// TestALoadThatHangsIsGivenUp after a part's time, though the player asks for nothing more.
func TestALoadThatHangsIsGivenUp(t *testing.T) {
	r := aloneRig(8)
	r.asks(second, 1)
	given := func(at int64) (count int) {
		r.Tick(at)
		for _, a := range r.settle(at) {
			if g, ok := a.(GiveUp); ok && g.Stream == stream1 {
				count++
			}
		}
		return count
	}
	if n := given(second + partTime - 1); n != 0 {
		t.Error("it is given up too soon")
	}
	if n := given(second + partTime); n != 1 || r.signed.misses != 1 || r.signed.loading != none {
		t.Errorf("%d are given up, %d misses", n, r.signed.misses)
	}
	if n := given(second + 2*partTime); n != 0 {
		t.Error("it is given up twice")
	}
}

func TestACertificateOfAnotherPartIsMissed(t *testing.T) {
	r := aloneRig(8)
	r.asks(second, 1)
	c := contentOf(2)
	c.Packaged = true
	r.Loaded(second+1, Certificate{Stream: stream1, Turn: 1}, &c)
	if fed := fedStripes(r.settle(second + 1)); fed != 0 || r.signed.misses != 1 {
		t.Errorf("%d stripes have a source, %d misses", fed, r.signed.misses)
	}
}

// TestAViewerThatLosesItsParentIsASource where its parent told packagers' certificates: its children stay.
func TestAViewerThatLosesItsParentIsASource(t *testing.T) {
	for _, packaged := range []bool{false, true} {
		r := aloneRig(8)
		third := ID{3}
		r.Linked(third, false)
		r.Heard(1, third, peer.Follow{Stream: stream1, On: true})
		for s := range uint8(stripes) {
			r.Heard(1, third, peer.Place{Stream: stream1, Stripe: s, Rank: 1, Path: []ID{third}, Room: 4, Least: 255})
		}
		r.list(1)
		r.Heard(2, third, peer.Part{Stream: stream1, Turn: 1, Raw: rawOf(1)})
		for _, a := range r.Take() {
			if v, ok := a.(Verify); ok {
				c := contentOf(1)
				c.Packaged = packaged
				r.Certified(3, v, c)
			}
		}
		for i := range r.Pieces(1) {
			r.sends(4, third, 0, 1, i)
		}
		r.settle(4)
		r.Gone(mesh.TellEvery+5, third)
		r.Tick(mesh.TellEvery + 5)
		last := map[uint8]uint64{}
		for _, p := range said[peer.Place](r.settle(mesh.TellEvery+5), other) {
			last[p.Stripe] = p.Rank
		}
		for s := range uint8(stripes) {
			if (last[s] != peer.MaxRank) != packaged {
				t.Errorf("packaged %v: stripe %d has rank %d", packaged, s, last[s])
			}
		}
	}
}
