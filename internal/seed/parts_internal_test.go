package seed

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var silent = slog.New(slog.DiscardHandler)

func TestNothingBeginsOnceASeedEnds(t *testing.T) {
	all := newTasks()
	returned := false
	if !all.begin(func() { <-all.ctx.Done(); returned = true }) || all.isEnding() {
		t.Error("nothing begins")
	}
	all.end()
	if all.begin(func() { t.Error("begun") }) || !all.isEnding() {
		t.Error("something begins")
	}
	if all.wait(); !returned {
		t.Error("wait does not wait")
	}
}

func TestTrackersAreKnownByTheirBeats(t *testing.T) {
	now := time.Unix(1000, 0)
	all := newTrackers()
	beat := func(n byte, gone bool) bool {
		return all.heard(&bus.TrackerBeat{Tracker: signal.ID{n}, Gone: gone}, now)
	}
	if all.newcomers() || !beat(1, false) || beat(1, false) || !all.newcomers() || all.newcomers() {
		t.Error("a newcomer is one once")
	}
	now = now.Add(trackerLives)
	beat(2, false)
	if all.expire(now); !all.lives(signal.ID{1}) || len(all.list()) != 2 {
		t.Error("one that beat in time is forgotten")
	}
	now = now.Add(1)
	if all.expire(now); all.lives(signal.ID{1}) || !all.lives(signal.ID{2}) {
		t.Error("one that does not beat lives")
	}
	if beat(2, true) || all.lives(signal.ID{2}) || !beat(2, false) {
		t.Error("one that said goodbye lives, or is no newcomer when it is back")
	}
}

