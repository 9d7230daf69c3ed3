package tracker

import (
	"context"
	"errors"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// asker speaks to the homes of swarms and subjects for one session.
type asker struct {
	*replica
	home *home
}

// ask asks one home: again when no answer came in time, for messages of the bus can be lost. One that does not answer counts as silent.
func (a *asker) ask(home signal.ID, r *bus.HomeRequest, answer *bus.HomeAnswer) error {
	r.Serial = a.asked.Add(1)
	if home == a.id {
		*answer = a.home.handle(r)
		return nil
	}
	err := a.request(bus.SubjectHome(home), r, answer)
	if errors.Is(err, context.DeadlineExceeded) {
		err = a.request(bus.SubjectHome(home), r, answer)
	}
	a.roster.asked(home, err == nil, a.cfg.Now())
	return err
}

// tell says to a home what wants no answer.
func (a *asker) tell(home signal.ID, r *bus.HomeRequest) {
	if home != a.id {
		a.Publish(bus.SubjectHome(home), r)
		return
	}
	a.home.answer(r)
}
