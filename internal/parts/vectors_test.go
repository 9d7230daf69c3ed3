package parts

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// walkVectors are spec/vectors/parts-node.json: what happens to a viewer, step by step, and what it then does. Texts are short, since
// there are many. IDs of peers and streams are their first byte, the others are zero.
type walkVectors struct {
	About string `json:"about"`
	Walks []walk `json:"walks"`
}

type walk struct {
	Name  string     `json:"name"`
	Steps []walkStep `json:"steps"`
}

type walkStep struct {
	Do   string   `json:"do"`
	Acts []string `json:"acts,omitempty"`
}

// walked is a part of the walks, at a turn of a stream.
func walked(stream, turn int) (segment.ID, []byte) {
	data := make([]byte, 20_000+turn*7919%60_000)
	for i := range data {
		data[i] = byte(turn*31 + i + i>>8)
	}
	id := segment.ID{0x80, byte(stream)}
	binary.BigEndian.PutUint32(id[2:], uint32(turn))
	return id, data
}

func walkedContent(stream, turn int) Content {
	id, data := walked(stream, turn)
	return Content{Segment: id, Length: len(data), Digests: certificate.DigestPieces(data), Raw: binary.BigEndian.AppendUint32([]byte{'c', byte(stream)}, uint32(turn))}
}

// walkedPackaged is the same as a packager has signed it.
func walkedPackaged(stream, turn int) Content {
	c := walkedContent(stream, turn)
	c.Raw[0], c.Packaged = 'p', true
	return c
}

// walker plays steps.
type walker struct {
	node    *Node
	streams map[int]*Stream
	pending []Act // that are to be answered
}

func newWalker() *walker {
	return &walker{node: New(Config{Self: ID{1}}), streams: map[int]*Stream{}}
}

// words reads a step.
type words struct{ left []string }

func (w *words) next() string {
	out := w.left[0]
	w.left = w.left[1:]
	return out
}

func (w *words) int() int {
	n, err := strconv.Atoi(w.next())
	if err != nil {
		panic(err)
	}
	return n
}

// has takes the last word if it is there, and says whether it is this one.
func (w *words) has(word string) bool { return len(w.left) > 0 && w.next() == word }

func (w *words) bytes() []byte {
	b, err := hex.DecodeString(w.next())
	if err != nil {
		panic(err)
	}
	return b
}

// do plays a step: a time in µs, a verb, and what it is about. It returns what the node does.
func (w *walker) do(step string) []string {
	in := &words{strings.Fields(step)}
	now := int64(in.int())
	switch verb := in.next(); verb {
	case "linked":
		w.node.Linked(ID{byte(in.int())}, in.next() == "seed")
	case "gone":
		w.node.Gone(now, ID{byte(in.int())})
	case "sent":
		w.node.Sent(now, ID{byte(in.int())})
	case "heard":
		w.node.Heard(now, ID{byte(in.int())}, readWalked(in))
	case "data":
		from, request := in.int(), in.int()
		_, data := walked(in.int(), in.int())
		piece, offset, length := in.int(), in.int(), in.int()
		payload := bytes.Clone(data[piece*peer.PieceSize+offset:][:length])
		if in.next() == "wrong" {
			payload[0]++
		}
		w.node.Data(now, ID{byte(from)}, peer.Data{Request: uint32(request), Offset: uint16(offset), Payload: payload})
	case "tick":
		w.node.Tick(now)
		return append(w.acts(), fmt.Sprintf("next %d", w.node.Next(now)))
	case "answer":
		return w.answer(now)
	default:
		return w.stream(now, verb, in)
	}
	return w.acts()
}

