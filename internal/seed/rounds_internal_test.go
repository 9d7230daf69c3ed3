package seed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const stationTarget = 2 * time.Second

// stations is an origin of titles in virtual time. Each has a manifest with some renditions, which list the last three segments, the
// newest of which is of this moment's two seconds. What hangs is not answered.
type stations struct {
	catalog    *catalog
	site       *siteState
	begun      time.Time
	renditions int
	end        string        // what ends the playlists; empty: they are live
	takes      time.Duration // to answer

	mu          sync.Mutex
	hangs       func(path string) bool // guarded by mu
	lists       map[string][]byte      // guarded by mu: of packagers, by path
	asked       map[string]int         // guarded by mu
	under, most int                    // guarded by mu: requests under way, and the most there were
}

// inStations runs a test with titles of so many renditions, and sees to it that nothing is left of it.
func inStations(t *testing.T, renditions int, end string, f func(t *testing.T, o *stations)) {
	synctest.Test(t, func(t *testing.T) {
		o := &stations{begun: time.Now().Add(-time.Minute - stationTarget/4), renditions: renditions, end: end, asked: map[string]int{}}
		work := newTasks()
		o.catalog = newCatalog(work, 64<<20, 100, metric.Discard, silent, time.Now)
		o.site = newSiteState(Site{Site: testSite(t), Origin: o}, metric.Discard)
		f(t, o)
		work.end()
		work.wait()
		if under, _ := o.requests(); under != 0 || len(o.site.reading) != 0 || len(o.site.slow) != 0 {
			t.Errorf("%d requests, %d places and %d of slow playlists are left", under, len(o.site.reading), len(o.site.slow))
		}
	})
}

func (o *stations) Flow(context.Context, Fetch, func([]byte) error) (*Fetched, error) {
	panic("nothing flows")
}

func (o *stations) Get(ctx context.Context, f Fetch) (*Fetched, error) {
	o.mu.Lock()
	o.asked[f.Path]++
	o.under++
	o.most = max(o.most, o.under)
	hangs, list := o.hangs != nil && o.hangs(f.Path), o.lists[f.Path]
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.under--
	}()
	if hangs {
		<-ctx.Done()
		return nil, &FetchError{Outcome: OutcomeTimeout, Path: f.Path, Cause: ctx.Err()}
	}
	sleep.For(ctx, o.takes)
	switch {
	case list != nil:
		return &Fetched{Data: list}, nil
	case strings.HasSuffix(f.Path, certificate.ListSuffix):
		return nil, &FetchError{Outcome: OutcomeNotFound, Path: f.Path, Cause: errors.New("status 404")}
	case strings.HasSuffix(f.Path, "/manifest.mpd"):
		return &Fetched{Data: o.mpd()}, nil
	case f.Ranged:
		return &Fetched{Data: segmentIndex()}, nil
	case strings.HasSuffix(f.Path, "/master.m3u8"):
		return &Fetched{Data: []byte("#EXTM3U\n" + repeat("#EXT-X-STREAM-INF:BANDWIDTH=1000\n%d.m3u8\n", o.renditions))}, nil
	}
	first := o.newest() - 2
	text := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:%d\n", first)
	for n := range 3 {
		text += fmt.Sprintf("#EXTINF:2,\n%s-%d.ts\n", strings.TrimSuffix(f.Path, ".m3u8"), first+n)
	}
	return &Fetched{Data: []byte(text + o.end)}, nil
}

