package parts

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// chunkNames is what certificates say, by their one byte.
var chunkNames = []segment.Name{"s#0-19999", "s#20000-39999", "s#30000-49999", "s"}

const chunkLength = 20_000

// chunkRig is a viewer whose player asks for chunk 0 of segment 0. All stripes are fed by another viewer.
type chunkRig struct {
	*Node
	*Stream
}

func newChunkRig() *chunkRig {
	r := &chunkRig{Node: New(Config{Self: ID{1}})}
	r.Linked(seed, true)
	r.Linked(other, false)
	r.Stream = r.Follow(0, stream1, Settings{Slots: 8, Part: partTime})
	for _, from := range []ID{seed, other} {
		r.Heard(0, from, peer.Follow{Stream: stream1, On: true})
	}
	r.expects(0, "s#0-")
	for stripe := range uint8(stripes) {
		r.Heard(1, other, peer.Place{Stream: stream1, Stripe: stripe, Path: []ID{other}, Room: 4, Least: 255})
	}
	r.settle()
	return r
}

func (r *chunkRig) expects(turn uint32, begin string) {
	Expect(r.Stream, 1, turn, func(of segment.Name) bool { return strings.HasPrefix(string(of), begin) }, turn != End)
}

func (r *chunkRig) tells(from ID, push, turn uint32, of byte) {
	r.Heard(2, from, peer.Part{Stream: stream1, Push: push, Turn: turn, Raw: []byte{of}})
}

// settle answers what is asked, and returns what peers are blamed for.
func (r *chunkRig) settle() map[Why]int {
	var all []Act
	for acts := r.Take(); acts != nil; acts = r.Take() {
		all = append(all, acts...)
		for _, a := range acts {
			if v, ok := a.(Verify); ok {
				of := v.Raw[0]
				r.Certified(2, v, Content{
					Segment: segment.ID{100 + of}, Name: chunkNames[of], Length: chunkLength, Digests: make([][32]byte, segment.Pieces(chunkLength)), Raw: v.Raw,
				})
			}
		}
	}
	return blamed(all)
}

// told are the names of what is told at turns.
func (r *chunkRig) told(turns ...uint32) (names []segment.Name) {
	for _, turn := range turns {
		name := segment.Name("")
		if c, _ := Told(r.Stream, turn); c != nil {
			name = c.Name
		}
		names = append(names, name)
	}
	return names
}

func (r *chunkRig) has(t *testing.T, want ...segment.Name) {
	t.Helper()
	got := r.told(0, 1, End)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("turn %d has %q, not %q", i, got[i], want[i])
		}
	}
}

func TestWhatAViewerTellsOfChunksIsTakenWhereItFits(t *testing.T) {
	r := newChunkRig()
	r.tells(other, 0, 0, 0)
	r.tells(other, 1, 1, 1)
	r.tells(other, 2, End, 3)
	if b := r.settle(); len(b) > 0 {
		t.Errorf("blamed: %v", b)
	}
	r.has(t, "s#0-19999", "", "")
	r.expects(1, "s#20000-")
	r.expects(End, "s")
	if b := r.settle(); len(b) > 0 {
		t.Errorf("blamed: %v", b)
	}
	r.has(t, "s#0-19999", "s#20000-39999", "s")
}

// TestAViewerThatTellsAnotherChunkLies also where it was expected before.
func TestAViewerThatTellsAnotherChunkLies(t *testing.T) {
	for _, before := range []bool{false, true} {
		r := newChunkRig()
		if before {
			r.expects(1, "s#20000-")
		}
		r.tells(other, 0, 1, 2)
		if !before {
			r.expects(1, "s#20000-")
		}
		if b := r.settle(); b[Unsolicited] == 0 {
			t.Errorf("expected before: %v: blamed: %v", before, b)
		}
		r.has(t, "", "", "")
	}
}

func TestWhatASeedToldOfAnotherChunkIsForgotten(t *testing.T) {
	r := newChunkRig()
	r.tells(seed, 0, 1, 2)
	b := r.settle()
	r.has(t, "", "s#30000-49999", "")
	r.expects(1, "s#20000-")
	r.has(t, "", "", "")
	r.tells(other, 0, 1, 1)
	if more := r.settle(); len(b)+len(more) > 0 {
		t.Errorf("blamed: %v %v", b, more)
	}
	r.has(t, "", "s#20000-39999", "")
}

// TestWhatWasToldAndNeverExpectedIsNoLie: the player may have had the segment otherwise.
func TestWhatWasToldAndNeverExpectedIsNoLie(t *testing.T) {
	r := newChunkRig()
	for n := uint32(1); n < 5; n++ {
		r.tells(other, n, n, byte(n)%4)
	}
	r.expects(turns, "s#0-")
	if b := r.settle(); len(b) > 0 {
		t.Errorf("blamed: %v", b)
	}
}

// TestAChunkThatNoPeerHasToldIsAwaitedLonger: it need not be there. The origin is asked half a part later, and no parent has missed it.
func TestAChunkThatNoPeerHasToldIsAwaitedLonger(t *testing.T) {
	for _, told := range []bool{false, true} {
		r := newChunkRig()
		data := bytes.Repeat([]byte{1}, chunkLength)
		c := Content{Segment: segment.ID{100}, Name: chunkNames[0], Length: chunkLength, Raw: []byte{0}}
		for i := range segment.Pieces(chunkLength) {
			c.Digests = append(c.Digests, sha256.Sum256(pieceOf(data, i)))
		}
		for stripe := range stripes { // the other viewer becomes the parent
			r.mesh.Arrived(1, other, stripe)
		}
		if told {
			r.certify(1, 0, &c)
		}
		r.Ask(2, 0, Wanted{Deadline: 1 << 40, At: 2 + partTime/2})
		since := int64(2 + partTime/2)
		if !told {
			since += partTime / 2
		}
		due, waits := r.player.due()
		if want := since + max(partTime/2, 400_000); !waits || due != want {
			t.Errorf("told: %v: due at %d, not %d", told, due, want)
		}
		r.Tick(due)
		fetched, missed := false, r.shelf.parts[0].missed
		for _, a := range r.Take() {
			if _, is := a.(Fetch); is {
				fetched = true
			}
		}
		if !fetched || missed != [stripes]bool{} != told {
			t.Errorf("told: %v: fetched: %v, missed: %v", told, fetched, missed)
		}
	}
}
