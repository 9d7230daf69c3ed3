package viewer

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// listRig is a rig that knows the packager's key.
func listRig(t *testing.T) *rig {
	r := newRig(t)
	keys, err := verifyKeys("test", []signal.VerifyKey{packagerVerifyKey()})
	if err != nil {
		t.Fatal(err)
	}
	r.verification.keys = keys
	return r
}

// plays has the player ask for a segment of a playlist.
func (r *rig) plays(n int, playlist string) *seg {
	s := r.segment(n, nil)
	s.playlist = playlist
	r.verification.lists.asked(s)
	return s
}

const rigList = "http://film.test/index.m3u8"

// TestAListIsLoadedOnceAndAgainForWhatItLacks, with pauses in between.
func TestAListIsLoadedOnceAndAgainForWhatItLacks(t *testing.T) {
	r := listRig(t)
	data := media(2)
	a := r.plays(0, rigList)
	if r.plays(0, rigList); len(r.fetches) != 1 || r.fetches[0].URL != rigList+".leeway" {
		t.Fatalf("loaded: %v", r.fetches)
	}
	r.verification.origin(a, data)
	r.answer(0, listOf(short(r.w.now, time.Hour, a.name, data)), nil)
	if a.cert == nil || a.state != schedule.CertHeld || !r.store.get(a.id).complete() || r.verification.lists.figures.Completed != 1 {
		t.Fatalf("not completed: %+v", r.verification.lists.figures)
	}
	b := r.plays(1, rigList)
	if len(r.fetches) != 1 {
		t.Error("loaded again although nothing has come that it lacks")
	}
	if r.verification.origin(b, data); len(r.fetches) != 1 {
		t.Error("loaded again at once")
	}
	r.w.run(listEvery)
	if r.verification.origin(b, data); len(r.fetches) != 2 {
		t.Fatalf("%d loads", len(r.fetches))
	}
	if r.verification.lists.load(r.verification.lists.byURL[rigList], b); len(r.fetches) != 2 {
		t.Error("two lists are loaded at a time")
	}
	r.answer(1, listOf(short(r.w.now, time.Hour, a.name, data), short(r.w.now, time.Hour, b.name, data)), nil)
	if b.cert == nil || b.uncertified != nil {
		t.Error("what came meanwhile is not completed")
	}
}

// TestSeedsAreNotAskedAheadOfTheFirstList: for two seconds at most, and only for what the player has not asked for.
func TestSeedsAreNotAskedAheadOfTheFirstList(t *testing.T) {
	r := listRig(t)
	ahead, asked := r.segment(1, nil), r.segment(2, nil)
	r.waits(asked, time.Minute)
	packaged := func(s *seg) bool { return r.view.segment(s).Packaged }
	if packaged(ahead) {
		t.Error("held back before a list is on its way")
	}
	r.plays(0, rigList)
	if !packaged(ahead) || packaged(asked) {
		t.Errorf("held back: ahead %v, asked %v", packaged(ahead), packaged(asked))
	}
	if r.w.run(listFirst); packaged(ahead) {
		t.Error("held back for longer")
	}
	r.answer(0, listOf(short(r.w.now, time.Hour, ahead.name, media(1))), nil)
	if !packaged(ahead) || packaged(asked) {
		t.Error("not what the list has")
	}
}

// TestAListThatIsNotThereIsAskedForLessAndLess, and so is one that is garbage or too long.
func TestAListThatIsNotThereIsAskedForLessAndLess(t *testing.T) {
	r := listRig(t)
	s := r.plays(0, rigList)
	answers := []func(int){
		func(n int) { r.answer(n, nil, errors.New("status 404")) },
		func(n int) { r.answer(n, []byte("<html>"), nil) },
		func(n int) { r.answer(n, make([]byte, mostList+1), nil) },
		func(n int) { r.answer(n, listOf(), nil) }, // a list, without the segment
	}
	wait := listRest
	for n := range 12 {
		if len(r.fetches) != n+1 {
			t.Fatalf("%d loads after %d", len(r.fetches), n)
		}
		answers[n%len(answers)](n)
		r.w.run(wait - 2*time.Millisecond)
		if r.verification.origin(s, media(1)); len(r.fetches) != n+1 {
			t.Fatalf("load %d came too early", n+1)
		}
		r.w.run(2 * time.Millisecond)
		r.verification.origin(s, media(1))
		wait = min(2*wait, listRests)
	}
	if f := r.verification.lists.figures; f.Failed != 9 || f.Loaded != 3 {
		t.Errorf("%+v", f)
	}
	r.answer(12, listOf(short(r.w.now, time.Hour, s.name, media(1))), nil)
	if p := r.verification.lists.byURL[rigList]; s.cert == nil || p.misses != 0 {
		t.Errorf("%d misses after a list that has it", p.misses)
	}
}

