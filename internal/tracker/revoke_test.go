package tracker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func longRevocations(n int) []signal.Revocation {
	out := make([]signal.Revocation, n)
	for i := range out {
		out[i] = signal.Revocation{Site: "demo", Prefix: fmt.Sprintf("/%03d/%s/", i, strings.Repeat("x", 200)), MinIssuedAt: time.Now().UnixMilli()}
	}
	return out
}

// TestManyRevocationsReachAViewerAndAnotherTracker: a welcome that holds all of them would pass the limit of a message, and
// no viewer would get one.
func TestManyRevocationsReachAViewerAndAnotherTracker(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	all := longRevocations(360)
	n.trust.revoked.add(all, time.Now())
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	got := map[string]bool{}
	count := func(list []signal.Revocation) {
		for _, r := range list {
			got[r.Prefix] = true
		}
	}
	count(expect[*signal.Welcome](v).Revocations)
	for len(got) < len(all) {
		count(expect[*signal.Revoke](v).Revocations)
	}
	later := w.tracker(nil)
	testkit.Eventually(t, "a tracker that starts later knows the revocations", func() bool { return len(later.trust.revoked.all()) == len(all) })
}

// TestLongRulesLeaveRevocationsToLaterMessages: beside them a welcome with as many revocations as usual would be too large.
func TestLongRulesLeaveRevocationsToLaterMessages(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.Sites = longSite(t) })
	all := longRevocations(180)
	n.trust.revoked.add(all, time.Now())
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	welcome, ok := v.next().(*signal.Welcome)
	if !ok {
		t.Fatal("the first message is no welcome")
	}
	for got := len(welcome.Revocations); got < len(all); {
		got += len(expect[*signal.Revoke](v).Revocations)
	}
}

// TestAWelcomeThatIsTooLargeIsSaidToBe: a viewer that hears nothing would ask again and again, and no operator would know why.
func TestAWelcomeThatIsTooLargeIsSaidToBe(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		c.Sites = longSite(t)
		for range signal.MaxServers {
			one := signal.ICEServer{}
			for range signal.MaxURLs {
				one.URLs = append(one.URLs, "stun:"+strings.Repeat("x", signal.MaxText-5))
			}
			c.ICEServers = append(c.ICEServers, one)
		}
	})
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	if e := expect[*signal.Error](v); e.Code != "internal" || e.Hint == "" {
		t.Errorf("got %+v", e)
	}
	if code := v.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
	testkit.Eventually(t, "the session is gone", func() bool { return n.sessions.count() == 0 })
}

// longSite is one that has as many hosts, and ignores as many parameters, as a site may.
func longSite(t *testing.T) []*configured.Site {
	c := configured.Config{Name: "demo", Hosts: []string{"video.example.com"}}
	for i := range 63 {
		c.Hosts = append(c.Hosts, fmt.Sprintf("%02d.%s.example.com", i, strings.Repeat("x", 230)))
		c.Key.IgnoreQuery = append(c.Key.IgnoreQuery, fmt.Sprintf("%0256d", i))
	}
	for i := range 16 {
		c.Key.IgnorePath = append(c.Key.IgnorePath, fmt.Sprintf("%0256d", i))
	}
	s, err := configured.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return []*configured.Site{s}
}

// TestKeysOfManySitesHoldNoRevocationBack: with them the answer to a tracker that starts would be longer than a message. The tracker hears what is
// revoked all the same, and does not take itself for the first, which believes what seeds say is revoked.
func TestKeysOfManySitesHoldNoRevocationBack(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	sites := make([]string, bus.MaxSites)
	for i := range sites {
		sites[i] = fmt.Sprintf("%0*d", signal.MaxSite, i)
	}
	for range 16 {
		seed := newID()
		key := signal.VerifyKey{KeyID: seed[:8], Alg: signal.AlgSeed, Key: make(signal.Bytes, 65)}
		n.roster.seed(bus.SeedBeat{Seed: seed, Sites: sites, VerifyKeys: []bus.SeedKey{{VerifyKey: key, Sites: sites}}}, w.clock.Now())
	}
	n.trust.revoked.add(longRevocations(1), w.clock.Now())
	later := w.tracker(nil)
	if list, until := later.trust.revoked.all(), later.trust.keptUntil; len(list) != 1 || !until.IsZero() {
		t.Errorf("a tracker that starts later knows %d revocations, and believes seeds until %v", len(list), until)
	}
}

func TestManyRevocationsAtOnceReachAllSessions(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	v := n.viewer("")
	all := longRevocations(360)
	w.revoke(all...)
	for got := 0; got < len(all); {
		got += len(expect[*signal.Revoke](v).Revocations)
	}
}

