package seed

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const firstManifest, besideManifest = "/news/master.m3u8", "/extra/master.m3u8"

// inFormats runs a test with a title of two manifests, whose segments have names of their own. The first one has been read.
func inFormats(t *testing.T, end string, f func(t *testing.T, o *stations, title *title)) {
	inStations(t, 2, end, func(t *testing.T, o *stations) {
		title := newTitle(o.catalog, o.site, signal.ID{1}, firstManifest)
		title.choose(firstManifest, besideManifest)
		title.want(guest(1, "a"))
		synctest.Wait()
		f(t, o, title)
	})
}

// took is how long a title takes to find a segment, and what it finds.
func took(t *testing.T, title *title, id segment.ID, p party) (d time.Duration, found bool, why peer.NoneReason) {
	began := time.Now()
	r, why := title.find(t.Context(), id, p)
	return time.Since(began), r != nil, why
}

// TestTheManifestBesideIsReadForWhatTheFirstLacks, once the first one has been, and charged to the party that wants it. What the first one
// lists needs it not.
func TestTheManifestBesideIsReadForWhatTheFirstLacks(t *testing.T) {
	for name, end := range map[string]string{"live": "", "a film": "#EXT-X-ENDLIST\n"} {
		t.Run(name, func(t *testing.T) {
			inFormats(t, end, func(t *testing.T, o *stations, title *title) {
				second := guest(2, "b")
				if d, found, _ := took(t, title, o.id("/news", 1, o.newest()-1), second); !found || d > 0 || o.count(besideManifest) > 0 {
					t.Errorf("a segment of the first: %v after %v; the other one was asked for %d times", found, d, o.count(besideManifest))
				}
				id := o.id("/extra", 1, o.newest()-1)
				if d, found, _ := took(t, title, id, second); !found || d > stationTarget {
					t.Errorf("a segment of the other one: %v after %v", found, d)
				}
				ix := o.catalog.peek(manifestID{"demo", besideManifest})
				if all := o.catalog.payers(ix); len(all) != 1 || all[0] != second {
					t.Errorf("the other one is charged to %+v", all)
				}
				if r := title.lookup(id); r == nil || end != "" && len(title.following(r, 1)) != 1 {
					t.Errorf("it is not looked up: %+v", r)
				}
				o.takes = time.Second / 10
				for at := range 60 { // it is reloaded as long as it is wanted
					if d, found, _ := took(t, title, o.id("/extra", 1, o.newest()-1), second); end == "" && (!found || d > 0) {
						t.Fatalf("after %d s: %v after %v", at, found, d)
					}
					sleep.For(t.Context(), time.Second)
				}
			})
		})
	}
}

// TestAManifestBesideThatCannotBeHadCostsTheFirstNothing: what the first one lists is found at once, and an answer for what it does not list takes no
// longer than a viewer waits for playlists.
func TestAManifestBesideThatCannotBeHadCostsTheFirstNothing(t *testing.T) {
	inFormats(t, "", func(t *testing.T, o *stations, title *title) {
		o.hang(func(path string) bool { return path == besideManifest })
		for at := range 40 {
			p := guest(byte(2+at%4), "b")
			if d, found, _ := took(t, title, o.id("/news", 0, o.newest()-1), p); !found || d > 0 {
				t.Fatalf("after %d s: a segment of the first: %v after %v", at, found, d)
			}
			if at%10 == 0 {
				if d, found, why := took(t, title, o.id("/news", 0, 7), p); found || why != peer.NoneUnknown || d > firstLoad {
					t.Errorf("after %d s: what no manifest lists: %v, reason %d, after %v", at, found, why, d)
				}
			}
			sleep.For(t.Context(), time.Second)
		}
		if o.count(besideManifest) == 0 {
			t.Error("the other one was not asked for")
		}
		o.hang(nil)
		sleep.For(t.Context(), retryAtMost)
		if d, found, _ := took(t, title, o.id("/extra", 0, o.newest()-1), guest(2, "b")); !found || d > firstLoad {
			t.Errorf("when it is there: %v after %v", found, d)
		}
	})
}

// TestAManifestBesideIsPaidFor: a viewer that has nothing left is told so.
func TestAManifestBesideIsPaidFor(t *testing.T) {
	inFormats(t, "#EXT-X-ENDLIST\n", func(t *testing.T, o *stations, title *title) {
		p := guest(2, "b")
		for refused := ""; refused == ""; {
			_, refused = o.catalog.tolls.pay("demo", []party{p})
		}
		if _, found, why := took(t, title, o.id("/extra", 0, o.newest()), p); found || why != peer.NoneBudget || o.count(besideManifest) > 0 {
			t.Errorf("found %v, reason %d; it was asked for %d times", found, why, o.count(besideManifest))
		}
	})
}

