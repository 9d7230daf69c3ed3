package mesh

import (
	"encoding/hex"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// vectors are spec/vectors/parts.json. IDs are hex; a rank that is null is none.
type vectors struct {
	Lengths json.RawMessage `json:"lengths"` // of package parts
	Stripes []stripeVector  `json:"stripes"`
	Ranks   []rankVector    `json:"ranks"`
	Due     []dueVector     `json:"due"`
	Cases   []meshVector    `json:"cases"`
}

type stripeVector struct {
	Turn    int   `json:"turn"`
	Pieces  int   `json:"pieces"`
	Stripes int   `json:"stripes"`
	Of      []int `json:"of"` // the stripe of each piece
}

type rankVector struct {
	Peer   string `json:"peer"`
	Stripe int    `json:"stripe"`
	Slots  int    `json:"slots"`
	Rank   uint64 `json:"rank"`
}

type dueVector struct {
	Since    int64 `json:"since_us"`
	Deadline int64 `json:"deadline_us"`
	Origin   int64 `json:"origin_us"`
	Part     int64 `json:"part_us"`
	Due      int64 `json:"due_us"`
}

type meshVector struct {
	Name   string       `json:"name"`
	Why    string       `json:"why"`
	Config configVector `json:"config"`
	Steps  []stepVector `json:"steps"`
}

type configVector struct {
	Self      string `json:"self"`
	Stripes   int    `json:"stripes"`
	Slots     int    `json:"slots"`
	PerStripe int    `json:"per_stripe,omitempty"`
	Seed      bool   `json:"seed,omitempty"`
	Whole     bool   `json:"whole,omitempty"`
}

// stepVector is one thing that happens, and what decide then sends.
type stepVector struct {
	At        int64           `json:"at_us"`
	Linked    string          `json:"linked,omitempty"`
	Gone      string          `json:"gone,omitempty"`
	CanSource *bool           `json:"can_source,omitempty"`
	Seeded    bool            `json:"seeded,omitempty"` // a seed sends certificates
	Hold      *bool           `json:"hold,omitempty"`
	Heard     *messageVector  `json:"heard,omitempty"`   // peer is the sender
	Arrived   *arrivedVector  `json:"arrived,omitempty"` // a verified piece
	Missed    *int            `json:"missed,omitempty"`  // stripe
	Waited    *waitedVector   `json:"waited,omitempty"`  // a piece for a child
	Leave     bool            `json:"leave,omitempty"`
	Sends     []messageVector `json:"sends"` // peer is the receiver
	Awaited   []int           `json:"awaited"`
	Children  [][]string      `json:"children"`
}

type arrivedVector struct {
	Peer   string `json:"peer"`
	Stripe int    `json:"stripe"`
}

type waitedVector struct {
	Peer   string `json:"peer"`
	Stripe int    `json:"stripe"`
	Waited int64  `json:"waited_us"`
	Part   int64  `json:"part_us"`
}

type messageVector struct {
	Peer   string       `json:"peer"`
	Kind   string       `json:"kind"`
	Stripe int          `json:"stripe"`
	Slots  uint8        `json:"slots,omitempty"`
	Place  *placeVector `json:"place,omitempty"`
}

type placeVector struct {
	Rank  *uint64  `json:"rank"`
	Path  []string `json:"path"`
	Room  uint8    `json:"room"`
	Least uint8    `json:"least"`
}

var kinds = []string{"", "place", "subscribe", "unsubscribe", "end"}

func readVectors(t *testing.T) vectors { return spec.Vectors[vectors](t, "parts.json") }

func TestVectors(t *testing.T) {
	want, got := readVectors(t), readVectors(t)
	for i, v := range got.Stripes {
		got.Stripes[i].Of = nil
		for piece := range v.Pieces {
			got.Stripes[i].Of = append(got.Stripes[i].Of, StripeOf(v.Turn, piece, v.Pieces, v.Stripes))
		}
	}
	for i, v := range got.Ranks {
		got.Ranks[i].Rank = SourceRank(readID(t, v.Peer), v.Stripe, v.Slots)
	}
	for i, v := range got.Due {
		got.Due[i].Due = Due(v.Since, v.Deadline, v.Origin, v.Part)
	}
	for _, c := range got.Cases {
		play(t, c)
	}
	if *spec.Update {
		b, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		spec.Write(t, "parts.json", append(b, '\n'))
		return
	}
	for i, c := range got.Cases {
		for j, step := range c.Steps {
			if !reflect.DeepEqual(step, want.Cases[i].Steps[j]) {
				t.Errorf("%s, step %d: %s\ngot  %s\nwant %s", c.Name, j, c.Why, text(t, step), text(t, want.Cases[i].Steps[j]))
			}
		}
	}
	got.Cases, want.Cases = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", text(t, got), text(t, want))
	}
}