func TestRevocationsAreBoundedAndTheNewestStay(t *testing.T) {
	var r revocations
	long := longRevocations(bus.MaxRevoked)
	for i := range long {
		long[i].Prefix += strings.Repeat("<", 700) // each of which takes six bytes
		r.add(long[i:i+1], time.Now())
	}
	list := r.all()
	if b, err := bus.Encode(&bus.RevokeList{Revocations: list}); err != nil || len(b) > bus.MaxMessage*3/4 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if len(list) < 10 || list[0].Prefix != long[len(long)-1].Prefix {
		t.Errorf("%d are left", len(list))
	}
	if fresh := r.add(list[:1], time.Now()); len(fresh) != 0 {
		t.Errorf("%d were taken for new", len(fresh))
	}
	sum := 0
	for _, part := range parts(list) {
		if b, err := signal.Encode(&signal.Revoke{Revocations: part}); err != nil || len(b) > partBytes+1024 {
			t.Errorf("a part of %d bytes: %v", len(b), err)
		}
		sum += len(part)
	}
	if sum != len(list) {
		t.Errorf("%d of %d are in the parts", sum, len(list))
	}
	if p := parts(nil); len(p) != 1 || p[0] == nil {
		t.Errorf("no revocations are one empty part: %v", p)
	}
}

// TestPurgesDoNotPushOutKeysAndTombstones: a key that is out must not come back because a film was purged often.
func TestPurgesDoNotPushOutKeysAndTombstones(t *testing.T) {
	var r revocations
	now := time.Now()
	key := signal.Revocation{KeyID: []byte("12345678")}
	tomb := signal.Revocation{Site: "demo", Prefix: "/gone/", MinIssuedAt: now.Add(time.Hour).UnixMilli()}
	r.add([]signal.Revocation{key, tomb}, now)
	purges := make([]signal.Revocation, 2*bus.MaxRevoked)
	for i := range purges {
		purges[i] = signal.Revocation{Site: "demo", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now.UnixMilli()}
	}
	r.add(purges, now)
	keys, rest, tombstones := r.counted(now)
	if keys != 1 || tombstones != 1 || rest != bus.MaxRevoked-2 {
		t.Errorf("%d keys, %d tombstones, %d purges", keys, tombstones, rest)
	}
}

// TestTheOldestPurgesGoAtEveryTracker: one that starts hears all purges in one list, and one that was cut off hears old ones last. They keep the
// same as the tracker that heard each as it was made.
func TestTheOldestPurgesGoAtEveryTracker(t *testing.T) {
	began := time.Now()
	now := began.Add(time.Hour)
	purge := func(i int) []signal.Revocation {
		return []signal.Revocation{{Site: "demo", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: began.Add(time.Duration(i) * time.Second).UnixMilli()}}
	}
	var first, started, cut revocations
	for i := range bus.MaxRevoked {
		first.add(purge(i), now)
		if i%2 == 1 {
			cut.add(purge(i), now)
		}
	}
	started.add(first.all(), now)
	cut.add(first.all(), now)
	const more = 8
	for i := range more {
		for _, r := range []*revocations{&first, &started, &cut} {
			r.add(purge(bus.MaxRevoked+i), now)
		}
	}
	for name, r := range map[string]*revocations{"the first": &first, "one that started": &started, "one that was cut off": &cut} {
		list := r.all()
		if len(list) != bus.MaxRevoked {
			t.Fatalf("%s has %d", name, len(list))
		}
		for i, o := range list {
			if want := purge(bus.MaxRevoked + more - 1 - i)[0]; o.Prefix != want.Prefix {
				t.Errorf("%s has %s in place %d, want %s", name, o.Prefix, i, want.Prefix)
				break
			}
		}
		if fresh := r.add(first.all(), now); len(fresh) != 0 {
			t.Errorf("%s takes %d for new that another tracker repeats", name, len(fresh))
		}
	}
}

// TestARevokedKeyIsNoKey: a viewer that comes now is not told a key that nothing counts under.
func TestARevokedKeyIsNoKey(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	seed, _ := w.seed()
	testkit.Eventually(t, "the key is known", func() bool { return len(n.trust.keysFor("demo")) == 1 })
	v := n.viewer("")
	w.revoke(signal.Revocation{KeyID: seed[:8]})
	if m := expect[*signal.Revoke](v); len(m.Revocations) != 1 {
		t.Errorf("pushed %+v", m)
	}
	u := n.socket()
	u.send(&signal.Hello{Version: 1, Site: "demo"})
	if m := expect[*signal.Welcome](u); len(m.VerifyKeys) != 0 || len(m.Revocations) != 1 {
		t.Errorf("a newcomer is told the keys %+v, revoked %+v", m.VerifyKeys, m.Revocations)
	}
}

