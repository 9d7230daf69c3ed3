package ledbat_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// vectors is the file. Every case is a list of events; each has what is done and what must be seen right after it.
type vectors struct {
	About string       `json:"about"`
	Acks  []vectorAck  `json:"acks"`
	Cases []vectorCase `json:"cases"`
}

// vectorAck is an ack (cumulative, highest, bitmap's upper and lower 32 bits, received at, hold) and its bytes in hex.
type vectorAck struct {
	Ack   [6]uint32 `json:"ack"`
	Bytes string    `json:"bytes"`
}

func (v vectorAck) ack() ledbat.Ack {
	a := v.Ack
	return ledbat.Ack{Cumulative: a[0], Highest: a[1], Bitmap: uint64(a[2])<<32 | uint64(a[3]), ReceivedAt: a[4], Hold: a[5]}
}

type vectorCase struct {
	Name   string        `json:"name"`
	Why    string        `json:"why"`
	Events []vectorEvent `json:"events"`
}

// vectorEvent: fields that do not belong to the kind of event are left out. Then is what must be seen, by kind.
type vectorEvent struct {
	At   int64   `json:"at"`
	Do   string  `json:"do"`
	Link int     `json:"link"`
	Args []int64 `json:"args,omitempty"`
	Then []int64 `json:"then"`
}

const aboutVectors = "Vectors of spec/background-transport.md, read by the Go and the TypeScript tests. 'do' is done at 'at' (µs) to the link " +
	"'link' with 'args'; 'then' must be seen right after it. The page has the arguments and results of every kind under Vectors."

// bench is what a case plays on: a sender and a receiver, with the links that the events open.
type bench struct {
	c       *ledbat.Sender
	r       *ledbat.Receiver
	paths   map[int]*ledbat.Path
	sources map[int]*ledbat.Source
	ackers  map[int]*ledbat.Acker
}

func newBench() *bench {
	return &bench{
		c: ledbat.NewSender(ledbat.Config{}), r: ledbat.NewReceiver(ledbat.Config{}),
		paths: map[int]*ledbat.Path{}, sources: map[int]*ledbat.Source{}, ackers: map[int]*ledbat.Acker{},
	}
}

// play does one event and gives what is seen.
func (b *bench) play(e vectorEvent) []int64 {
	a := func(i int) int64 { return e.Args[i] }
	switch p, s, k := b.paths[e.Link], b.sources[e.Link], b.ackers[e.Link]; e.Do {
	case "open":
		b.paths[e.Link] = b.c.Open(e.At, ledbat.PathConfig{Payload: a(0), MaxMessage: a(1), Base: a(2)})
	case "close":
		p.Close()
		return nil
	case "parts":
		b.c.SetParts(a(0))
		return nil
	case "eager":
		b.c.Eager(a(0) == 1)
		return nil
	case "beside":
		b.c.Beside(e.At, a(0))
	case "reset":
		p.Reset(e.At)
	case "timeout":
		p.OnTimeout(e.At)
	case "may":
		ok, at := p.MaySend(e.At, a(0))
		return []int64{bit(ok), at}
	case "send":
		t := p.OnSent(e.At, a(0), a(1))
		return append(b.sender(e.At, e.Link), int64(t.Sequence), int64(t.SentAt), int64(t.Echo), bit(t.Echoes), bit(t.AckNow))
	case "run":
		b.run(e)
	case "ack":
		ack := ledbat.Ack{
			Cumulative: uint32(a(0)), Highest: uint32(a(1)), Bitmap: uint64(a(2))<<32 | uint64(a(3)),
			ReceivedAt: uint32(a(4)), Hold: uint32(a(5)),
		}
		o := p.OnAck(e.At, ack)
		return append(b.sender(e.At, e.Link), o.Acked, o.Lost, o.Messages, o.RTT, bit(o.Problem == ledbat.ProblemFuture)+2*bit(o.Problem == ledbat.ProblemCumulative))
	default:
		return b.receive(e, s, k)
	}
	return b.sender(e.At, e.Link)
}

// run sends n messages of a size, one an interval, each acked a round trip (not above the interval) later; it came after a
// one-way delay.
func (b *bench) run(e vectorEvent) {
	n, interval, size, rtt, owd := e.Args[0], e.Args[1], e.Args[2], e.Args[3], e.Args[4]
	p := b.paths[e.Link]
	for i := range n {
		at := e.At + i*interval
		t := p.OnSent(at, size, 0)
		p.OnAck(at+rtt, ledbat.Ack{Cumulative: t.Sequence + 1, Highest: t.Sequence, ReceivedAt: uint32(at + owd)})
	}
}