// TestAListThatGrowsIsKept: that of a live stream lags behind its playlist, load for load. It is asked for again with each segment.
func TestAListThatGrowsIsKept(t *testing.T) {
	r := listRig(t)
	var entries [][]byte
	for n := range 20 {
		s := r.plays(n, rigList)
		s.ref.Duration = 2 * time.Second
		r.verification.origin(s, media(1))
		if len(r.fetches) != n+1 {
			t.Fatalf("%d loads for %d segments", len(r.fetches), n+1)
		}
		r.answer(n, listOf(entries...), nil) // all but this one
		entries = append(entries, short(r.w.now, time.Hour, s.name, media(1)))
		if n == 0 {
			r.w.run(listRest) // it was empty
		}
		r.w.run(1900 * time.Millisecond) // a player's reloads come a little sooner or later
	}
	if c := r.verification.lists.figures.Completed; c != 19 {
		t.Errorf("%d of 20 are certified", c)
	}
}

// TestNoListIsLoadedWithoutAUse: no packager's key, no uploads, delivery off. A load that runs is given up.
func TestNoListIsLoadedWithoutAUse(t *testing.T) {
	r := newRig(t)
	if r.plays(0, rigList); len(r.fetches) != 0 {
		t.Error("loaded without a packager's key")
	}
	r = listRig(t)
	r.uploads = false
	if r.plays(0, rigList); len(r.fetches) != 0 {
		t.Error("loaded by a viewer that sends nothing")
	}
	r.uploads = true
	r.setOff(schedule.ByPolicy)
	if r.plays(0, rigList); len(r.fetches) != 0 {
		t.Error("loaded while delivery is off")
	}
	r.setOff("")
	if r.plays(0, rigList); len(r.fetches) != 1 {
		t.Fatal("not loaded")
	}
	if r.setOff(schedule.ByPolicy); r.canceled != 1 || r.verification.lists.running != nil {
		t.Error("a load goes on while delivery is off")
	}
	r.answer(0, listOf(), nil)
	if f := r.verification.lists.figures; f != (ListFigures{}) {
		t.Errorf("what was given up counts: %+v", f)
	}
}

// TestBytesThatContradictAListArePlayedAndNotShared.
func TestBytesThatContradictAListArePlayedAndNotShared(t *testing.T) {
	r := listRig(t)
	data, other := media(2), append(media(2)[1:], 9)
	s := r.plays(0, rigList)
	r.answer(0, listOf(short(r.w.now, time.Hour, s.name, other)), nil)
	o := r.waits(s, time.Minute)
	r.loads.startOrigin(s, schedule.NoHolder)
	r.answer(1, data, nil)
	if o.n != 1 || o.err != nil || o.got.Len() != len(data) {
		t.Fatalf("the player has %+v, %v", o.got, o.err)
	}
	if r.ledger.sum().Contradictions != 1 || r.store.get(s.id) != nil || s.cert != nil || s.uncertified != nil {
		t.Error("not counted, or kept")
	}
}

