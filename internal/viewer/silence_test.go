package viewer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestVectorsOfSilence has a vigil look at links.
func TestVectorsOfSilence(t *testing.T) {
	file := spec.Vectors[struct {
		Cases []struct {
			Name  string   `json:"name"`
			Links []string `json:"links"`
			Steps []struct {
				After   *int64 `json:"after_ms"`
				Came    []int  `json:"came"`
				Owed    []int  `json:"owed"`
				Unheard []int  `json:"unheard"`
				Adrift  bool   `json:"adrift"`
			} `json:"steps"`
		} `json:"cases"`
	}](t, "silence.json")
	for _, c := range file.Cases {
		var v vigil
		now := worldBegin
		unheard := make([]int, len(c.Links))
		for n, step := range c.Steps {
			after := time.Second
			if step.After != nil {
				after = time.Duration(*step.After) * time.Millisecond
			}
			now = now.Add(after)
			var all []*watched
			for i, to := range c.Links {
				all = append(all, &watched{slices.Contains(step.Came, i), slices.Contains(step.Owed, i), to == "viewer", unheard[i]})
			}
			adrift, _ := v.look(now, all)
			for i, w := range all {
				unheard[i] = w.unheard
			}
			if !slices.Equal(unheard, step.Unheard) || adrift != step.Adrift {
				t.Errorf("%s: at look %d unheard for %v, adrift %v; want %v, %v", c.Name, n, unheard, adrift, step.Unheard, step.Adrift)
			}
		}
	}
}

// A viewer's own loss is no reason to wait for others; its tracker's is.
func TestASessionHurriesForWhatThisSideLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(p *script)
		most  time.Duration
		least time.Duration // some of many wait longer than that
	}{
		"without a word":            {func(p *script) { p.sockets[0].events.Lost() }, lostSpread, 4 * time.Second},
		"adrift":                    {func(p *script) { p.hurry() }, backoffBase, 0},
		"lost, then found adrift":   {func(p *script) { p.sockets[0].events.Lost(); p.w.run(0); p.hurry() }, backoffBase, 0},
		"awake, then lost":          {func(p *script) { p.awoke(); p.w.run(9 * time.Second); p.sockets[0].events.Lost() }, backoffBase, 0},
		"lost, then awake":          {func(p *script) { p.sockets[0].events.Lost(); p.w.run(0); p.awoke() }, backoffBase, 0},
		"awake long ago, then lost": {func(p *script) { p.awoke(); p.w.run(11 * time.Second); p.sockets[0].events.Lost() }, lostSpread, 4 * time.Second},
		"by a tracker that drains": {func(p *script) {
			p.sockets[0].say(&signal.Reconnect{AfterMs: 3000})
			p.w.run(0)
			p.hurry()
		}, 3 * time.Second, 2900 * time.Millisecond},
	} {
		var longest time.Duration
		for n := range uint64(20) {
			draw := drawn(51*(n+1) - 1)
			p := &script{w: newWorld(), answer: greet}
			p.session = newSession(sessionOptions{loop: p.w, dialer: p, random: rand.New(&draw), events: p, url: "ws://t/", hello: signal.Hello{Version: 1}})
			p.session.start()
			p.w.run(2 * time.Second)
			c.lose(p)
			at := p.w.now
			p.w.run(30 * time.Second)
			if len(p.dials) != 2 || p.state != sessionReady {
				t.Fatalf("%s: %d sockets, %s", name, len(p.dials), p.state)
			}
			longest = max(longest, p.dials[1].Sub(at))
		}
		if longest > c.most || longest < c.least {
			t.Errorf("%s: back after up to %v, want %v to %v", name, longest, c.least, c.most)
		}
	}
}