// TestWhatIsTakenDownOutlivesARestart: revocations and switches are on disk when take returns.
func TestWhatIsTakenDownOutlivesARestart(t *testing.T) {
	dir, now := t.TempDir(), time.UnixMilli(1_790_000_000_000)
	open := func() *takedowns {
		all, err := openTakedowns(dir, map[string]bool{"demo": false, "closed": true}, nil, silent, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := open()
	purge := signal.Revocation{Site: "demo", Prefix: "/film/", MinIssuedAt: now.UnixMilli()}
	if !all.take([]signal.Revocation{purge}, nil) || all.take([]signal.Revocation{purge}, nil) {
		t.Error("a revocation is news once")
	}
	if all.take(nil, all.statements("demo", true, "operator", time.Time{})) {
		t.Error("a switch revokes")
	}
	for _, one := range []*takedowns{all, open()} {
		old := &certificate.Certificate{Site: "demo", Name: "/film/0.ts", IssuedAt: now.Add(-time.Second)}
		if !one.withdraws(old) || one.withdraws(&certificate.Certificate{Site: "demo", Name: "/film/0.ts", IssuedAt: now}) || one.withdraws(&certificate.Certificate{Site: "demo", Name: "/other/0.ts"}) {
			t.Error("not what was purged is withdrawn")
		}
		if !one.since("demo", "/film/0.ts").Equal(now) || len(one.messages()) != 1 {
			t.Errorf("purged at %s", one.since("demo", "/film/0.ts"))
		}
		if why, is := one.refuses("demo", "/film/0.ts"); !is || why != peer.NoneNotAllowed || !one.off("closed") {
			t.Error("a site that is off is served")
		}
	}
	all.configure("closed", false)
	all.configure("stranger", true)
	if all.off("closed") || all.off("stranger") {
		t.Error("the configuration does not decide, or decides for a site that the seed does not serve")
	}
}

// TestAPurgeOutlivesWhatAPackagerSigned, also over a restart, and where the set is full.
func TestAPurgeOutlivesWhatAPackagerSigned(t *testing.T) {
	dir, now := t.TempDir(), time.UnixMilli(1_790_000_000_000)
	open := func() *takedowns {
		all, err := openTakedowns(dir, map[string]bool{"films": false, "demo": false}, []string{"films"}, silent, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := open()
	signed := now.Add(-time.Millisecond)
	old := func(site string) *certificate.Certificate {
		return &certificate.Certificate{Site: site, Name: "/a", IssuedAt: signed}
	}
	all.take([]signal.Revocation{{Site: "films", Prefix: "/", MinIssuedAt: now.UnixMilli()}, {Site: "demo", Prefix: "/", MinIssuedAt: now.UnixMilli()}}, nil)
	now = now.Add(certificate.MaxPackaged)
	all.forget()
	for _, one := range []*takedowns{all, open()} {
		if !one.withdraws(old("films")) || one.withdraws(old("demo")) {
			t.Error("a purge is forgotten before a packager's certificate ends, or long after those of seeds have")
		}
	}
	var many []signal.Revocation
	for i := range certificate.MaxRevocations - 1 {
		many = append(many, signal.Revocation{Site: "films", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now.Add(-certificate.MaxLife).UnixMilli()})
	}
	all.take(many, nil)
	all.take([]signal.Revocation{{Site: "demo", Prefix: "/now/", MinIssuedAt: now.UnixMilli()}}, nil)
	if !all.withdraws(&certificate.Certificate{Site: "demo", Name: "/now/a", IssuedAt: now.Add(-1)}) || all.withdraws(old("films")) {
		t.Error("the oldest did not make room for a purge of now")
	}
}

// TestAnIssuerCertifiesOneContent, until its certificate ends or is withdrawn.
func TestAnIssuerCertifiesOneContent(t *testing.T) {
	dir, now := t.TempDir(), time.UnixMilli(1_790_000_000_000)
	clock := func() time.Time { return now }
	downs, err := openTakedowns(dir, map[string]bool{"demo": false}, nil, silent, clock)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *issuer {
		i, err := openIssuer(dir, []string{"demo"}, downs, newVerifiers(), metric.Discard, silent, clock)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	i := open()
	r := &ref{id: segment.NewID("demo", "/film/0.ts"), seg: playlist.Entry{Name: "/film/0.ts", Path: "/film/0.ts"}, live: true}
	issue := func(data string) (*held, error) {
		return i.issue("demo", r, i.key(), now, &Fetched{Data: []byte(data), ObjectLength: int64(len(data))})
	}
	first, err := issue("one")
	if err != nil || !i.good(first.cert) || i.ending(first.cert) || i.judge(first.cert) != good {
		t.Fatalf("%v", err)
	}
	if _, err := issue("two"); !errors.Is(err, errContradicts) {
		t.Errorf("other content: %v", err)
	}
	now = now.Add(lifeLive*3/4 + time.Second)
	if again, err := issue("one"); err != nil || !i.ending(first.cert) || !again.cert.NotAfter.After(first.cert.NotAfter) {
		t.Errorf("the same content: %v", err)
	}
	i.disown(r.id)
	if _, err := issue("two"); err != nil {
		t.Errorf("after it was disowned: %v", err)
	}
	before := i.standing("demo", "/film/0.ts")
	downs.take([]signal.Revocation{{Site: "demo", Prefix: "/film/", MinIssuedAt: now.UnixMilli()}}, nil)
	if i.good(first.cert) || i.judge(first.cert) != bad || i.standing("demo", "/film/0.ts") == before {
		t.Error("a purge changes nothing")
	}
	key := i.key().id
	downs.take([]signal.Revocation{{KeyID: key[:]}}, nil)
	if why, is := i.refuses("demo", "/other.ts"); !is || why != peer.NoneWithdrawn || i.signs() {
		t.Error("it certifies with a key that is revoked")
	}
	if restarted := open(); restarted.key().id == key || !restarted.signs() {
		t.Error("a restart brings the revoked key back")
	}
	if !i.rotate() || i.key().id == key || !i.signs() {
		t.Error("no other key")
	}
}

// TestTitlesWithLinksStay, whatever else is named.
func TestTitlesWithLinksStay(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newCatalog(newTasks(), 1<<20, 10, metric.Discard, silent, func() time.Time { return now })
	all := newTitles(map[string]*siteState{"demo": {rules: testSite(t), name: "demo"}}, c, 2)
	name := func(n byte, viewers int) (*title, bool) {
		return all.named(&bus.Title{Site: "demo", Manifest: "/film/index.m3u8", Swarm: signal.ID{n}, Viewers: viewers})
	}
	watched, _ := name(1, 1)
	watched.links.Add(1)
	name(2, 3)
	if one, full := name(3, 3); one != nil || !full {
		t.Error("a title has the place of one with as many viewers")
	}
	if one, full := name(3, 4); one == nil || full || all.get(swarm.ID{2}) != nil || all.get(swarm.ID{1}) != watched {
		t.Error("not the title without links makes room")
	}
	now = now.Add(titleKept + 1)
	if left, manifests := all.forget(now); left != 1 || !manifests[manifestID{"demo", "/film/index.m3u8"}] {
		t.Errorf("%d titles are left", left)
	}
	watched.links.Add(-1)
	if left, _ := all.forget(now); left != 0 {
		t.Error("a title stays that nothing wants")
	}
	if one, _ := name(4, 0); one != nil {
		t.Error("a title without viewers begins")
	}
}

// pairs is a link that takes candidates. It satisfies transfer.Link as far as candidates need it.
type pairs struct {
	transfer.Link
	got []string
}

func (p *pairs) AddCandidate(c transfer.Candidate) error {
	p.got = append(p.got, c.Candidate)
	return nil
}

// TestCandidatesWaitForTheirTurn: the viewer's for the link, ours for the answer.
func TestCandidatesWaitForTheirTurn(t *testing.T) {
	var out []string
	c := candidates{send: func(one transfer.Candidate) { out = append(out, one.Candidate) }}
	link := &pairs{}
	c.theirs(transfer.Candidate{Candidate: "a"})
	c.ours(transfer.Candidate{Candidate: "x"})
	c.ours(transfer.Candidate{Candidate: string(make([]byte, signal.MaxCandidate+1))})
	if len(out) > 0 {
		t.Error("ours go before the answer")
	}
	c.linked(link)
	c.theirs(transfer.Candidate{Candidate: "b"})
	c.flow()
	c.ours(transfer.Candidate{Candidate: "y"})
	if !slices.Equal(link.got, []string{"a", "b"}) || !slices.Equal(out, []string{"x", "y"}) {
		t.Errorf("the link got %q, the viewer %q", link.got, out)
	}
	early := candidates{}
	for range 2 * maxCandidates {
		early.theirs(transfer.Candidate{})
	}
	if len(early.waiting) != maxCandidates {
		t.Errorf("%d wait for a link", len(early.waiting))
	}
}

// TestAConnectionThatHasEndedDoesNotOpen, and gives back what it took.
func TestAConnectionThatHasEndedDoesNotOpen(t *testing.T) {
	upload := &transfer.Upload{}
	begin := func(transfer.Link, *transfer.Session) *transfer.Upload { return upload }
	var c connection
	if c.open(&account{}, begin) || c.payer() != nil || c.end() != nil {
		t.Error("it opens without a link")
	}
	if c.answered(&pairs{}, &transfer.Session{}) || c.open(&account{}, begin) {
		t.Error("it opens although it was to end")
	}
	c = connection{}
	a := &account{}
	if !c.answered(&pairs{}, &transfer.Session{}) || c.payer() != nil || !c.open(a, begin) || c.payer() != a {
		t.Error("it does not open")
	}
	if session, u := c.parts(); session == nil || u != upload {
		t.Error("not what it was opened with")
	}
	if _, _, open := c.ticks(); !open || c.isClosed() {
		t.Error("it is not open")
	}
	if u, paid := c.ended(); u != upload || paid != a || !c.isClosed() {
		t.Error("not what it took is given back")
	}
	if _, _, open := c.ticks(); open {
		t.Error("it is open after its end")
	}
}

// TestAReadForASiblingIsShared: with the sessions that want the same segment, in either order.
func TestAReadForASiblingIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, reads := make(chan struct{}), 0
		all := newTasks()
		l := newLoads(func(id segment.ID) *held {
			reads++
			<-gate
			return &held{id: id}
		}, all.begin, 1)
		came := make(chan *held, 2)
		go func() { came <- l.now(segment.ID{1}) }()
		synctest.Wait()
		if !l.join(segment.ID{1}, func(h *held) { came <- h }) {
			t.Error("a session does not wait for the sibling's read")
		}
		close(gate)
		for range 2 {
			if h := <-came; h == nil || h.id != (segment.ID{1}) {
				t.Error("not the segment")
			}
		}
		gate = make(chan struct{})
		l.want(&reader{}, segment.ID{2}, func(h *held) { came <- h })
		go func() { came <- l.now(segment.ID{2}) }()
		synctest.Wait()
		close(gate)
		<-came
		<-came
		if all.wait(); reads != 2 || len(l.under) > 0 || l.running != 0 {
			t.Errorf("%d reads of two segments", reads)
		}
	})
}
