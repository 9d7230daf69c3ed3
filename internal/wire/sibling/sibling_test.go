package sibling

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var (
	from, to = signal.ID{1}, signal.ID{15: 2}
	at       = time.UnixMilli(1_790_000_000_000)
	text     = strings.Repeat("secret", 6)
)

func questions() []Question {
	content := &Content{7, 31: 8}
	return []Question{
		{Segment: segment.ID{3}, Swarm: signal.ID{4}},
		{Segment: segment.ID{3}, Swarm: signal.ID{4}, Held: true},
		{Segment: segment.ID{255, 15: 1}, Swarm: signal.ID{4}, Have: content},
		{Segment: segment.ID{}, Swarm: signal.ID{}, Held: true, Have: content},
	}
}

func answers() []*Answer {
	return []*Answer{
		{Certificate: []byte("certificate"), Data: []byte("bytes of the segment")},
		{Certificate: []byte("certificate")},
		{None: peer.NoneUnknown},
		{None: peer.NoneTooLarge, Object: 9 << 20},
		{None: peer.NoneOrigin},
	}
}

func written(a *Answer) []byte { return slices.Concat(Working(), Working(), a.Head(), a.Data) }

func accepting([]byte, int) error { return nil }

// vectors are what two seeds of a fleet say to each other.
type vectors struct {
	About     string         `json:"about"`
	Secret    string         `json:"secret"`
	Fleet     string         `json:"fleet"`
	Questions []question     `json:"questions"`
	Answers   []answerVector `json:"answers"`
	// What is wanted of a seed: its authorization, and what it answers.
	WantedAuthorization string          `json:"wanted_authorization"`
	Wanted              json.RawMessage `json:"wanted"`
}

type question struct {
	From          string `json:"from"`
	To            string `json:"to"`
	Target        string `json:"target"`
	Authorization string `json:"authorization"`
	Ms            int64  `json:"ms"`
}

type answerVector struct {
	Frames      string `json:"frames"`
	Certificate string `json:"certificate,omitempty"`
	Data        string `json:"data,omitempty"`
	None        int    `json:"none"`
	Object      int64  `json:"object"`
}

func TestVectors(t *testing.T) {
	s, err := NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	want := vectors{About: "Between seeds of a fleet (spec/cluster.md, Seeds): questions with their authorization, answers as frames; in hex.", Secret: text}
	id := s.Fleet()
	want.Fleet = hex.EncodeToString(id[:])
	for _, q := range questions() {
		want.Questions = append(want.Questions, question{from.Hex(), to.Hex(), q.Target(), s.Sign(from, to, q.Target(), at), at.UnixMilli()})
	}
	for _, a := range answers() {
		want.Answers = append(want.Answers, answerVector{
			hex.EncodeToString(written(a)), hex.EncodeToString(a.Certificate), hex.EncodeToString(a.Data), int(a.None), a.Object,
		})
	}
	want.WantedAuthorization = s.Sign(from, to, WantedTarget, at)
	if want.Wanted, err = EncodeWanted(someWanted()); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *spec.Update {
		spec.Write(t, "sibling.json", b)
	}
	if !bytes.Equal(spec.Bytes(t, "sibling.json"), b) {
		t.Errorf("spec/vectors/sibling.json is not what is said:\n%s", b)
	}
	for i, q := range questions() {
		back, err := ParseTarget(want.Questions[i].Target)
		if err != nil || back.Target() != q.Target() {
			t.Errorf("%s was read as %+v, %v", q.Target(), back, err)
		}
		if err := s.Check(want.Questions[i].Authorization, to, q.Target(), at.Add(MaxSkew)); err != nil {
			t.Error(err)
		}
	}
	for i, a := range answers() {
		// One byte at a time, as a slow line brings them.
		back, err := Read(iotest.OneByteReader(bytes.NewReader(written(a))), accepting)
		if err != nil || !bytes.Equal(back.Certificate, a.Certificate) || !bytes.Equal(back.Data, a.Data) || back.None != a.None || back.Object != a.Object {
			t.Errorf("answer %d was read as %+v, %v", i, back, err)
		}
	}
}

