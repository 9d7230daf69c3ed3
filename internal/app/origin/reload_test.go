package origin

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// published is a playlist whose next part is a part of a segment.
func published(t *testing.T, sequence, part int) *playlist.Media {
	t.Helper()
	text := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXTINF:2,\nlive-%d.m4s\n", sequence-1, sequence-1)
	for i := range part {
		text += fmt.Sprintf("#EXT-X-PART:DURATION=0.5,URI=\"live-%d.%d.m4s\"\n", sequence, i)
	}
	_, media, err := playlist.Read([]byte(text + fmt.Sprintf("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"live-%d.%d.m4s\"\n", sequence, part)))
	if err != nil {
		t.Fatal(err)
	}
	return media
}

func TestReloadsWait(t *testing.T) {
	const list = "240p/index.m3u8"
	for _, c := range []struct {
		name, file, query string
		waits             bool
		status            int
	}{
		{"a playlist that is there", list, "_HLS_msn=9", false, 200},
		{"a part that is there", list, "_HLS_msn=10&_HLS_part=1", false, 200},
		{"a part of a segment that is complete", list, "_HLS_msn=9&_HLS_part=7", false, 200},
		{"the next part", list, "_HLS_msn=10&_HLS_part=2", true, 200},
		{"the segment", list, "_HLS_msn=10", true, 200},
		{"the first part of the next segment", list, "_HLS_msn=11&_HLS_part=0", true, 200},
		{"a part that does not come", list, "_HLS_msn=11&_HLS_part=1", true, 503},
		{"the hinted part", "240p/live-10.2.m4s", "", true, 200},
		{"another part", "240p/live-10.3.m4s", "", false, 200},
		{"another playlist", "360p/index.m3u8", "_HLS_msn=99", false, 200},
		{"no query", list, "", false, 200},
		{"what comes much later", list, "_HLS_msn=12", false, 400},
		{"no number", list, "_HLS_msn=x", false, 400},
		{"a part without its segment", list, "_HLS_part=2", false, 400},
		{"a part below zero", list, "_HLS_msn=10&_HLS_part=-1", false, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r reloads
				r.listed(list, published(t, 10, 2))
				query, err := url.ParseQuery(c.query)
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan int, 1)
				go func() { got <- r.hold(t.Context(), netip.Addr{}, c.file, query) }()
				synctest.Wait()
				if waits := len(got) == 0; waits != c.waits {
					t.Errorf("it waits: %v", waits)
				}
				if c.waits && c.status == 200 {
					r.listed(list, published(t, 11, 1))
					synctest.Wait()
					if len(got) == 0 {
						t.Error("it waits still")
					}
				}
				begin := time.Now()
				if status := <-got; status != c.status || c.status != 503 && time.Since(begin) > 0 {
					t.Errorf("status %d after %v", status, time.Since(begin))
				}
			})
		})
	}
}

// TestReloadsAreBounded: by their number and their time, and they end with their client.
func TestReloadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reloads
		r.listed("index.m3u8", published(t, 10, 2))
		ctx, cancel := context.WithCancel(t.Context())
		query := url.Values{"_HLS_msn": {"10"}}
		var mu sync.Mutex
		answers := map[int]int{}
		hold := func(ctx context.Context, n int) {
			status := r.hold(ctx, addressOf(n%8), "index.m3u8", query)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		}
		var wg sync.WaitGroup
		for i := range maxReloads / 2 {
			wg.Go(func() { hold(ctx, i) })
			wg.Go(func() { hold(t.Context(), i) })
		}
		synctest.Wait()
		if status := r.hold(t.Context(), addressOf(9), "index.m3u8", query); status != http.StatusServiceUnavailable {
			t.Errorf("one too many: %d", status)
		}
		begin := time.Now()
		cancel()
		synctest.Wait()
		mu.Lock()
		if n := answers[503]; n != maxReloads/2 || time.Since(begin) > 0 {
			t.Errorf("%d have ended with their client", n)
		}
		mu.Unlock()
		r.came("live-10.2.m4s") // which wakes them, and is not what they wait for
		wg.Wait()
		if d := time.Since(begin); d != 3*2*time.Second || answers[503] != maxReloads {
			t.Errorf("the others waited %v: %v", d, answers)
		}
	})
}

func addressOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }

// TestReloadsOfAnAddressLeaveRoomForOthers: one client has as many requests wait as it can.
func TestReloadsOfAnAddressLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reloads
		r.listed("index.m3u8", published(t, 10, 2))
		query := url.Values{"_HLS_msn": {"10"}}
		var wg sync.WaitGroup
		for range maxReloads {
			wg.Go(func() { r.hold(t.Context(), addressOf(1), "index.m3u8", query) })
		}
		synctest.Wait()
		status := make(chan int, 1)
		wg.Go(func() { status <- r.hold(t.Context(), addressOf(2), "index.m3u8", query) })
		synctest.Wait()
		r.listed("index.m3u8", published(t, 11, 0))
		wg.Wait()
		got := <-status
		if _, networks := r.waiting.Taken(); got != http.StatusOK || networks != 0 {
			t.Errorf("another client is answered %d; %d networks wait", got, networks)
		}
	})
}
