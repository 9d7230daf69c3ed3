package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestOrigin: the page is told of the tracker, and the metrics tell seeds from viewers.
func TestOrigin(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	errs := newLockedBuffer()
	film := testkit.TinyFilm(t)
	ended := make(chan error, 1)
	seeds := freeAddress(t)
	go func() {
		ended <- Run(ctx, []string{"origin", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--seed-listen=" + seeds, "--media=" + film, "--tracker=wss://tracker.test", "--log-format=json"},
			Env{Stdout: newLockedBuffer(), Stderr: errs, Environ: []string{"HOME=" + t.TempDir()}})
	}()
	var up struct{ Page, Film, Admin string }
	for up.Page == "" {
		select {
		case <-errs.grew:
			_ = json.Unmarshal([]byte(errs.String()), &up) // not whole yet
		case err := <-ended:
			t.Fatalf("origin ended: %v\n%s", err, errs)
		case <-time.After(30 * time.Second):
			t.Fatalf("origin is not up:\n%s", errs)
		}
	}
	if code, page := fetch(t, "GET", up.Page); code != 200 || !strings.Contains(page, `name="leeway-tracker" content="wss://tracker.test"`) || !strings.Contains(page, up.Film+"master.m3u8") {
		t.Errorf("%d %s", code, page)
	}
	for _, at := range []string{strings.TrimSuffix(up.Page, "/"), "http://" + seeds} {
		if code, text := fetch(t, "GET", at+up.Film+"master.m3u8"); code != 200 || !strings.HasPrefix(text, "#EXTM3U") {
			t.Errorf("%s: %d %s", at, code, text)
		}
	}
	_, metrics := fetch(t, "GET", "http://"+up.Admin+"/metrics")
	for _, client := range []string{origin.Viewer, origin.Seed} {
		if line := `leeway_origin_requests_total{class="playlist",client="` + client + `"} 1`; !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAThousandSocketsLeaveTheOriginAlone: connections that say nothing are bounded by address, and what is too many is reset.
func TestAThousandSocketsLeaveTheOriginAlone(t *testing.T) {
	defer goleak.VerifyNone(t)
	listen, admin := freeAddress(t), freeAddress(t)
	stop := startService(t, admin, "origin", "--listen", listen, "--admin", admin, "--media", testkit.TinyFilm(t))
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	const many, most = 1100, 1024
	from, reset := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}, 0
	var open []net.Conn
	for range many {
		c, err := from.Dial("tcp", listen)
		if err != nil {
			reset++ // before the call returned
			continue
		}
		defer c.Close()
		open = append(open, c)
	}
	if code, _ := fetch(t, "GET", "http://"+listen+"/"); code != 200 {
		t.Errorf("another client is answered %d", code)
	}
	testkit.Eventually(t, "what is too many is reset", func() bool {
		open = slices.DeleteFunc(open, func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			if errors.Is(err, syscall.ECONNRESET) {
				reset++
				return true
			}
			return false
		})
		return reset >= many-most
	})
}

func TestOriginSaysWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"is no tracker's address": {"--tracker=tracker.test"},
		"holds no master.m3u8":    {"--media=" + t.TempDir()},
		"give a video file":       {"--media=none.mp4"},
		"belong together":         {"--tls-key=key.pem"},
	} {
		if _, errs, code := leeway(t, nil, append([]string{"origin"}, args...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}
