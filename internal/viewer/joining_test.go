package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestTheAnswerToAnOldJoinIsForNothing: a swarm that it names is left, unless it is the one that was joined.
func TestTheAnswerToAnOldJoinIsForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer        signal.Message
		forgets, same bool
		joined        int
		refused, left int
	}{
		"joined":                 {&signal.Joined{Swarm: signal.ID{7}}, false, false, 1, 0, 0},
		"refused":                {&signal.Error{Code: "swarm-full", Message: "Full."}, false, false, 0, 1, 0},
		"joined, too late":       {&signal.Joined{Swarm: signal.ID{7}}, true, false, 0, 0, 1},
		"joined again, too late": {&signal.Joined{Swarm: signal.ID{7}}, true, true, 0, 0, 0},
		"refused, too late":      {&signal.Error{Code: "swarm-full", Message: "Full."}, true, false, 0, 0, 0},
	} {
		var asked []*signal.Join
		left := 0
		p := newScript(func(s *scripted, m signal.Message) {
			switch m := m.(type) {
			case *signal.Join:
				asked = append(asked, m)
			case *signal.Leave:
				left++
			default:
				greet(s, m)
			}
		})
		p.w.run(time.Millisecond)
		l := newLinks(p.w, nil, nil, nil)
		l.terms = linkTerms{role: "full", most: 4}
		joined, refused := 0, 0
		j := &joining{
			session: p.session, links: l, naming: &naming{name: "/film", key: "/film/master.m3u8"}, offers: 3, span: func() *signal.Range { return nil },
			swarm: func() signal.ID {
				if c.same {
					return signal.ID{7}
				}
				return signal.ID{}
			},
			joined: func(*signal.Joined) { joined++ }, refused: func(*signal.Error, bool) { refused++ },
		}
		j.join()
		p.w.run(time.Second)
		if len(asked) != 1 || asked[0].Want != 4 || len(asked[0].Offers) != 0 || asked[0].Title != "/film" {
			t.Fatalf("%s: %+v", name, asked)
		}
		if c.forgets {
			j.forget()
		}
		switch m := c.answer.(type) {
		case *signal.Joined:
			m.Request = asked[0].Request
		case *signal.Error:
			m.Request = asked[0].Request
		}
		p.sockets[0].say(c.answer)
		p.w.run(time.Second)
		if joined != c.joined || refused != c.refused || left != c.left {
			t.Errorf("%s: %d joined, %d refused, %d left", name, joined, refused, left)
		}
	}
}
