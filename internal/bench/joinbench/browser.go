package joinbench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/leeway-video/leeway/internal/bench/demopage"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/netlab"
)

// reportPath is the proxy's own and does not cross the line.
const reportPath = "/bench/join"

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

// browse has Chromium open the demo page on a host, and returns what its library told of the first piece.
func browse(ctx context.Context, host *netlab.Host, servers string) (_ *told, err error) {
	said := make(chan *told, 1)
	browser, err := demopage.Open(ctx, host, page(host.DialContext, servers, said), "", nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, browser.Close()) }()
	late := time.NewTimer(browserWait)
	defer late.Stop()
	select {
	case t := <-said:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, fmt.Errorf("the browser got no piece of a peer within %s", browserWait)
	}
}

// page is the demo page with the script that tells.
func page(dial func(ctx context.Context, network, address string) (net.Conn, error), servers string, said chan<- *told) http.Handler {
	forward := demopage.Proxy(dial, servers, "<script>"+pageScript+"</script>")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != reportPath {
			forward.ServeHTTP(w, r)
			return
		}
		t := &told{}
		if err := json.NewDecoder(r.Body).Decode(t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case said <- t:
		default: // it has told already
		}
	})
}

// values are the legs, in ms since the hello, once the piece is found to match. The library joins when the first picture
// is there; what it waits for that is no leg, and is taken out.
func (t *told) values(rtt time.Duration) (map[string]float64, error) {
	c, err := certificate.Parse(t.Certificate)
	if err != nil {
		return nil, err
	}
	if !c.CheckPiece(t.Number, t.Piece) {
		return nil, errors.New("the piece that the browser got does not match its certificate")
	}
	waited := max(0, t.Session["join"]-t.Session["welcome"])
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