// TestSeedsThatStartTogetherAreToldTogether: each of them changes the keys, and a viewer is sent all keys at most twice a beat.
func TestSeedsThatStartTogetherAreToldTogether(t *testing.T) {
	const seeds = 20
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.BeatEvery = time.Hour }) // only the test has a beat go by
	v := n.viewer("")
	for range seeds {
		seed := newID()
		key := signal.VerifyKey{KeyID: seed[:8], Alg: signal.AlgSeed, Key: make(signal.Bytes, 65)}
		b, err := bus.Encode(&bus.SeedBeat{Seed: seed, Sites: []string{"demo"}, VerifyKeys: []bus.SeedKey{{VerifyKey: key, Sites: []string{"demo"}}}})
		if err != nil {
			t.Fatal(err)
		}
		n.trust.onSeedBeat(b, nil)
	}
	n.trust.settle()
	w.clock.Move(time.Hour / 2)
	n.trust.settle()
	n.trust.settle()
	if sent := w.metrics.Value(defMessages, "keys", "out"); sent != 2 {
		t.Errorf("the viewer was sent keys %v times", sent)
	}
	for _, want := range []int{1, seeds} {
		if m := expect[*signal.Keys](v); len(m.VerifyKeys) != want {
			t.Errorf("it was sent %d keys, want %d", len(m.VerifyKeys), want)
		}
	}
}

// interrupted calls a function once, when a welcome has been made and not yet been queued.
type interrupted struct {
	metric.Sink
	once sync.Once
	f    func()
}

func (i *interrupted) Add(d *metric.Def, v float64, labels ...string) {
	i.Sink.Add(d, v, labels...)
	if d == defMessages && labels[0] == "welcome" {
		i.once.Do(i.f)
	}
}

// TestNothingIsLostBeforeTheWelcome: what is pushed to a session whose client has no welcome yet is not heard.
func TestNothingIsLostBeforeTheWelcome(t *testing.T) {
	w := newWorld(t)
	sink := &interrupted{Sink: &w.metrics}
	n := w.tracker(func(c *Config) { c.Metrics = sink })
	revocation := longRevocations(1)
	key := signal.VerifyKey{KeyID: []byte("12345678"), Alg: 1, Key: make(signal.Bytes, 65)}
	sink.f = func() {
		b, err := bus.Encode(&bus.RevokeMessage{Revocations: revocation})
		if err != nil {
			t.Error(err)
		}
		n.trust.onRevoke(b, nil)
		b, err = bus.Encode(&bus.SeedBeat{Seed: newID(), Sites: []string{"demo"}, VerifyKeys: []bus.SeedKey{{VerifyKey: key, Sites: []string{"demo"}}}})
		if err != nil {
			t.Error(err)
		}
		n.trust.onSeedBeat(b, nil)
	}
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	if m := expect[*signal.Welcome](v); len(m.Revocations)+len(m.VerifyKeys) != 0 {
		t.Fatalf("the welcome knows already: %+v", m)
	}
	if m := expect[*signal.Keys](v); len(m.VerifyKeys) != 1 {
		t.Errorf("keys after the welcome: %+v", m)
	}
	if m := expect[*signal.Revoke](v); len(m.Revocations) != 1 || m.Revocations[0].Prefix != revocation[0].Prefix {
		t.Errorf("revocations after the welcome: %+v", m)
	}
}

// late is a bus over which something happens right after the list of revocations was answered.
type late struct {
	Bus
	f func()
}

func (l *late) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	b, err := l.Bus.Request(ctx, subject, data)
	if subject == bus.SubjectRevokeList {
		l.f()
	}
	return b, err
}

func (w *world) revoke(list ...signal.Revocation) {
	w.t.Helper()
	b, err := bus.Encode(&bus.RevokeMessage{Revocations: list})
	if err == nil {
		err = w.bus.Publish(bus.SubjectRevoke, b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestRevocationWhileATrackerStartsIsNotLost(t *testing.T) {
	w := newWorld(t)
	revocation := longRevocations(1)
	w.through = &late{w.bus, func() { w.revoke(revocation...) }}
	n := w.tracker(nil)
	testkit.Eventually(t, "the tracker knows the revocation", func() bool { return len(n.trust.revoked.all()) == 1 })
}

// TestReplicaThatWasCutOffLearnsRevocations: the bus keeps nothing for a replica that is not there.
func TestReplicaThatWasCutOffLearnsRevocations(t *testing.T) {
	w := newWorld(t)
	a, b := w.tracker(nil), w.tracker(nil)
	v := b.viewer("")
	a.trust.revoked.add(longRevocations(1), w.clock.Now()) // and no other tracker heard it
	w.clock.Move(revokeAgain)
	if r := expect[*signal.Revoke](v).Revocations; len(r) != 1 {
		t.Errorf("pushed %+v", r)
	}
	if n := len(b.trust.revoked.all()); n != 1 {
		t.Errorf("%d revocations are known", n)
	}
	w.clock.Move(7 * time.Hour) // the certificates that it withdraws have all expired
	testkit.Eventually(t, "the revocation is forgotten everywhere", func() bool { return len(a.trust.revoked.all())+len(b.trust.revoked.all()) == 0 })
}
