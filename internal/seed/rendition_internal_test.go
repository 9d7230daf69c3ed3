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

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// numbered is an origin of a low-latency playlist of one segment, whose number is given, and a part. It keeps a request for the part that
// comes next, and refuses one for what comes much later (RFC 8216bis, section 6.2.5.2).
type numbered struct {
	mu       sync.Mutex
	sequence int           // guarded by mu
	asked    []string      // guarded by mu
	anew     chan struct{} // guarded by mu; closed when other numbers begin
}

func (o *numbered) begin(sequence int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.anew != nil {
		close(o.anew)
	}
	o.sequence, o.anew = sequence, make(chan struct{})
}

func (o *numbered) Get(ctx context.Context, f Fetch) (*Fetched, error) {
	_, query, waits := strings.Cut(f.Path, "?_HLS_msn=")
	o.mu.Lock()
	o.asked = append(o.asked, f.Path)
	sequence, anew := o.sequence, o.anew
	o.mu.Unlock()
	if waits && query == fmt.Sprintf("%d&_HLS_part=1", sequence+1) {
		select {
		case <-ctx.Done():
		case <-anew:
		}
	}
	if waits {
		return nil, &FetchError{Outcome: OutcomeClient, Path: f.Path, Cause: errors.New("400 Bad Request")}
	}
	return &Fetched{Data: fmt.Appendf(nil, "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n"+
		"#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXTINF:2,\n%d.m4s\n"+
		"#EXT-X-PART:DURATION=0.5,URI=\"%d.0.m4s\"\n", sequence, sequence, sequence+1)}, nil
}

func (o *numbered) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[len(o.asked)-1]
}

// TestAStreamThatBeginsAnewIsFollowedAnew: its packager has started again, with lower numbers, while viewers follow it all the time.
func TestAStreamThatBeginsAnewIsFollowedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/film/live.m3u8"
		d, o := newDesk(t, 1<<20), &numbered{}
		o.begin(1000)
		site := d.title.site
		site.origin, site.followed = o, newStreamPlaces(1)
		d.title.index().take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2, Blocks: true}}, *d.now)
		d.all.streams = newStreams(signal.ID{9}, d.supply, d.all.tasks, metric.Discard, silent, func() time.Time { return *d.now })
		d.all.streams.linked(d.viewerLink)
		s := d.viewerLink.sharing.Load()
		s.heard(d.viewerLink, peer.Follow{Stream: segment.NewID("demo", segment.WholeName(path)), On: true})
		for _, sequence := range []int{1000, 3} {
			o.begin(sequence)
			for range 10 {
				sleep.For(t.Context(), time.Second)
				s.review()
			}
			if want := fmt.Sprintf("%s?_HLS_msn=%d&_HLS_part=1", path, sequence+1); o.last() != want {
				t.Errorf("the origin was asked for %s last, not for %s: %q", o.last(), want, o.asked)
			}
		}
	})
}
