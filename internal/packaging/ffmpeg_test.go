package packaging

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestALiveStreamOfFfmpegIsSignedAsItIsPublished: a real packager, in real time. Each list follows its playlist
// before the next segment is out; on a quiet machine within 0.1 s.
func TestALiveStreamOfFfmpegIsSignedAsItIsPublished(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	const segments, seconds = 6, 1
	p := newPackager(t, func(s *Settings) { s.Now = time.Now })
	command := exec.Command(ffmpeg, "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25",
		"-t", fmt.Sprint(segments*seconds), "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-sc_threshold", "0",
		"-f", "hls", "-hls_time", fmt.Sprint(seconds), "-hls_list_size", "3", "-hls_segment_type", "fmp4", filepath.Join(p.dir, "live.m3u8"))
	command.Stderr = os.Stderr
	ctx, cancel := context.WithCancel(context.Background())
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	watched := make(chan error, 1)
	var lag time.Duration
	names, rounds := map[string]bool{}, 0
	go func() {
		watched <- p.Watch(ctx, ticker.C, func(file string, plan *Plan, err error) {
			if err != nil || len(plan.Missing) > 0 {
				t.Error(err, plan)
				return
			}
			if published, err := p.Root.Stat(file); err == nil {
				lag = max(lag, time.Since(published.ModTime()))
			}
			rounds++
			for name := range p.list(file) {
				names[name] = true
			}
			if !plan.Live {
				cancel() // the last playlist has an end
			}
		})
	}()
	if err := command.Run(); err != nil {
		t.Error(err)
		cancel()
	}
	if err := <-watched; err != nil {
		t.Error(err)
	}
	cancel()
	for i := range segments {
		if name := fmt.Sprintf("/media/bbb/live%d.m4s", i); !names[name] {
			t.Errorf("%s was not signed", name)
		}
	}
	if !names["/media/bbb/init.mp4"] || rounds < segments || lag > seconds*time.Second {
		t.Errorf("%v, in %d rounds, at most %v behind the playlist", names, rounds, lag)
	}
	t.Logf("%d rounds, at most %v behind the playlist", rounds, lag)
}

// TestHLSAndDASHOfFfmpegHaveTheSameNames: a packager that writes playlists and an MPD of the same segments. What is signed for viewers
// of the one is what viewers of the other ask for.
func TestHLSAndDASHOfFfmpegHaveTheSameNames(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	p := newPackager(t, func(s *Settings) { s.Now = func() time.Time { return time.Now().Add(time.Hour) } })
	command := exec.Command(ffmpeg, "-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=25", "-f", "lavfi", "-i", "sine", "-t", "7",
		"-map", "0:v", "-map", "1:a", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-c:a", "aac",
		"-seg_duration", "2", "-adaptation_sets", "id=0,streams=v id=1,streams=a", "-hls_playlist", "1", "-f", "dash", filepath.Join(p.dir, "film.mpd"))
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	p.certify("film.mpd")
	for i, playlist := range []string{"media_0.m3u8", "media_1.m3u8"} {
		p.certify(playlist)
		hls, dash := p.list(playlist), p.list(fmt.Sprintf("film.mpd.%d", i))
		for name := range hls {
			if dash[name] == nil {
				t.Errorf("%s is in %s, and not in the MPD", name, playlist)
			}
		}
		if len(hls) != 5 || len(dash) != len(hls) {
			t.Errorf("%s: %d segments by HLS, %d by DASH", playlist, len(hls), len(dash))
		}
	}
}
