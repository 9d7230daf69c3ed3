package swarmbench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// TestABrowserThatEndsEndsTheWaitForAll: viewers come once all browsers of a turn have started, and not at all where one has ended.
func TestABrowserThatEndsEndsTheWaitForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		seats := []*seat{
			nil, // a viewer without a browser
			{start: demopage.NewStart(), browser: &demopage.Browser{}, text: &bench.Tail{}},
			{start: demopage.NewStart(), browser: &demopage.Browser{Ended: ended}, text: &bench.Tail{}},
		}
		_, _ = seats[2].text.Write([]byte("no display"))
		ended <- errors.New("exit status 1")
		err := ready(t.Context(), seats)
		if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "no display") {
			t.Errorf("a browser that has ended: %v", err)
		}
		if err := ready(t.Context(), seats[:1]); err != nil {
			t.Errorf("without browsers: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ready(ctx, seats[:2]); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}

// TestPagesAlonePlayOneWayAfterTheOther: others play all ways in the same minutes.
func TestPagesAlonePlayOneWayAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		s     scenario
		apart string
		want  int
	}{{scenario{}, "", 2}, {scenario{prefetch: true}, "", 3}, {scenario{}, "1", 1}, {scenario{rival: true}, "", 1}, {scenario{kinds: true}, "", 1}} {
		t.Setenv(apartVariable, c.apart)
		if got := c.s.atOnce(len(c.s.ways())); got != c.want {
			t.Errorf("%+v, apart %q: %d at once, not %d", c.s, c.apart, got, c.want)
		}
	}
}