// play fills in what a case's steps give.
func play(t *testing.T, c meshVector) {
	t.Helper()
	m := New(Config{Self: readID(t, c.Config.Self), Stripes: c.Config.Stripes, Slots: c.Config.Slots, PerStripe: c.Config.PerStripe, Seed: c.Config.Seed, Whole: c.Config.Whole})
	for i := range c.Steps {
		s := &c.Steps[i]
		switch {
		case s.Linked != "":
			m.Linked(readID(t, s.Linked))
		case s.Gone != "":
			m.Gone(readID(t, s.Gone))
		case s.CanSource != nil:
			m.CanSource(*s.CanSource)
			Seeded(m, s.Seeded)
		case s.Hold != nil:
			Hold(m, *s.Hold)
		case s.Heard != nil:
			m.Heard(s.At, readID(t, s.Heard.Peer), readMessage(t, *s.Heard))
		case s.Arrived != nil:
			m.Arrived(s.At, readID(t, s.Arrived.Peer), s.Arrived.Stripe)
		case s.Missed != nil:
			m.Missed(s.At, *s.Missed)
		case s.Waited != nil:
			m.Waited(s.At, readID(t, s.Waited.Peer), s.Waited.Stripe, s.Waited.Waited, s.Waited.Part)
		}
		decide := m.Decide
		if s.Leave {
			decide = func(int64) []Send { return m.Leave() }
		}
		s.Sends, s.Awaited, s.Children = []messageVector{}, []int{}, nil
		for _, send := range decide(s.At) {
			s.Sends = append(s.Sends, writeMessage(send))
		}
		for stripe := range c.Config.Stripes {
			if m.Parent(stripe) != (ID{}) {
				s.Awaited = append(s.Awaited, stripe)
			}
			s.Children = append(s.Children, writeIDs(m.Children(stripe)))
		}
	}
}

func readID(t *testing.T, text string) (id ID) {
	t.Helper()
	if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
		t.Fatalf("ID %q: %v", text, err)
	}
	return id
}

func readMessage(t *testing.T, v messageVector) Message {
	t.Helper()
	m := Message{Stripe: v.Stripe, Slots: v.Slots}
	for k, name := range kinds {
		if name == v.Kind {
			m.Kind = Kind(k)
		}
	}
	if v.Place != nil {
		m.Place = Place{Rank: None, Room: v.Place.Room, Least: v.Place.Least}
		if v.Place.Rank != nil {
			m.Place.Rank = *v.Place.Rank
		}
		for _, p := range v.Place.Path {
			m.Place.Path = append(m.Place.Path, readID(t, p))
		}
	}
	return m
}

func writeMessage(s Send) messageVector {
	v := messageVector{Peer: hex.EncodeToString(s.To[:]), Kind: kinds[s.Kind], Stripe: s.Stripe, Slots: s.Slots}
	if s.Kind == Tell {
		v.Place = &placeVector{Path: writeIDs(s.Place.Path), Room: s.Place.Room, Least: s.Place.Least}
		if s.Place.Rank != None {
			v.Place.Rank = &s.Place.Rank
		}
	}
	return v
}

func writeIDs(ids []ID) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, hex.EncodeToString(id[:]))
	}
	return out
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