// TestEntriesCountByTheRulesOfCertificates: expiry, revocations, keys, signature, and the older of two lists.
func TestEntriesCountByTheRulesOfCertificates(t *testing.T) {
	data := media(2)
	name := segment.WholeName("/a.ts")
	has := func(t *testing.T, issued time.Duration, life time.Duration, change func(*rig, []byte)) bool {
		r := listRig(t)
		s := r.plays(0, rigList)
		entry := short(r.w.now.Add(issued), life, name, data)
		if change != nil {
			change(r, entry)
		}
		r.answer(0, listOf(entry), nil)
		r.verification.origin(s, data)
		packaged := r.view.segment(s).Packaged
		if packaged && s.cert != nil {
			t.Error("packaged although it is certified")
		}
		return s.cert != nil
	}
	for what, c := range map[string]struct {
		issued, life time.Duration
		change       func(*rig, []byte)
		want         bool
	}{
		"valid":           {-time.Hour, 2 * time.Hour, nil, true},
		"expired":         {-3 * time.Hour, 2 * time.Hour, nil, false},
		"from the future": {time.Hour, 2 * time.Hour, nil, false},
		"purged": {-time.Hour, 2 * time.Hour, func(r *rig, _ []byte) {
			r.verification.revoke([]certificate.Revocation{{Site: "test", Prefix: "/", MinIssuedAt: r.w.now}})
		}, false},
		"key revoked": {-time.Hour, 2 * time.Hour, func(r *rig, _ []byte) {
			r.verification.revoke([]certificate.Revocation{{KeyID: certificate.KeyIDOf(&packagerKey().PublicKey)}})
		}, false},
		"forged": {-time.Hour, 2 * time.Hour, func(_ *rig, entry []byte) { entry[len(entry)-1] ^= 1 }, false},
		"key replaced": {-time.Hour, 2 * time.Hour, func(r *rig, _ []byte) {
			r.verification.keys, _ = verifyKeys("test", []signal.VerifyKey{})
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			if got := has(t, c.issued, c.life, c.change); got != c.want {
				t.Errorf("certified: %v", got)
			}
		})
	}
	r := listRig(t)
	s := r.plays(0, rigList)
	now := r.w.now
	r.answer(0, listOf(short(now, time.Hour, name, data)), nil)
	p := r.verification.lists.byURL[rigList]
	if err := r.verification.lists.take(p, listOf(short(now.Add(-time.Minute), time.Hour, name, media(1)))); err != nil {
		t.Fatal(err)
	}
	if r.verification.origin(s, data); s.cert == nil {
		t.Error("an older list has taken the place of a newer one")
	}
}

// TestAPeerAndAListThatDifferAreADispute: the name is withdrawn until a revocation covers the older one.
func TestAPeerAndAListThatDifferAreADispute(t *testing.T) {
	for _, listFirst := range []bool{true, false} {
		r := listRig(t)
		data, other := media(2), append(media(2)[1:], 9)
		keys, err := verifyKeys("test", append(newTracker(r.w, newFilm(r.w, 1, time.Second, 1)).keys, packagerVerifyKey()))
		if err != nil {
			t.Fatal(err)
		}
		r.verification.keys = keys
		s := r.plays(0, rigList)
		f := r.peer(2, schedule.Viewer, 0)
		f.holds(s, 2)
		show := func() {
			s.asked(f.id, 1)
			f.says(peer.Certificate{Segment: s.key, Raw: issue(r.w, s.name, data)})
		}
		list := func() { r.answer(0, listOf(short(r.w.now.Add(-time.Minute), time.Hour, s.name, other)), nil) }
		if listFirst {
			list()
			show()
		} else {
			show()
			list()
		}
		if s.disputed == nil || s.disputed[0].Alg != certificate.Packager || s.cert != nil || r.ledger.sum().Disputes != 1 || f.gone {
			t.Errorf("list first %v: disputed %v, %d disputes, gone %v", listFirst, s.disputed, r.ledger.sum().Disputes, f.gone)
		}
		r.verification.revoke([]certificate.Revocation{{Site: "test", Prefix: "/", MinIssuedAt: r.w.now.Add(-time.Second)}})
		if s.disputed != nil || s.state != schedule.CertNone {
			t.Error("a revocation of the older one does not end it")
		}
	}
}

// TestTheListsOfFewPlaylistsAreKept: the ones that were asked for last.
func TestTheListsOfFewPlaylistsAreKept(t *testing.T) {
	r := listRig(t)
	r.uploads = false
	for n := range mostLists + 2 {
		r.plays(0, rigList+"?"+hex.EncodeToString([]byte{byte(n)}))
		r.plays(1, rigList+"?00")
	}
	l := r.verification.lists
	if len(l.order) != mostLists || len(l.byURL) != mostLists || !slices.Contains(l.order, rigList+"?00") {
		t.Errorf("%d lists, %v", len(l.byURL), l.order)
	}
}
