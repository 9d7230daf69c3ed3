package swarmbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/sleep"
)

// goodbye is how long a page that has been left may take for its last words.
const goodbye = time.Second

// asUsersHave are Firefox's preferences where a bench has a STUN server: addresses hide behind names, as Chromium's do.
var asUsersHave = map[string]string{
	"media.peerconnection.ice.loopback":                 "false",
	"media.peerconnection.ice.obfuscate_host_addresses": "true",
}

// seat is a browser that has started, and waits for its viewer.
type seat struct {
	page    *page
	start   *demopage.Start
	browser *demopage.Browser // nil once it is closed
	text    *bench.Tail
}

// open starts the browsers of a way's viewers, each in its viewer's host: the demo page by default flags.
func (s *stage) open(ctx context.Context, plans []Plan, way string) (err error) {
	query, other := "?maxbuffer=30&"+s.servers.Page(), ""
	if way == originOnly || way == withRival || way == originOnlyFirefox {
		query += "&leeway=off"
	}
	if way == withRival {
		if other, err = s.rival(); err != nil {
			return err
		}
	}
	s.seats = make([]*seat, len(plans))
	for i, p := range plans {
		if !p.Browser {
			continue
		}
		at := &seat{
			page:  newPage(s.viewers[i].DialContext, s.servers.Public(), p.LeaveAfter, p.Busy, other),
			start: demopage.NewStart(), text: &bench.Tail{},
		}
		at.browser, err = demopage.OpenWith(ctx, s.viewers[i], demopage.Options{
			Page: at.start.Hold(at.page), Query: query, Output: at.text, Firefox: p.Firefox, Preferences: asUsersHave,
		})
		if err != nil {
			return fmt.Errorf("viewer %d: %w", i+1, err)
		}
		s.seats[i] = at
	}
	return nil
}

// leave closes the browsers of viewers that did not come to their end.
func (s *stage) leave() {
	for _, at := range s.seats {
		if at != nil {
			at.close()
		}
	}
}

// ready returns once the browsers of all seats have started.
func ready(ctx context.Context, seats []*seat) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var starts []*demopage.Start
	for _, at := range seats {
		if at == nil {
			continue
		}
		starts = append(starts, at.start)
		go func() {
			select {
			case err := <-at.browser.Ended:
				cancel(at.ended(err))
			case <-ctx.Done():
			}
		}()
	}
	return demopage.Ready(ctx, starts...)
}

func (at *seat) ended(err error) error {
	return fmt.Errorf("the browser ended by itself: %v\n%s", err, at.text)
}

func (at *seat) close() {
	if at.browser != nil {
		_ = at.browser.Close() // a profile that is left behind is no reason to lose the run
		at.browser = nil
	}
}

// watch has the viewer come, and returns when it has gone.
func (at *seat) watch(ctx context.Context, p Plan) (Outcome, error) {
	defer at.close()
	at.start.Begin()
	failed := false
	select {
	case <-at.page.told:
		sleep.For(ctx, goodbye)
	case <-ctx.Done():
		failed = true
	case err := <-at.browser.Ended:
		return Outcome{}, at.ended(err)
	}
	at.close()
	at.page.mu.Lock()
	defer at.page.mu.Unlock()
	return at.page.last.outcome(p, failed), nil
}
