package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestViewersAreCountedByTheirRole follows two viewers of a title through what changes their roles, until the last has left.
func TestViewersAreCountedByTheirRole(t *testing.T) {
	w, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	counted := func(what string, want map[string]float64) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			for _, role := range signal.Roles {
				if w.metrics.Value(defViewers, "demo", role) != want[role] {
					return false
				}
			}
			return true
		})
	}
	as := func(role string) *viewer {
		v, _ := n.enter(b.token(key, access.Claims{Role: role}), "")
		v.join()
		return v
	}
	one := as("")
	counted("one viewer", map[string]float64{"full": 1})
	two := as("leech")
	counted("one of them never uploads", map[string]float64{"full": 1, "leech": 1})
	one.join()
	counted("a viewer that joins again is counted once", map[string]float64{"full": 1, "leech": 1})
	two.send(&signal.Token{Token: b.token(key, access.Claims{Role: "relay-only"})})
	counted("another token, another role", map[string]float64{"full": 1, "relay-only": 1})

	again, _ := n.enter(b.token(key, access.Claims{}), one.ticket)
	counted("another socket took the session, and has not joined", map[string]float64{"relay-only": 1})
	swarm := again.join().Swarm
	counted("it has", map[string]float64{"full": 1, "relay-only": 1})
	again.send(&signal.Leave{Swarm: swarm})
	counted("it left the title", map[string]float64{"relay-only": 1})
	if err := two.ws.Close(); err != nil {
		t.Fatal(err)
	}
	counted("the other closed its page", nil)
}

// TestATokenCapsUploads: the lower cap of site and token holds.
func TestATokenCapsUploads(t *testing.T) {
	for _, c := range []struct{ site, claim, want int64 }{{0, 0, 0}, {0, 500, 500}, {500, 0, 500}, {500, 2000, 500}, {2000, 500, 500}} {
		t.Run(fmt.Sprint(c.site, c.claim), func(t *testing.T) {
			_, n, b := guarded(t, nil, configured.Policy{UploadKbps: c.site})
			key := b.key(access.EdDSA, "one")
			if _, welcome := n.enter(b.token(key, access.Claims{Upload: c.claim}), ""); welcome.Policy.UploadKbps != c.want {
				t.Errorf("%+v gives %d", c, welcome.Policy.UploadKbps)
			}
		})
	}
}

// TestATokenSaysWhatPagesKeep: a claim goes before the site's policy, in both directions.
func TestATokenSaysWhatPagesKeep(t *testing.T) {
	for _, c := range []struct{ site, claim, want int64 }{{0, 0, 0}, {0, 500, 500}, {500, 0, 500}, {500, 2000, 2000}, {2000, 1, 1}} {
		t.Run(fmt.Sprint(c.site, c.claim), func(t *testing.T) {
			_, n, b := guarded(t, nil, configured.Policy{DiskBytes: c.site})
			key := b.key(access.EdDSA, "one")
			if _, welcome := n.enter(b.token(key, access.Claims{Disk: c.claim}), ""); welcome.Policy.DiskBytes != c.want {
				t.Errorf("%+v gives %d", c, welcome.Policy.DiskBytes)
			}
		})
	}
}

// TestATokenSaysWhatAnUnknownLineIs has a token's claim go before the site's policy, in both directions.
func TestATokenSaysWhatAnUnknownLineIs(t *testing.T) {
	for _, site := range []string{configured.UnknownLineLeech, configured.UnknownLineFull} {
		t.Run(site, func(t *testing.T) {
			_, n, b := guarded(t, nil, configured.Policy{UnknownLine: site})
			key := b.key(access.EdDSA, "one")
			for claim, want := range map[string]string{"": site, "leech": "leech", "full": "full"} {
				if _, welcome := n.enter(b.token(key, access.Claims{Unknown: claim}), ""); welcome.Policy.UnknownLine != want {
					t.Errorf("a site that says %s and a token that says %q give %s", site, claim, welcome.Policy.UnknownLine)
				}
			}
		})
	}
}

// TestWhatUplinksCarryIsObserved: what a viewer's controller lets go, once a report with uploads.
func TestWhatUplinksCarryIsObserved(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	w.clock.Move(10 * time.Second)
	v.send(&signal.Stats{Swarm: swarm, Interval: 10_000, Pacing: &signal.Pacing{Queuing: 12_000, Base: 40_000, Target: 20_000, Window: 9600, Rate: 125_000, Yields: 1}})
	testkit.Eventually(t, "one report has it", func() bool { return w.metrics.Count(defPacing, "demo") == 1 })
	if got, n := w.metrics.Value(defPacing, "demo"), w.metrics.Count(defPacing, "demo"); got != 125_000 || n != 1 {
		t.Errorf("%v bytes a second in %d reports, not 125,000 in one", got, n)
	}
	testkit.Eventually(t, "it gave way once", func() bool { return w.metrics.Value(defYields, "demo") == 1 })
}

// TestManySmallReportsAreOneSample: a viewer that reports on and on, of several memberships, weighs no more in distributions than others.
func TestManySmallReportsAreOneSample(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(nil).viewer("")
	swarm := v.join().Swarm
	handled := 0
	report := func() {
		v.send(&signal.Stats{
			Swarm: swarm, Interval: 600_000, LiveMs: 1, LiveLag: 80_000, Pacing: &signal.Pacing{Queuing: 1, Base: 1, Target: 1, Window: 1, Rate: 1},
		})
		handled++
	}
	for round := range 2 {
		w.clock.Move(10 * time.Second)
		for i := range 15 {
			if report(); i%5 == 4 { // a new membership begins anew
				v.send(&signal.Leave{Swarm: swarm})
				v.join()
			}
		}
		testkit.Eventually(t, "all handled", func() bool { return w.metrics.Count(defHandle, "stats") == handled })
		for _, d := range []*metric.Def{defPacing, defQueuing, defBase, defTarget, defWindow} {
			if n := w.metrics.Count(d, "demo"); n != round+1 {
				t.Errorf("%d samples of %s in %d intervals", n, d.Name, round+1)
			}
		}
		if n := w.metrics.Count(defLiveLag, "demo", "peer"); n != round+1 {
			t.Errorf("%d samples of lag in %d intervals", n, round+1)
		}
	}
}