func TestTargetsHaveOneForm(t *testing.T) {
	good := questions()[1].Target()
	for _, target := range []string{
		"", "/", Path, Path + "..", Path + "../../etc/passwd?swarm=" + from.Hex(),
		strings.ToUpper(good), good + "&held=1", good + "&x=1", good + "#f", strings.Replace(good, "held=1", "held=true", 1),
		strings.Replace(good, "?", "?x=1&", 1), strings.Replace(good, "?swarm=", "?swarm=%30", 1), "http://10.0.0.1" + good,
		strings.Replace(good, Path, Path+"%2e%2e/", 1), strings.Replace(good, "00?", "?", 1), good + strings.Repeat("0", MaxTarget),
		strings.Replace(good, "held=1", "have=00", 1), strings.Replace(good, "leeway/v1", "leeway//v1", 1),
	} {
		if q, err := ParseTarget(target); err == nil {
			t.Errorf("%q was read as %+v", target, q)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	ours, err := NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := NewSecret(text + "x")
	if err != nil {
		t.Fatal(err)
	}
	if ours.Fleet() == theirs.Fleet() {
		t.Error("two secrets name one fleet")
	}
	if _, err := NewSecret(text[:MinSecret-1]); err == nil {
		t.Error("a short secret is good enough")
	}
	target := questions()[0].Target()
	good := ours.Sign(from, to, target, at)
	for name, check := range map[string]error{
		"another secret":  theirs.Check(good, to, target, at),
		"another seed":    ours.Check(good, from, target, at),
		"another segment": ours.Check(good, to, questions()[2].Target(), at),
		"too late":        ours.Check(good, to, target, at.Add(MaxSkew+time.Second)),
		"too early":       ours.Check(good, to, target, at.Add(-MaxSkew-time.Second)),
		"nothing":         ours.Check("", to, target, at),
		"another scheme":  ours.Check("Bearer"+good[6:], to, target, at),
		"another time":    ours.Check(strings.Replace(good, "1790000000000", "1790000000001", 1), to, target, at),
		"another asker":   ours.Check(strings.Replace(good, from.Hex(), to.Hex(), 1), to, target, at),
		"cut":             ours.Check(good[:len(good)-1], to, target, at),
		"no time":         ours.Check(strings.Replace(good, "1790000000000", "now", 1), to, target, at),
		"more":            ours.Check(good+".x", to, target, at),
	} {
		if check == nil {
			t.Errorf("%s was taken for a sibling", name)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	whole := written(answers()[0])
	for n := range whole {
		if _, err := Read(bytes.NewReader(whole[:n]), accepting); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes of %d: %v", n, len(whole), err)
		}
	}
	for name, b := range map[string][]byte{
		"unknown frame":        {9},
		"no certificate":       {1, 0, 0, 0, 0, 0, 0, 0, 1, 5},
		"large certificate":    {1, 0, 1, 0, 0, 0, 0, 0, 1},
		"large segment":        {1, 0, 0, 0, 1, 0, 0x80, 0, 1, 5},
		"unknown reason":       {2, 7, 0, 0, 0, 0, 0, 0, 0, 0},
		"length without need":  {2, 3, 0, 0, 0, 0, 0, 0x90, 0, 0},
		"small and too large":  {2, 4, 0, 0, 0, 0, 0, 0, 0, 9},
		"larger than any film": {2, 4, 0xff, 0, 0, 0, 0, 0, 0, 0},
	} {
		if a, err := Read(bytes.NewReader(b), accepting); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	no := errors.New("no")
	if _, err := Read(bytes.NewReader(whole), func([]byte, int) error { return no }); !errors.Is(err, no) {
		t.Errorf("a certificate that is not accepted: %v", err)
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, q := range questions() {
		f.Add(q.Target())
	}
	f.Fuzz(func(t *testing.T, target string) {
		if q, err := ParseTarget(target); err == nil && q.Target() != target {
			t.Errorf("%q was read as %q", target, q.Target())
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, a := range answers() {
		f.Add(written(a))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Read(bytes.NewReader(b), accepting)
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(slices.Concat(a.Head(), a.Data)), accepting)
		if err != nil || !bytes.Equal(again.Certificate, a.Certificate) || !bytes.Equal(again.Data, a.Data) || again.None != a.None || again.Object != a.Object {
			t.Errorf("read as %+v, and then as %+v, %v", a, again, err)
		}
	})
}
