package joinbench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

//go:embed page.js
var pageScript string

// told is what the page tells of its first piece; moments are of its own clock, ms.
type told struct {
	Session     map[string]float64 `json:"session"`
	Link        map[string]any     `json:"link"` // moments, and role
	Piece       []byte             `json:"piece"`
	Number      int                `json:"number"`
	Certificate []byte             `json:"certificate"`
}

// tab is a Chromium that watches the demo page.
type tab struct {
	browser *demopage.Browser
	said    chan *told
}

// open has Chromium open the demo page on a host. The page tells of the first piece that comes from a viewer or a seed,
// or from either.
func open(ctx context.Context, host *netlab.Host, s *demosite.Site, from string) (*tab, error) {
	t := &tab{said: make(chan *told, 1)}
	var err error
	t.browser, err = demopage.Open(ctx, host, page(host.DialContext, s.Public(), from, t.said), "?"+s.Page(), nil)
	return t, err
}

// first waits for what the page tells.
func (t *tab) first(ctx context.Context) (*told, error) {
	late := time.NewTimer(browserWait)
	defer late.Stop()
	select {
	case told := <-t.said:
		return told, nil
	case err := <-t.browser.Ended:
		return nil, fmt.Errorf("the browser ended by itself: %v", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, fmt.Errorf("the browser got no piece of a peer within %s", browserWait)
	}
}

func (t *tab) close() { _ = t.browser.Close() } // a profile that is left behind is no reason to lose the run

// page is the demo page with the script that tells.
func page(dial func(ctx context.Context, network, address string) (net.Conn, error), servers, from string, said chan<- *told) http.Handler {
	head := fmt.Sprintf("<script data-from=%q>%s</script>", from, pageScript)
	return demopage.Telling(dial, servers, head, func(body io.Reader) error {
		t := &told{}
		if err := json.NewDecoder(body).Decode(t); err != nil {
			return err
		}
		select {
		case said <- t:
		default: // it has told already
		}
		return nil
	})
}

// values are the legs, in ms since the hello, once the piece is found to match. The library joins when the first picture
// and the engine's script are there; what it waits for those is no leg, and is taken out: until it begins with its offers,
// and from when they are made until it joins.
func (t *told) values(rtt time.Duration) (map[string]float64, error) {
	c, err := certificate.Parse(t.Certificate)
	if err != nil {
		return nil, err
	}
	if !c.CheckPiece(t.Number, t.Piece) {
		return nil, errors.New("the piece that the browser got does not match its certificate")
	}
	s := t.Session
	begun := max(s["welcome"], s["prepared"])
	waited := begun - s["welcome"] + max(0, s["join"]-max(begun, s["made"]))
	values := map[string]float64{"waited": waited}
	for _, leg := range legs {
		at, ok := t.Session[leg]
		if linked, is := t.Link[leg].(float64); is {
			at, ok = linked, true
		}
		if !ok {
			continue
		}
		if values[leg] = at - t.Session["hello"]; at > t.Session["welcome"] {
			values[leg] -= waited
		}
	}
	values["round_trips"] = values["piece"] / float64(rtt.Milliseconds())
	return values, nil
}
