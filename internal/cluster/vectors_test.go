package cluster

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	About string       `json:"about"`
	Homes []homeVector `json:"homes"`
	Parts []partVector `json:"parts"`

	Owners []ownerVector `json:"owners"`
}

// homeVector is where a part of a swarm has its home.
type homeVector struct {
	Trackers []string `json:"trackers"`
	Swarm    string   `json:"swarm"`
	Part     uint32   `json:"part"`
	Home     string   `json:"home"`
}

// partVector is the part that a member belongs to when the part it was sent to has been halved to a level.
type partVector struct {
	Label string `json:"label"`
	Hash  uint32 `json:"hash"`
	Level int    `json:"level"`
	Part  uint32 `json:"part"` // walked to from part 0
}

// ownerVector is the order in which seeds of a title may own a segment: those of the list that live and do not drain.
type ownerVector struct {
	Seeds    []string `json:"seeds"` // on the title's list
	Draining []string `json:"draining"`
	Dead     []string `json:"dead"`
	Segment  string   `json:"segment"`
	Rank     []string `json:"rank"`
}

func (o ownerVector) rank(t *testing.T) (out []string) {
	var view *View
	var among []swarm.ID
	for _, seed := range o.Seeds {
		among = append(among, id(t, seed))
		switch {
		case view == nil:
			view = NewView(id(t, seed), beat)
		case !slices.Contains(o.Dead, seed):
			view.Beat(id(t, seed), 0, slices.Contains(o.Draining, seed), start)
		}
	}
	for _, seed := range view.Rank(id(t, o.Segment), among) {
		out = append(out, text(seed))
	}
	return out
}

func TestVectors(t *testing.T) {
	if *spec.Update {
		write(t)
	}
	v := spec.Vectors[vectors](t, "cluster.json")
	for i, h := range v.Homes {
		view := NewView(id(t, h.Trackers[0]), beat)
		for _, other := range h.Trackers[1:] {
			view.Beat(id(t, other), 0, false, start)
		}
		if got := view.Home(Part{Number: h.Part, Level: MaxLevel}.Key(id(t, h.Swarm))); got != id(t, h.Home) {
			t.Errorf("home %d is %x, want %s", i, got, h.Home)
		}
	}
	for i, o := range v.Owners {
		if got := o.rank(t); !slices.Equal(got, o.Rank) {
			t.Errorf("owners %d are %v, want %v", i, got, o.Rank)
		}
	}
	for _, p := range v.Parts {
		if hash := Hash([]byte(p.Label)); hash != p.Hash || walk(hash, p.Level) != p.Part {
			t.Errorf("%q has hash %d and is in part %d of level %d, want %+v", p.Label, hash, walk(hash, p.Level), p.Level, p)
		}
	}
}

// walk goes from part 0 to a member's part where all have been halved to a level.
func walk(hash uint32, level int) uint32 {
	for at := (Part{}); ; {
		next := at.Toward(hash, level)
		if next == at {
			return at.Number
		}
		at = next
	}
}

func id(t *testing.T, text string) swarm.ID {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 16 {
		t.Fatalf("%q is no ID", text)
	}
	return swarm.ID(b)
}

func write(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	v := vectors{About: "Homes, parts and owners of spec/cluster.md; IDs in hex. A part's hash is of its label: `group NAME`, `address KEYED-HASH` or the session's 16 bytes."}
	for n := 1; n <= 5; n++ {
		ids := draws(r, n)
		for _, part := range []uint32{0, 5} {
			h := homeVector{Swarm: text(draw(r)), Part: part}
			for _, i := range ids {
				h.Trackers = append(h.Trackers, text(i))
			}
			view := NewView(ids[0], beat)
			for _, other := range ids[1:] {
				view.Beat(other, 0, false, start)
			}
			h.Home = text(view.Home(Part{Number: part, Level: MaxLevel}.Key(id(t, h.Swarm))))
			v.Homes = append(v.Homes, h)
		}
	}
	for _, label := range []string{"group a", "group b", "address AAAA", "0123456789abcdef"} {
		for _, level := range []int{0, 1, 4, MaxLevel} {
			v.Parts = append(v.Parts, partVector{label, Hash([]byte(label)), level, walk(Hash([]byte(label)), level)})
		}
	}
	for n := 1; n <= 6; n++ {
		o := ownerVector{Segment: text(draw(r)), Draining: []string{}, Dead: []string{}}
		for _, seed := range draws(r, n) {
			o.Seeds = append(o.Seeds, text(seed))
		}
		if n >= 4 {
			o.Draining, o.Dead = o.Seeds[1:2], o.Seeds[2:3]
		}
		o.Rank = o.rank(t)
		v.Owners = append(v.Owners, o)
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	spec.Write(t, "cluster.json", append(b, '\n'))
}

func text(i swarm.ID) string { return hex.EncodeToString(i[:]) }