// TestAFirstManifestThatHangsLeavesTheOneBeside: its viewers wait once, and then have what it lists.
func TestAFirstManifestThatHangsLeavesTheOneBeside(t *testing.T) {
	inStations(t, 2, "", func(t *testing.T, o *stations) {
		o.hang(hangs(firstManifest))
		title := newTitle(o.catalog, o.site, signal.ID{1}, firstManifest)
		title.choose(firstManifest, besideManifest)
		if d, _, _ := took(t, title, o.id("/extra", 0, o.newest()), guest(1, "a")); d > firstLoad {
			t.Errorf("the first answer takes %v", d)
		}
		for range 20 {
			sleep.For(t.Context(), time.Second)
			if d, found, _ := took(t, title, o.id("/extra", 0, o.newest()-1), guest(1, "a")); !found || d > 0 {
				t.Errorf("a later one: %v after %v", found, d)
			}
		}
	})
}

// TestAFirstManifestThatHangsDelaysNothingOfTheOneBeside: what is new in that is found when it is reloaded.
func TestAFirstManifestThatHangsDelaysNothingOfTheOneBeside(t *testing.T) {
	inFormats(t, "", func(t *testing.T, o *stations, title *title) {
		p := guest(1, "a")
		took(t, title, o.id("/extra", 0, o.newest()-1), p)
		o.hang(func(path string) bool { return strings.HasPrefix(path, "/news/") })
		for n := range 10 {
			sleep.For(t.Context(), 3*stationTarget/2)
			if d, found, _ := took(t, title, o.id("/extra", 0, o.newest()), p); !found || d > stationTarget {
				t.Errorf("segment %d: %v after %v", n, found, d)
			}
		}
	})
}

// TestATitleKeepsBothManifests in memory while its home names them, and goes over from one to the other without a load.
func TestATitleKeepsBothManifests(t *testing.T) {
	inFormats(t, "", func(t *testing.T, o *stations, title *title) {
		p := guest(1, "a")
		titles := newTitles(map[string]*siteState{"demo": o.site}, o.catalog, 10)
		titles.all[title.swarm] = title
		if one, _ := titles.named(&bus.Title{Site: "demo", Manifest: firstManifest, Beside: "/extra/../other/manifest.mpd", Swarm: signal.ID{2}, Viewers: 1}); len(one.manifests()) != 1 {
			t.Errorf("what is no key of the site is followed: %v", one.manifests())
		}
		holds := func() (n int) {
			title.name(1, nil)
			_, named := titles.forget(time.Now())
			o.catalog.forget(named)
			for range title.indexes() {
				n++
			}
			return n
		}
		took(t, title, o.id("/extra", 0, o.newest()-1), p)
		sleep.For(t.Context(), 2*followedFor)
		if n := holds(); n != 2 {
			t.Fatalf("%d of two manifests are in memory", n)
		}
		asked := o.count(firstManifest)
		title.choose(besideManifest, firstManifest)
		if d, found, _ := took(t, title, o.id("/extra", 0, o.newest()-1), p); !found || d > stationTarget || title.manifests()[0] != besideManifest {
			t.Errorf("the other way round: %v after %v, %v", found, d, title.manifests())
		}
		title.choose(besideManifest, "")
		if title.follows(firstManifest) || title.lookup(o.id("/news", 0, o.newest()-1)) != nil {
			t.Error("what the home does not name is followed")
		}
		sleep.For(t.Context(), 2*followedFor)
		holds()
		if ix := o.catalog.peek(manifestID{"demo", firstManifest}); ix != nil || o.count(firstManifest) > asked+int(followedFor/stationTarget)+1 {
			t.Errorf("it is in memory: %v; it was asked for %d times more", ix != nil, o.count(firstManifest)-asked)
		}
	})
}

// TestAnUnlistedStreamHasBothManifestsRead, for a viewer that follows it: the one beside not before the first one has been, and the first one
// again once memory had no room for it.
func TestAnUnlistedStreamHasBothManifestsRead(t *testing.T) {
	inStations(t, 2, "", func(t *testing.T, o *stations) {
		title := newTitle(o.catalog, o.site, signal.ID{1}, firstManifest)
		title.choose(firstManifest, besideManifest)
		p := guest(2, "b")
		o.takes = time.Second
		for range 2 {
			title.wantUnlisted(p)
			if title.peek(firstManifest) == nil {
				t.Fatal("the first one is not wanted")
			}
			if title.peek(besideManifest) != nil {
				t.Error("it is wanted before the first one was read")
			}
		}
		sleep.For(t.Context(), 3*time.Second)
		title.wantUnlisted(p)
		if all := o.catalog.payers(title.peek(besideManifest)); len(all) != 1 || all[0] != p {
			t.Errorf("it is charged to %+v", all)
		}
		first := title.peek(firstManifest)
		o.catalog.mu.Lock()
		o.catalog.drop(o.catalog.of(first))
		o.catalog.mu.Unlock()
		if title.wantUnlisted(p); title.peek(firstManifest) == nil {
			t.Error("the first one is not read again")
		}
	})
}
