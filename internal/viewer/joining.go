package viewer

import "github.com/leeway-video/leeway/internal/wire/signal"

// joining asks the tracker to let this viewer join the swarm of a title. The answer to an old join is for nothing.
type joining struct {
	session *session
	links   *links
	naming  *naming
	offers  int // that go out with the first join
	span    func() *signal.Range
	swarm   func() signal.ID // joined; zero: none
	joined  func(*signal.Joined)
	refused func(refusal *signal.Error, ahead bool)

	count int
	ahead bool // the last went out ahead of the welcome, by the rules of a site that has none of its own
}

func (j *joining) join() {
	j.count++
	attempt, want, offers := j.count, j.links.want(), j.offers
	if attempt > 1 || j.links.terms.role == "off" || !j.links.early.begun {
		offers = 0 // links that are there go on, and before the picture there are none
	}
	j.ahead = j.ahead && attempt == 1
	j.links.ready(offers, func(ready []signal.Offer) {
		if attempt == j.count {
			j.with(ready, attempt, want)
		}
	})
}

func (j *joining) with(ready []signal.Offer, attempt, want int) {
	ahead := j.ahead
	m := signal.Join{
		Title: j.naming.name, Manifest: j.naming.path(), Role: j.links.terms.role, Want: want, Range: j.span(), Offers: ready, Ahead: ahead,
	}
	j.session.join(m, func(answer *signal.Joined, refusal *signal.Error) {
		switch {
		case attempt != j.count:
			if answer != nil && answer.Swarm != j.swarm() {
				j.session.send(&signal.Leave{Swarm: answer.Swarm}) // of a title that it is not
			}
		case refusal == nil:
			j.joined(answer)
		case refusal.Code != "lost":
			j.refused(refusal, ahead)
		}
	})
}

// forget takes back the join that goes on.
func (j *joining) forget() { j.count++ }
