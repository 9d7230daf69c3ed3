package tracker

import (
	"encoding/base64"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// place is that of a session among those of its token's subject (spec/access.md). Before the session is open only Receive has it, and
// then only the ticker; subject does not change any more.
type place struct {
	asker   *asker
	session signal.ID
	subject signal.ID // what its home is found by; zero: there is none
	home    signal.ID // that knows of the session
	seen    time.Time
}

// enter asks for a place; the answer is empty or the code of the error. Without an answer it is granted: a limit is not worth a viewer.
func (p *place) enter(session, subject signal.ID, now time.Time) (code string) {
	p.session, p.subject, p.home, p.seen = session, subject, p.asker.HomeOf(subject), now
	r := p.request(bus.OpEnter)
	var answer bus.HomeAnswer
	if err := p.asker.ask(p.home, &r, &answer); err != nil {
		p.asker.cfg.Log.Warn("the home of a subject did not answer", "error", err)
		return ""
	}
	return answer.Code
}

func (p *place) request(op string) bus.HomeRequest {
	return bus.HomeRequest{Op: op, Tracker: p.asker.id, Session: p.session, Swarm: p.subject}
}

// stay tells the home of the subject that the session is still there, at once when that is another.
func (p *place) stay(now time.Time) {
	if p.subject.IsZero() {
		return
	}
	home := p.asker.HomeOf(p.subject)
	if home == p.home && now.Sub(p.seen) <= p.asker.cfg.UpdateInterval {
		return
	}
	p.home, p.seen = home, now
	r := p.request(bus.OpEnter)
	r.Rejoin = true
	p.asker.tell(home, &r)
}

// quit gives the place back.
func (p *place) quit() {
	if !p.subject.IsZero() {
		r := p.request(bus.OpQuit)
		p.asker.tell(p.asker.HomeOf(p.subject), &r)
	}
}

// hash is the subject as replicas may know it; empty: there is none.
func (p *place) hash() string {
	if p.subject.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(p.subject[:])
}