// receive plays the events of the receiving side.
func (b *bench) receive(e vectorEvent, s *ledbat.Source, k *ledbat.Acker) []int64 {
	a := func(i int) int64 { return e.Args[i] }
	switch e.Do {
	case "source":
		b.sources[e.Link], b.ackers[e.Link] = b.r.Open(e.At), ledbat.NewAcker()
	case "request":
		s.OnRequest(e.At, a(0))
	case "gone":
		s.OnGone(a(0))
	case "mayrequest":
		ok, at := b.r.MayRequest(e.At, a(0))
		return []int64{bit(ok), at}
	case "data":
		t := ledbat.Stamp{Sequence: uint32(a(1)), SentAt: uint32(a(2)), Echo: uint32(a(3)), Echoes: a(4) == 1, AckNow: a(5) == 1}
		taken := k.OnData(e.At, a(0), t)
		sampled := s.OnData(e.At, a(0), t)
		return append(b.receiver(), bit(taken), k.Due(), bit(sampled))
	case "make":
		ack, ok := k.Make(e.At)
		return []int64{
			bit(ok), int64(ack.Cumulative), int64(ack.Highest), int64(ack.Bitmap >> 32), int64(uint32(ack.Bitmap)),
			int64(ack.ReceivedAt), int64(ack.Hold),
		}
	default:
		panic("no such event: " + e.Do)
	}
	return b.receiver()
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var stateNumber = map[ledbat.State]int64{ledbat.SlowStart: 0, ledbat.Avoidance: 1, ledbat.Slowdown: 2, ledbat.Ramp: 3}

// sender is what is seen of the sending side; it asks whether the next message may go out.
func (b *bench) sender(at int64, link int) []int64 {
	h, p := b.c.Stats(), b.paths[link]
	may, then := p.MaySend(at, p.MessageSize())
	return append(hostSeen(h), h.PacingRate, p.Window(), p.Flight(), p.MessageSize(), p.Deadline(), bit(may), then)
}

func (b *bench) receiver() []int64 { return hostSeen(b.r.Stats()) }

func hostSeen(s ledbat.Stats) []int64 {
	return []int64{stateNumber[s.State], s.Window, s.Flight, s.Queuing, s.Target, s.Base, s.RTT, s.Slowdowns, s.Yields}
}

// tape records what a case does, with what is seen.
type tape struct {
	bench   *bench
	events  []vectorEvent
	payload int64 // of the links that the simulation opens; 0: that of a packet
}

func (t *tape) do(at int64, do string, link int, args ...int64) []int64 {
	e := vectorEvent{At: at, Do: do, Link: link, Args: args}
	e.Then = t.bench.play(e)
	if e.Then == nil {
		e.Then = []int64{}
	}
	t.events = append(t.events, e)
	return e.Then
}

// tells says whether the last event was of a link, with which it was asked what may go out.
func (t *tape) tells(link int) bool {
	return len(t.events) > 0 && t.events[len(t.events)-1].Link == link
}

func (t *tape) ack(at int64, link int, a ledbat.Ack) []int64 {
	return t.do(at, "ack", link, int64(a.Cumulative), int64(a.Highest), int64(a.Bitmap>>32), int64(uint32(a.Bitmap)), int64(a.ReceivedAt), int64(a.Hold))
}

func TestVectors(t *testing.T) {
	if *spec.Update {
		writeVectors(t)
	}
	v := spec.Vectors[vectors](t, "background.json")
	for _, a := range v.Acks {
		want, err := hex.DecodeString(a.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.ack().Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%v became %x, want %x", a.Ack, got, want)
		}
		if got, ok := ledbat.ParseAck(want); !ok || got != a.ack() {
			t.Errorf("%x was read as %+v, %v", want, got, ok)
		}
	}
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			b := newBench()
			for i, e := range c.Events {
				if got := b.play(e); fmt.Sprint(got) != fmt.Sprint(e.Then) {
					t.Fatalf("%s\nevent %d, %s at %d: %v, want %v", c.Why, i, e.Do, e.At, got, e.Then)
				}
			}
		})
	}
}

// writeVectors writes one event a line, so that a change can be read.
func writeVectors(t *testing.T) {
	var out bytes.Buffer
	about, _ := json.Marshal(aboutVectors)
	fmt.Fprintf(&out, "{\n  \"about\": %s,\n  \"acks\": [\n", about)
	acks := [][6]uint32{{}, {1, 9, 1 << 31, 1, 2, 3}, {1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, {7, 12, 0x12345678, 0x9abcdef0, 0xfedcba98, 25_000}}
	for i, a := range acks {
		v := vectorAck{Ack: a}
		v.Bytes = hex.EncodeToString(v.ack().Append(nil))
		line, _ := json.Marshal(v)
		fmt.Fprintf(&out, "    %s%s\n", line, comma(i, len(acks)))
	}
	out.WriteString("  ],\n  \"cases\": [\n")
	for i, s := range scripts {
		tp := &tape{bench: newBench()}
		s.play(tp)
		writeCase(&out, s.name, s.why, "events", tp.events)
		out.WriteString(comma(i, len(scripts)) + "\n")
	}
	out.WriteString("  ]\n}\n")
	spec.Write(t, "background.json", out.Bytes())
}

// writeCase writes what happens in a case a line.
func writeCase[T any](out *bytes.Buffer, name, why, list string, lines []T) {
	n, _ := json.Marshal(name)
	w, _ := json.Marshal(why)
	fmt.Fprintf(out, "    {\n      \"name\": %s,\n      \"why\": %s,\n      \"%s\": [\n", n, w, list)
	for i, one := range lines {
		line, _ := json.Marshal(one)
		fmt.Fprintf(out, "        %s%s\n", line, comma(i, len(lines)))
	}
	out.WriteString("      ]\n    }")
}

func comma(i, n int) string {
	if i < n-1 {
		return ","
	}
	return ""
}
