package natbench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/viewer"
)

//go:embed page.js
var pageScript string

// pageTells is how often it does: what is asked of it for that is no small part of what a page does.
const pageTells = 2 * tellEvery

// lowest has the page play what the headless viewers play.
const lowest = "?level=0"

// telling is the demo page, played under a title. What it says of itself is in the form of a headless viewer's summary.
func telling(dial func(ctx context.Context, network, address string) (net.Conn, error), servers, title string, said func(viewer.Summary)) *demopage.Page {
	head := fmt.Sprintf(`%s<script data-title="%s" data-every="%d">%s</script>`, demopage.Hush, html.EscapeString(title), pageTells.Milliseconds(), pageScript)
	return demopage.Telling(dial, servers, head, func(body io.Reader) error {
		var s viewer.Summary
		d := json.NewDecoder(body)
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return err
		}
		said(s)
		return nil
	})
}

// browse has Chromium watch on a host, with a user's flags: a page on loopback, or one that counts as public.
func browse(ctx context.Context, host *netlab.Host, public bool, site *demosite.Site, at netip.Addr, title, label string) (*watcher, error) {
	w, output, open := &watcher{name: label}, &bench.Tail{}, demopage.Open
	if public {
		open = demopage.OpenPublic
	}
	page := telling(host.DialContext, site.PublicAt(at), title, w.hear)
	w.moved = page.Moved
	browser, err := open(ctx, host, page, lowest+"&"+site.Page(), output)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	w.read.Go(func() {
		select {
		case err := <-browser.Ended:
			w.end(fmt.Errorf("the browser ended by itself: %v\n%s", err, output))
		case <-over:
		}
	})
	w.leave = func() error {
		close(over)
		w.read.Wait()
		_ = browser.Close() // a profile that is left behind is no reason to lose the run
		return nil
	}
	return w, nil
}

// inLabWithBrowser is what rows with Chromium need.
func inLabWithBrowser(ctx context.Context) error {
	return errors.Join(inLab(ctx), demopage.Missing(ctx))
}
