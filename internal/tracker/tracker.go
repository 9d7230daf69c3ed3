package tracker

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// requestTimeout bounds a request to another replica, which is made twice before it counts as silent.
	requestTimeout = 700 * time.Millisecond
	// learnTimeout bounds the question for what a replica has to know at its start.
	learnTimeout = 2 * time.Second
	// turns is in how many parts of a beat sessions are looked after: not all of them speak at the same moment.
	turns = 8
)

// Tracker is one replica: it joins its parts to each other and to the bus, and lets them do what time brings.
type Tracker struct {
	*replica
	*admission
	*switches
	sessions sessions
	home     *home
	*deliveries
	signals *signals
	*trust
	judge    Judge
	learned  *learned
	prober   *prober
	tickets  *ticketer
	torrents Torrents // nil: the WebTorrent protocol is not spoken
	hints    *hints

	run run
}

// run is what of a tracker goes on until it is closed.
type run struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup // the ticker and the streams
	subs   []func()
}

// New starts a tracker on a bus. Close ends it.
func New(cfg Config, b Bus) (*Tracker, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	tickets, err := newTicketer(cfg.derive("tickets"))
	if err != nil {
		return nil, err
	}
	r := newReplica(cfg, b)
	t := &Tracker{
		replica: r, admission: newAdmission(&r.cfg), switches: newSwitches(r), sessions: sessions{all: map[signal.ID]*session{}},
		learned: newLearned(cfg), prober: newProber(r), tickets: tickets, judge: unjudged{},
		hints: newHints(&r.cfg),
	}
	t.deliveries = newDeliveries(r, &t.sessions)
	t.home = newHome(r, t.deliveries.Send)
	t.signals = &signals{r, &t.sessions, t.home, t.deliveries}
	t.trust = newTrust(r, &t.sessions, t.switches)
	t.deliveries.signals = t.signals
	if cfg.Torrents != nil {
		t.torrents = cfg.Torrents(t)
		t.deliveries.torrents = t.torrents
	}
	if cfg.Judge != nil {
		t.judge = cfg.Judge(t)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.run.cancel = cancel
	if err := t.subscribe(ctx); err != nil {
		cancel()
		t.unsubscribe()
		return nil, err
	}
	t.run.wg.Go(func() { t.deliveries.streams.Run(ctx) })
	t.run.wg.Go(func() { t.tick(ctx) })
	return t, nil
}

func (t *Tracker) subscribe(ctx context.Context) error {
	for _, on := range []struct {
		subject string
		f       func([]byte, func([]byte) error)
	}{
		{bus.SubjectExperiment, t.onExperiment},
		{bus.SubjectHome(t.id), t.home.onRequest},
		{bus.SubjectDeliver(t.id), t.deliveries.onDelivery},
		{bus.SubjectAck(t.id), t.deliveries.onAck},
		{bus.SubjectSeedSignal(t.id), t.deliveries.onSeedSignal},
		{bus.SubjectSeedAck(t.id), t.deliveries.onSeedAck},
		{bus.SubjectProbe(t.id), t.prober.onProbe},
		{bus.SubjectRevoke, t.trust.onRevoke},
		// Revocations are asked for once new ones are heard: otherwise one that comes in between is lost. They are asked for before
		// others are answered: these would take an empty list for all that there is.
		{bus.SubjectRevokeList, t.trust.onRevokeList},
		{bus.SubjectRevokeKept, t.trust.onKept},
		{bus.SubjectSeedBeat, t.trust.onSeedBeat},
		// The last: a beat heard is answered, and a tracker that hears the answer sends members home.
		{bus.SubjectTrackerBeat, t.onTrackerBeat},
	} {
		switch {
		case on.subject == bus.SubjectExperiment && t.cfg.Judge == nil:
			continue
		case on.subject == bus.SubjectRevokeList:
			t.trust.learn(ctx)
		}
		stop, err := t.bus.Subscribe(on.subject, func(_ string, data []byte, reply func([]byte) error) { on.f(data, reply) })
		if err != nil {
			return err
		}
		t.run.subs = append(t.run.subs, stop)
	}
	return nil
}

func (t *Tracker) unsubscribe() {
	for _, stop := range t.run.subs {
		stop()
	}
	t.run.subs = nil
}

// tick beats, and does what is due: expiring members, naming titles to seeds, registering sessions with new homes.
func (t *Tracker) tick(ctx context.Context) {
	every := time.NewTicker(t.cfg.BeatEvery / turns)
	defer every.Stop()
	t.beat(false)
	up := t.bus.Connected()
	for turn := 1; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		was := up
		if up = t.bus.Connected(); up && !was || turn%turns == 0 {
			t.beat(false) // at once when the bus is back: others have taken this tracker for dead
		}
		if turn%turns == 0 {
			t.maintain()
		}
		t.trust.settle()
		now := t.cfg.Now()
		for _, s := range t.sessions.some(math.MaxInt, turn%turns, turns) {
			s.maintain(now)
		}
	}
}

// maintain does what time brings, once a beat.
func (t *Tracker) maintain() {
	now := t.cfg.Now()
	t.roster.expire(now)
	t.home.maintain(now)
	t.home.subjects.expire(now.Add(-3 * t.cfg.UpdateInterval))
	t.deliveries.streams.Maintain()
	t.learned.forget(now)
	t.audience.maintain(now)
	if t.torrents != nil {
		t.torrents.Maintain(now)
	}
	t.judge.Maintain(now)
	t.shed()
	t.cfg.Metrics.Set(defTrackers, float64(t.roster.live()))
	t.trust.repeat(now)
	t.switches.settle(now)
	t.admission.forget(now)
}

func (t *Tracker) beat(gone bool) {
	t.Publish(bus.SubjectTrackerBeat, &bus.TrackerBeat{
		Tracker: t.id, StartedMs: t.started.UnixMilli(), Sessions: t.sessions.count(), Draining: t.draining.Load(), Gone: gone,
	})
}

func (t *Tracker) onTrackerBeat(data []byte, _ func([]byte) error) {
	var b bus.TrackerBeat
	if !t.decode(data, &b) {
		return
	}
	if t.roster.tracker(b, t.cfg.Now()) {
		t.beat(false) // so that the newcomer knows us before its first viewer comes
	}
}

func (t *Tracker) onExperiment(data []byte, _ func([]byte) error) {
	var m bus.Experiment
	if t.decode(data, &m) {
		t.judge.Hear(&m)
	}
}

// Close drains and returns when nothing of the tracker runs any more.
func (t *Tracker) Close() error {
	t.Drain()
	t.beat(true)
	t.run.cancel()
	t.unsubscribe()
	t.run.wg.Wait()
	t.admission.open.Wait()
	return nil
}
