package viewer

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// drawn is a source of one random number, in 1024ths.
type drawn uint64

func (d *drawn) Uint64() uint64 { return uint64(*d) << 43 } // 53 bits make a float

// returning is one case of spec/vectors/return.json.
type returning struct {
	Name  string `json:"name"`
	Steps []struct {
		Session    *int64 `json:"session_ms"`
		Reconnect  *int64 `json:"reconnect_ms"`
		RetryAfter *int64 `json:"retry_after_ms"`
		Draw       drawn  `json:"draw"`
		Wait       int64  `json:"wait_ms"`
	} `json:"steps"`
}

// TestVectorsOfComingBack plays what happens to sockets, and looks at when the next one is opened.
func TestVectorsOfComingBack(t *testing.T) {
	for _, c := range spec.Vectors[struct{ Cases []returning }](t, "return.json").Cases {
		t.Run(c.Name, c.play)
	}
}

func (c returning) play(t *testing.T) {
	welcome := false
	p := &script{w: newWorld(), answer: func(s *scripted, m signal.Message) {
		if welcome {
			greet(s, m)
		}
	}}
	draw := new(drawn)
	p.session = newSession(sessionOptions{loop: p.w, dialer: p, random: rand.New(draw), events: p, url: "ws://t/", hello: signal.Hello{Version: 1}})
	welcome = c.Steps[0].Session != nil
	p.session.start()
	for i, step := range c.Steps {
		*draw = step.Draw
		p.w.run(0)
		if step.Session != nil {
			p.w.run(time.Duration(*step.Session) * time.Millisecond)
		}
		if (p.state == sessionReady) != (step.Session != nil) {
			t.Fatalf("step %d begins %s", i, p.state)
		}
		last := p.sockets[i]
		if step.RetryAfter != nil {
			last.say(&signal.Error{Code: "overloaded", RetryAfterMs: *step.RetryAfter})
		}
		if step.Reconnect != nil {
			last.say(&signal.Reconnect{AfterMs: *step.Reconnect})
		}
		last.events.Lost()
		welcome = i+1 < len(c.Steps) && c.Steps[i+1].Session != nil
		at := p.w.now
		p.w.run(time.Duration(step.Wait) * time.Millisecond)
		if len(p.dials) != i+2 || p.dials[i+1].Sub(at) != time.Duration(step.Wait)*time.Millisecond {
			t.Fatalf("step %d: the next socket is opened %v after %v", i, p.dials[1:], at)
		}
	}
}
