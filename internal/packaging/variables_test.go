package packaging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// defined is a film whose playlist imports where its segments are.
func (p *packager) defined() {
	p.film()
	p.put("720p.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:IMPORT=\"name\"\n#EXT-X-DEFINE:QUERYPARAM=\"session\"\n#EXTINF:4,\n{$name}-1.m4s?session={$session}\n#EXTINF:4,\n{$name}-2.m4s\n#EXT-X-ENDLIST\n"), time.Hour)
	p.put("master.m3u8", []byte("#EXTM3U\n#EXT-X-DEFINE:NAME=\"name\",VALUE=\"seg\"\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n720p.m3u8?session=7\n"), time.Hour)
}

// TestAPlaylistImportsVariablesOfItsMaster, which is read after it by the order of their names.
func TestAPlaylistImportsVariablesOfItsMaster(t *testing.T) {
	p := newPackager(t, nil)
	p.defined()
	plans, err := p.Plans()
	if err != nil || len(plans) != 1 || plans[0].Segments() != 2 || len(plans[0].Missing) > 0 {
		t.Fatalf("%+v, %v", plans, err)
	}
	if _, err := p.Finish(context.Background(), plans[0]); err != nil || p.list("720p.m3u8")["/media/bbb/seg-1.m4s"] == nil {
		t.Errorf("%v, %v", p.list("720p.m3u8"), err)
	}
	other := newPackager(t, nil)
	other.defined()
	if err := os.Remove(filepath.Join(other.dir, "master.m3u8")); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Plans(); !errors.Is(err, playlist.ErrVariables) {
		t.Errorf("without a master: %v", err)
	}
}

// TestAWatchedPlaylistImportsVariables: that its master is read after it is no failure, and that there is none is one.
func TestAWatchedPlaylistImportsVariables(t *testing.T) {
	for _, master := range []bool{true, false} {
		p := newPackager(t, nil)
		p.defined()
		if !master {
			if err := os.Remove(filepath.Join(p.dir, "master.m3u8")); err != nil {
				t.Fatal(err)
			}
		}
		reports := make(chan error, 10)
		ticks, stop := watching(p.Packager, func(_ string, _ *Plan, err error) { reports <- err })
		for range 5 {
			p.pass(time.Second)
			ticks <- p.Now()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(reports); n != 1 {
			t.Fatalf("master %v: %d reports", master, n)
		}
		if err := <-reports; master && err != nil || !master && !errors.Is(err, playlist.ErrVariables) {
			t.Errorf("master %v: %v", master, err)
		}
	}
}