// stream plays a step that is about a stream.
func (w *walker) stream(now int64, verb string, in *words) []string {
	id := in.int()
	s := w.streams[id]
	switch verb {
	case "follow":
		w.streams[id] = w.node.Follow(now, segment.ID{byte(id)}, Settings{Slots: in.int(), Part: int64(in.int()), Whole: in.has("whole")})
	case "unfollow":
		w.node.Unfollow(now, segment.ID{byte(id)})
	case "listed":
		turn, named := in.int(), in.int()
		segmentID, _ := walked(id, named)
		s.Listed(now, uint32(turn), segmentID, in.int())
	case "expect":
		Expect(s, now, uint32(in.int()), func(segment.Name) bool { return true }, in.next() == "reached")
	case "sign", "end":
		turn, length := in.int(), 0
		if verb == "sign" {
			_, data := walked(id, turn)
			length = len(data)
		}
		Sign(s, now, uint32(turn), length, true)
	case "ask":
		s.Ask(now, uint32(in.int()), Wanted{Deadline: int64(in.int()), RTT: int64(in.int()), Rate: int64(in.int()), Packaged: in.has("packaged")})
	case "loaded":
		a := Certificate{Stream: segment.ID{byte(id)}, Turn: uint32(in.int())}
		c := walkedPackaged(id, int(a.Turn))
		if in.has("none") {
			w.node.Loaded(now, a, nil)
		} else {
			w.node.Loaded(now, a, &c)
		}
	case "leave":
		s.Leave()
	case "origin":
		turn, piece := in.int(), in.int()
		_, data := walked(id, turn)
		s.Origin(now, uint32(turn), piece, data[piece*peer.PieceSize:][:segment.PieceLen(int64(len(data)), piece)])
	case "buffer":
		s.Buffer(now, int64(in.int()), in.next() == "all")
	case "has":
		turn := in.int()
		out := "has"
		for i := range s.Pieces(uint32(turn)) {
			if s.Bytes(uint32(turn), i) != nil {
				out += fmt.Sprint(" ", i)
			}
		}
		return append(w.acts(), out)
	default:
		panic(verb)
	}
	return w.acts()
}

// answer answers what the node wants verified and checked, and what comes of it.
func (w *walker) answer(now int64) (out []string) {
	for len(w.pending) > 0 {
		a := w.pending[0]
		w.pending = w.pending[1:]
		switch a := a.(type) {
		case Verify:
			made := map[byte]func(stream, turn int) Content{'c': walkedContent, 'p': walkedPackaged}[a.Raw[0]]
			if made != nil && len(a.Raw) == 6 {
				w.node.Certified(now, a, made(int(a.Raw[1]), int(binary.BigEndian.Uint32(a.Raw[2:]))))
			} else {
				w.node.Refused(now, a)
			}
		case Check:
			w.node.Checked(now, a, sha256.Sum256(a.Data) == a.Digest)
		}
		out = append(out, w.acts()...)
	}
	return out
}

func (w *walker) acts() (out []string) {
	for _, a := range w.node.Take() {
		out = append(out, writeWalked(a))
		switch a.(type) {
		case Verify, Check:
			w.pending = append(w.pending, a)
		}
	}
	return out
}

func writeWalked(a Act) string {
	switch a := a.(type) {
	case Say:
		return fmt.Sprintf("say %d %s", a.To[0], writeSaid(a.Message))
	case Push:
		return fmt.Sprintf("push %d %d %d", a.To[0], a.Request, len(a.Data))
	case Verify:
		return fmt.Sprintf("verify %d %d %d", a.From[0], a.Stream[0], a.Turn)
	case Check:
		return fmt.Sprintf("check %d %d %d %d", a.From[0], a.Stream[0], a.Turn, a.Piece)
	case Fetch:
		out := fmt.Sprintf("fetch %d %d", a.Stream[0], a.Turn)
		for _, r := range a.Runs {
			out += fmt.Sprintf(" %d-%d", r.First, r.Last)
		}
		return out
	case Ready:
		return fmt.Sprintf("ready %d %d", a.Stream[0], a.Turn)
	case Certificate:
		return fmt.Sprintf("certificate %d %d", a.Stream[0], a.Turn)
	case GiveUp:
		return fmt.Sprintf("give-up %d", a.Stream[0])
	case Blame:
		return fmt.Sprintf("blame %d %s %d", a.From[0], a.Why, a.Bytes)
	}
	panic(a)
}

var onOff = map[bool]string{true: "on", false: "off"}

