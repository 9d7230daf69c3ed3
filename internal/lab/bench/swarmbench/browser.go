package swarmbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// goodbye is how long a page that has been left may take for its last words.
const goodbye = time.Second

// asUsersHave are Firefox's preferences where a bench has a STUN server: addresses hide behind names, as Chromium's do.
var asUsersHave = map[string]string{
	"media.peerconnection.ice.loopback":                 "false",
	"media.peerconnection.ice.obfuscate_host_addresses": "true",
}

// browse has a browser watch: the demo page by default flags, in the viewer's host.
func (s *stage) browse(ctx context.Context, host *netlab.Host, p Plan, way string) (_ Outcome, err error) {
	query, other := "?maxbuffer=30&"+s.servers.Page(), ""
	if way == originOnly || way == withRival || way == originOnlyFirefox {
		query += "&leeway=off"
	}
	if way == withRival {
		if other, err = s.rival(); err != nil {
			return Outcome{}, err
		}
	}
	page := newPage(host.DialContext, s.servers.Public(), p.LeaveAfter, p.Busy, other)
	text := &bench.Tail{}
	browser, err := demopage.OpenWith(ctx, host, demopage.Options{
		Page: page, Query: query, Output: text, Firefox: p.Firefox, Preferences: asUsersHave,
	})
	if err != nil {
		return Outcome{}, err
	}
	failed := false
	select {
	case <-page.told:
		sleep.For(ctx, goodbye)
	case <-ctx.Done():
		failed = true
	case err := <-browser.Ended:
		_ = browser.Close()
		return Outcome{}, fmt.Errorf("the browser ended by itself: %v\n%s", err, text)
	}
	_ = browser.Close() // a profile that is left behind is no reason to lose the run
	page.mu.Lock()
	defer page.mu.Unlock()
	return page.last.outcome(p, failed), nil
}