// hang has paths hang from now on that f says yes to; nil: none.
func (o *stations) hang(f func(path string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hangs = f
}

// publish puts a packager's list on the origin.
func (o *stations) publish(path string, list []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists = map[string][]byte{path: list}
}

func (o *stations) count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// requests are those under way, and the most there were.
func (o *stations) requests() (under, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.under, o.most
}

func (o *stations) newest() int { return int(time.Since(o.begun) / stationTarget) }

// want has a title followed, and returns when nothing happens any more at this moment.
func (o *stations) want(title string) *index {
	ix := o.catalog.want(o.site, title+"/master.m3u8", party{})
	synctest.Wait()
	return ix
}

func (o *stations) id(title string, rendition, n int) segment.ID {
	return segment.NewID("demo", segment.WholeName(fmt.Sprintf("%s/%d-%d.ts", title, rendition, n)))
}

func hangs(path string) func(string) bool { return func(p string) bool { return p == path } }

// TestAPlaylistThatHangsHoldsBackNoOther: what the origin has listed for a target duration is known, whatever hangs beside it, and no
// playlist is asked for more often than once in a target duration.
func TestAPlaylistThatHangsHoldsBackNoOther(t *testing.T) {
	const manifest, first, second = "/news/master.m3u8", "/news/0.m3u8", "/news/1.m3u8"
	for name, c := range map[string]struct {
		path string
		from int // s
	}{"a rendition from the beginning on": {first, 0}, "a rendition later": {first, 10}, "the manifest": {manifest, 10}} {
		t.Run(name, func(t *testing.T) {
			inStations(t, 2, "", func(t *testing.T, o *stations) {
				for at := range 60 {
					if at == c.from {
						o.hang(hangs(c.path))
					}
					if ix := o.want("/news"); ix.lookup(o.id("/news", 1, o.newest()-1)) == nil {
						t.Errorf("after %d s the other rendition is behind", at)
					}
					sleep.For(t.Context(), time.Second)
				}
				for _, path := range []string{manifest, first, second} {
					if n := o.count(path); n > 31 || path == second && n < 29 {
						t.Errorf("%s was asked for %d times in a minute", path, n)
					}
				}
				o.hang(nil)
				for range 40 {
					o.want("/news")
					sleep.For(t.Context(), time.Second)
				}
				if ix := o.want("/news"); ix.lookup(o.id("/news", 0, o.newest()-1)) == nil {
					t.Error("what has hung is not followed again")
				}
				o.hang(hangs(c.path))
				sleep.For(t.Context(), 2*stationTarget)
				ix := o.want("/news")
				if under, _ := o.requests(); under != 1 {
					t.Errorf("%d requests go on", under)
				}
				o.catalog.mu.Lock()
				o.catalog.drop(o.catalog.of(ix))
				o.catalog.mu.Unlock()
				synctest.Wait()
				if under, _ := o.requests(); under != 0 {
					t.Error("a load goes on for what is not in memory any more")
				}
			})
		})
	}
}

// TestWhatIsAskedForIsFoundBesideAPlaylistThatHangs: at once in a film that is loaded for the first time, and in a live stream that is
// loaded again for it.
func TestWhatIsAskedForIsFoundBesideAPlaylistThatHangs(t *testing.T) {
	for end, before := range map[string]time.Duration{"#EXT-X-ENDLIST\n": 0, "": time.Minute} {
		inStations(t, 3, end, func(t *testing.T, o *stations) {
			o.hang(hangs("/film/0.m3u8"))
			for range before / stationTarget {
				o.want("/film")
				sleep.For(t.Context(), stationTarget)
			}
			sleep.For(t.Context(), 7*stationTarget/8) // a segment is new since the last load
			ix, n, began := o.catalog.want(o.site, "/film/master.m3u8", party{}), o.newest(), time.Now()
			if r := ix.find(t.Context(), o.id("/film", 2, n)); r == nil || time.Since(began) > 0 {
				t.Errorf("with end %q found %v after %s", end, r, time.Since(began))
			}
			if r := ix.find(t.Context(), o.id("/film", 0, n)); r != nil || time.Since(began) > firstLoad {
				t.Errorf("with end %q what cannot be had is found: %v, after %s", end, r, time.Since(began))
			}
		})
	}
}

// TestPlaylistsThatHangLeavePlacesToOtherTitles: one rendition of many titles hangs, or all of one.
func TestPlaylistsThatHangLeavePlacesToOtherTitles(t *testing.T) {
	for titles, hanging := range map[int]string{20: "/0.m3u8", 1: ".m3u8"} {
		inStations(t, 6, "", func(t *testing.T, o *stations) {
			for at := range 60 {
				for n := range titles {
					o.catalog.want(o.site, fmt.Sprintf("/sports%d/master.m3u8", n), party{})
				}
				sleep.For(t.Context(), time.Second)
				if at == 10 {
					o.hang(func(path string) bool {
						return strings.HasPrefix(path, "/sports") && strings.HasSuffix(path, hanging)
					})
				}
			}
			if ix := o.want("/news"); ix.lookup(o.id("/news", 0, o.newest())) == nil {
				t.Errorf("%d titles that hang, by %s, keep another one from being read", titles, hanging)
			}
			if _, most := o.requests(); most > maxReading {
				t.Errorf("%d requests at a time", most)
			}
		})
	}
}

// TestATitleThatHangsTakesHalfOfThePlaces of its site, also when it is loaded for the first time.
func TestATitleThatHangsTakesHalfOfThePlaces(t *testing.T) {
	inStations(t, 64, "", func(t *testing.T, o *stations) {
		o.hang(func(path string) bool {
			return strings.HasPrefix(path, "/sports/") && !strings.HasSuffix(path, "/master.m3u8")
		})
		for range 60 {
			o.want("/sports")
			sleep.For(t.Context(), time.Second)
		}
		if under, most := o.requests(); under == 0 || most > maxReading/2 {
			t.Errorf("%d requests, at most %d", under, most)
		}
		if ix := o.want("/news"); ix.lookup(o.id("/news", 63, o.newest())) == nil {
			t.Error("another title is not read")
		}
	})
}

// TestSegmentsThatHangLeavePlacesToOtherTitles: an origin that makes the segments of a film as they are asked for is slow with one that is
// seldom watched. One viewer may ask for many of them.
func TestSegmentsThatHangLeavePlacesToOtherTitles(t *testing.T) {
	inStations(t, 1, "", func(t *testing.T, o *stations) {
		o.hang(func(path string) bool { return strings.HasPrefix(path, "/film/") && strings.HasSuffix(path, ".ts") })
		o.want("/film")
		film, news := newTitle(o.catalog, o.site, signal.ID{1}, "/film/master.m3u8"), newTitle(o.catalog, o.site, signal.ID{2}, "/news/master.m3u8")
		ctx, cancel := context.WithTimeout(t.Context(), fetchTimeout)
		defer cancel()
		var hanging sync.WaitGroup
		for n := range 2 * originConns {
			hanging.Go(func() {
				if _, err := film.fetch(ctx, Fetch{Path: fmt.Sprintf("/film/0-%d.ts", n)}); outcomeOf(err) != OutcomeTimeout {
					t.Errorf("segment %d: %v", n, err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if ix := o.want("/news"); ix.lookup(o.id("/news", 0, o.newest())) == nil {
			t.Error("another title is not read")
		}
		if _, err := news.fetch(ctx, Fetch{Path: "/news/0-1.ts"}); err != nil || time.Since(began) > 0 {
			t.Errorf("a segment of another title after %v: %v", time.Since(began), err)
		}
		cancel()
		hanging.Wait()
	})
}

// TestAllRenditionsOfASlowOriginAreFollowed: a round of all of them takes longer than a target duration.
func TestAllRenditionsOfASlowOriginAreFollowed(t *testing.T) {
	inStations(t, 20, "", func(t *testing.T, o *stations) {
		o.takes = stationTarget / 4
		for range 60 {
			o.want("/news")
			sleep.For(t.Context(), time.Second)
		}
		for rendition := range o.renditions {
			if ix := o.want("/news"); ix.lookup(o.id("/news", rendition, o.newest()-3)) == nil {
				t.Errorf("rendition %d is behind", rendition)
			}
		}
	})
}

// TestAPlaylistIsReloadedForWhatItDoesNotListBeforeThatIsDue: half of its target after the last time, a second at most (RFC 8216, 6.3.4).
func TestAPlaylistIsReloadedForWhatItDoesNotListBeforeThatIsDue(t *testing.T) {
	for target, want := range map[time.Duration]time.Duration{0: reloadVOD, time.Second: time.Second / 2, 2 * time.Second: time.Second, 6 * time.Second: time.Second} {
		r := newRounds("/live.m3u8")
		r.came(r.lists[0], target, nil, nil)
		if wait, least := r.pace(); wait != target || least != want {
			t.Errorf("with a target of %v: again in %v, for what is not listed in %v", target, wait, least)
		}
	}
}

// TestWhatIsWantedAgainIsFollowedAgain: also where no segment is asked for that is not listed, as of a stream whose chunks are pushed.
func TestWhatIsWantedAgainIsFollowedAgain(t *testing.T) {
	inStations(t, 1, "", func(t *testing.T, o *stations) {
		o.want("/news")
		sleep.For(t.Context(), followedFor+2*stationTarget)
		before := o.count("/news/0.m3u8")
		sleep.For(t.Context(), time.Minute)
		if n := o.count("/news/0.m3u8"); n != before {
			t.Errorf("what is not wanted was loaded %d times", n-before)
		}
		o.want("/news")
		for range 10 {
			sleep.For(t.Context(), time.Second)
			if ix := o.want("/news"); ix.lookup(o.id("/news", 0, o.newest()-1)) == nil {
				t.Errorf("%d is not known", o.newest()-1)
			}
		}
	})
}