func writeSaid(m peer.Message) string {
	switch m := m.(type) {
	case peer.Follow:
		return fmt.Sprintf("follow %d %s", m.Stream[0], onOff[m.On])
	case peer.Place:
		out := fmt.Sprintf("place %d %d %d %d %d", m.Stream[0], m.Stripe, m.Rank, m.Room, m.Least)
		for _, id := range m.Path {
			out += fmt.Sprint(" ", id[0])
		}
		return out
	case peer.Subscribe:
		return fmt.Sprintf("subscribe %d %d %d", m.Stream[0], m.Stripe, m.Slots)
	case peer.Unsubscribe:
		return fmt.Sprintf("unsubscribe %d %d", m.Stream[0], m.Stripe)
	case peer.End:
		return fmt.Sprintf("end %d %d", m.Stream[0], m.Stripe)
	case peer.Part:
		return fmt.Sprintf("part %d %d %d %x", m.Stream[0], m.Push, m.Turn, m.Raw)
	case peer.Enough:
		return fmt.Sprintf("enough %d %x", m.Stream[0], m.Segment[:])
	case peer.Hold:
		return fmt.Sprintf("hold %d %s", m.Stream[0], onOff[m.On])
	}
	panic(m)
}

func readWalked(in *words) peer.Message {
	verb, stream := in.next(), segment.ID{byte(in.int())}
	switch verb {
	case "follow":
		return peer.Follow{Stream: stream, On: in.next() == "on"}
	case "place":
		m := peer.Place{Stream: stream, Stripe: uint8(in.int()), Rank: uint64(in.int()), Room: uint8(in.int()), Least: uint8(in.int())}
		for len(in.left) > 0 {
			m.Path = append(m.Path, ID{byte(in.int())})
		}
		return m
	case "subscribe":
		return peer.Subscribe{Stream: stream, Stripe: uint8(in.int()), Slots: uint8(in.int())}
	case "unsubscribe":
		return peer.Unsubscribe{Stream: stream, Stripe: uint8(in.int())}
	case "end":
		return peer.End{Stream: stream, Stripe: uint8(in.int())}
	case "part":
		return peer.Part{Stream: stream, Push: uint32(in.int()), Turn: uint32(in.int()), Raw: in.bytes()}
	case "enough":
		return peer.Enough{Stream: stream, Segment: segment.ID(in.bytes())}
	case "hold":
		return peer.Hold{Stream: stream, On: in.next() == "on"}
	}
	panic(verb)
}

// TestWalks plays the vectors. With -update it makes new ones.
func TestWalks(t *testing.T) {
	if *spec.Update {
		v := walkVectors{About: "Walks of a viewer's part in low-latency streams (spec/parts.md): what happens, at µs, and what it does. Written by internal/parts, -update."}
		for i, w := range []struct {
			name  string
			steps int
		}{{"parts come along four trees", 220}, {"trouble", 220}, {"packaged, and peers that come and go", 500}} {
			v.Walks = append(v.Walks, walk{w.name, newStroll(uint64(i)).steps(w.steps)})
		}
		v.Walks = append(v.Walks, walk{"a source of packaged chunks", chunkWalk()})
		b, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		spec.Write(t, "parts-node.json", append(b, '\n'))
	}
	v := spec.Vectors[walkVectors](t, "parts-node.json")
	verbs := map[string]int{}
	for _, walk := range v.Walks {
		w := newWalker()
		for i, s := range walk.Steps {
			got := w.do(s.Do)
			if !slices.Equal(got, s.Acts) {
				t.Fatalf("%s, step %d, %s:\ngot  %q\nwant %q", walk.Name, i, s.Do, got, s.Acts)
			}
			for _, a := range got {
				verb, _, _ := strings.Cut(a, " ")
				verbs[verb]++
			}
		}
	}
	for _, verb := range []string{"say", "push", "verify", "check", "fetch", "ready", "certificate", "give-up", "blame", "next", "has"} {
		if verbs[verb] == 0 {
			t.Errorf("no walk has the node %s anything", verb)
		}
	}
}
