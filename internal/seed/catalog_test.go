package seed_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
)

// longPlaylist lists so many segments of a folder.
func longPlaylist(segments int) []byte {
	var b strings.Builder
	b.WriteString("#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n")
	for i := range segments {
		fmt.Fprintf(&b, "#EXTINF:4,\nsegment-of-the-film-%06d.m4s\n", i)
	}
	b.WriteString("#EXT-X-ENDLIST\n")
	return []byte(b.String())
}

// TestOneManifestIsOneIndex: by however many titles it is named, its playlists are loaded once, and are in memory once.
func TestOneManifestIsOneIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := longPlaylist(100)
		s := newStreet(t, func(string) []byte { return list }, nil)
		for n := range 20 {
			s.callAs(n, n, "office", "/media/bbb/index.m3u8", fmt.Sprintf("/media/bbb?%d", n), fmt.Sprint("offer ", n)).open()
		}
		<-time.After(2 * time.Second)
		if n := s.count("/media/bbb/index.m3u8"); n != 1 {
			t.Errorf("the playlist was loaded %d times for 20 titles", n)
		}
		if n := s.value("leeway_seed_titles"); n != 20 {
			t.Errorf("%v titles", n)
		}
		if n := s.value("leeway_seed_index_bytes"); n > 100_000 {
			t.Errorf("the index takes %v bytes", n)
		}
	})
}

// TestATitleThatIsOnlyNamedCostsNothing: playlists are loaded when a viewer's offer, which is charged, or a sibling wants them.
func TestATitleThatIsOnlyNamedCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := longPlaylist(3)
		s := newStreet(t, func(string) []byte { return list }, nil)
		for n := range 50 {
			s.name(n, fmt.Sprintf("/films/%d/index.m3u8", n))
		}
		s.callAs(60, 60, "net", "/films/60/index.m3u8", "/films/60", "rubbish")
		<-time.After(2 * time.Second)
		s.mu.Lock()
		asked := len(s.asked)
		s.mu.Unlock()
		if n := s.value("leeway_seed_titles"); n != 51 || asked != 0 {
			t.Errorf("%v titles were named, and %d playlists loaded", n, asked)
		}
		if s.call(7, "net", "/films/7/index.m3u8"); s.count("/films/7/index.m3u8") != 1 {
			t.Error("an offer does not load the playlists")
		}
	})
}

// TestAnAttackOnTheIndexesStaysWithinTheirBytes: sessions of many subnets want dozens of long titles. Without the bound each
// takes some three megabytes for as long as it is named.
func TestAnAttackOnTheIndexesStaysWithinTheirBytes(t *testing.T) {
	const titles, segments, limit = 40, 9000, 16 << 20
	synctest.Test(t, func(t *testing.T) {
		list := longPlaylist(segments)
		s := newStreet(t, func(string) []byte { return list }, func(c *seed.Config) { c.MaxLinks, c.IndexBytes = 4*titles, limit })
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		most := uint64(0)
		for n := range titles {
			s.call(n, fmt.Sprint("net", n), fmt.Sprintf("/films/%d/index.m3u8", n)).open()
			if n%10 == 0 {
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&now)
		t.Logf("%d titles of %d segments: %d MiB live, at most %d MiB in use, %d MiB of the system", titles, segments, (now.HeapAlloc-before.HeapAlloc)>>20, most>>20, now.HeapSys>>20)
		if live := now.HeapAlloc - before.HeapAlloc; live > limit*5/4 {
			t.Errorf("the indexes take %d MiB", live>>20)
		}
		if n := s.value("leeway_seed_index_bytes"); n > limit {
			t.Errorf("the seed says %v bytes", n)
		}
		if s.value("leeway_seed_index_evictions_total") == 0 {
			t.Error("nothing made room")
		}
	})
}

// TestAFloodOfTitlesIsRefusedItsPlaylists: one subnet wants title after title; a viewer of another has its own in time.
func TestAFloodOfTitlesIsRefusedItsPlaylists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := "#EXTM3U\n"
		for i := range 9 {
			master += fmt.Sprintf("#EXT-X-STREAM-INF:BANDWIDTH=%d\n%d.m3u8\n", 1000*(i+1), i)
		}
		list := longPlaylist(3)
		s := newStreet(t, func(path string) []byte {
			if strings.HasSuffix(path, "/index.m3u8") {
				return []byte(master)
			}
			return list
		}, nil)
		const offers, most = 300, 1280
		for n := range offers {
			s.call(n, "crowd", fmt.Sprintf("/films/%d/index.m3u8", n)).open()
		}
		loaded := s.value("leeway_seed_playlists_total", "demo", "loaded")
		if loaded > most+64 || loaded < most || s.value("leeway_seed_playlist_refusals_total", "subnet") == 0 {
			t.Errorf("%v playlists were loaded for %d titles of one subnet, %v refused", loaded, offers, s.value("leeway_seed_playlist_refusals_total", "subnet"))
		}
		s.call(offers, "home", "/films/honest/index.m3u8")
		if s.count("/films/honest/0.m3u8") != 1 {
			t.Error("another subnet's viewer pays for what it did not want")
		}
	})
}

// TestPlaylistsWaitToBeReadAtTheOrigin: an origin answers sooner than a seed parses. What has come and is not parsed yet is in memory,
// up to 4 MiB each, and no index has it.
func TestPlaylistsWaitToBeReadAtTheOrigin(t *testing.T) {
	const titles, atATime = 30, 8
	synctest.Test(t, func(t *testing.T) {
		list, most, asked := longPlaylist(3000), 0.0, 0.0
		var mu sync.Mutex
		var s *street
		s = newStreet(t, func(string) []byte {
			mu.Lock()
			defer mu.Unlock()
			asked++
			most = max(most, asked-s.value("leeway_seed_playlists_total", "demo", "loaded"))
			return list
		}, nil)
		for n := range titles {
			s.offers(n, n, fmt.Sprint("net", n), fmt.Sprintf("/films/%d/index.m3u8", n), fmt.Sprint("/films/", n), fmt.Sprint("offer ", n))
		}
		synctest.Wait()
		if asked < titles/2 || most > atATime {
			t.Errorf("%v playlists were asked for, %v at a time were in memory", asked, most)
		}
	})
}
