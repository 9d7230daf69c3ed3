package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// soon is before the end of a certificate when it is told of: renewal by ACME is a month ahead.
const soon = 14 * 24 * time.Hour

// checkTracker opens the WebSocket as the page does.
func checkTracker(ctx context.Context, e *examination) []Finding {
	at := e.cfg.Tracker
	if at == "" {
		return skipped("no tracker was given (--tracker wss://…)")
	}
	if strings.HasPrefix(at, "ws://") && strings.HasPrefix(e.cfg.PageOrigin, "https://") {
		return fail("tracker-insecure", "a page of https may not open "+plainURL(at), "write wss:// and give the tracker TLS (tracker.cert_file, or a proxy before it)")
	}
	leaf, err := e.dial(ctx)
	if err != nil {
		return e.refusedSocket(ctx, err)
	}
	if leaf == nil {
		return ok("WebSocket open, without TLS")
	}
	left := leaf.NotAfter.Sub(e.cfg.Now())
	text := fmt.Sprintf("WebSocket open; the TLS certificate is valid until %s (%s)", day(leaf.NotAfter), counted(int(left.Hours()/24), "day"))
	if left < soon {
		return warn("tracker-tls-soon", text, "renew it: certbot renew, or what makes tracker.cert_file; the tracker reads the file again by itself")
	}
	return ok("%s", text)
}

// dial opens the WebSocket, and gives the server's certificate, if it has one.
func (e *examination) dial(ctx context.Context) (leaf *x509.Certificate, err error) {
	header := http.Header{}
	if e.cfg.PageOrigin != "" {
		header.Set("Origin", e.cfg.PageOrigin)
	}
	secure := e.tls()
	secure.VerifyConnection = func(s tls.ConnectionState) error {
		leaf = s.PeerCertificates[0]
		return nil
	}
	conn, err := wsconn.Dial(ctx, e.cfg.Tracker, wsconn.Config{Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: 64, Log: e.cfg.Log}, wsconn.DialConfig{
		NetDial: e.cfg.Dial, Header: header, TLS: secure,
	})
	if err == nil {
		e.conn = conn
	}
	return leaf, err
}

// hangUp closes the WebSocket.
func (e *examination) hangUp() {
	if e.conn != nil {
		e.conn.Close(wsconn.CloseDone, "")
		e.conn.Wait()
		e.conn = nil
	}
}

// refusedSocket explains why the WebSocket did not open.
func (e *examination) refusedSocket(ctx context.Context, err error) []Finding {
	var status *wsconn.StatusError
	at := plainURL(e.cfg.Tracker)
	wrong := "correct --tracker and data-tracker: the tracker has its WebSocket on / of tracker.listen; a proxy before it has to pass Upgrade on"
	switch {
	case errors.As(err, &status) && status.Code == http.StatusForbidden:
		return e.forbidden(ctx, at, wrong)
	case errors.As(err, &status) && (status.Code == http.StatusServiceUnavailable || status.Code == http.StatusBadGateway || status.Code == http.StatusGatewayTimeout):
		return fail("tracker-draining", "the tracker is going away, or its proxy has no tracker: "+status.Error(), "start the tracker, correct its address in the proxy, or wait until it is back")
	case errors.As(err, &status):
		return fail("tracker-wrong-server", at+": "+status.Error(), wrong)
	case errors.Is(err, wsconn.ErrSubprotocol):
		return fail("tracker-wrong-server", at+" is a WebSocket server and no tracker (it does not speak "+signal.Subprotocol+")", wrong)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fail("tracker-wrong-server", at+" speaks no HTTP", wrong)
	}
	return connectTrouble("tracker", at, err)
}

// forbidden says which server answered 403. The tracker has an address that says whether pages of an origin may join. If it does not answer
// there, another server did: a proxy that does not know the tracker's name hands requests to the server of another one. A tracker below a
// path has that address elsewhere.
func (e *examination) forbidden(ctx context.Context, at, wrong string) []Finding {
	u, err := url.Parse(e.cfg.Tracker)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Scheme, u.Path, u.RawQuery = strings.Replace(u.Scheme, "ws", "http", 1), "/allowed", "origin="+url.QueryEscape(e.cfg.PageOrigin)
		a := e.get(ctx, "tracker", u.String(), maxSample, 0, false)
		switch said := string(a.body); {
		case a.err != nil, a.response.StatusCode == http.StatusTooManyRequests, strings.HasPrefix(said, "refused: "):
		case strings.HasPrefix(said, "allowed: "):
			return fail("tracker-wrong-server", at+" answers 403 to the WebSocket, and the tracker behind it would take pages of "+e.cfg.PageOrigin,
				"something before the tracker refuses WebSockets (a firewall for web applications, a proxy's rule): have it pass them on")
		default:
			return fail("tracker-wrong-server", fmt.Sprintf("%s answers 403 to the WebSocket, and is no tracker (%d to GET /allowed)", at, a.response.StatusCode), wrong+"; where the proxy has no server of this name, another one answers")
		}
	}
	return fail("origin-refused", fmt.Sprintf("the tracker refuses pages of %s", e.cfg.PageOrigin),
		fmt.Sprintf("add it to the site: page_origins: [%q]; or give the page's own --page-origin", e.cfg.PageOrigin))
}

// noWelcome is why checks behind the welcome cannot run.
const noWelcome = "the tracker did not welcome this viewer"

// checkWelcome says hello as a viewer does.
func checkWelcome(ctx context.Context, e *examination) []Finding {
	if e.conn == nil {
		return skipped("there is no connection to a tracker")
	}
	var m signal.Message
	var err error
	var begun time.Time
	for n := 1; ; n++ {
		begun = time.Now()
		m, err = e.ask(ctx, &signal.Hello{Request: 1, Version: signal.Version, Client: e.cfg.Client, Site: e.cfg.Site, Token: e.cfg.Token}, func(m signal.Message) bool {
			_, welcome := m.(*signal.Welcome)
			return welcome
		})
		if w, welcomed := m.(*signal.Welcome); err != nil || !welcomed || !w.Policy.ControlGroup || n == draws {
			break
		}
		e.hangUp()
		if _, err = e.dial(ctx); err != nil {
			return e.refusedSocket(ctx, err)
		}
	}
	if err != nil {
		return fail("welcome-timeout", "the tracker does not answer hello: "+err.Error(), "look at the tracker's log, and whether a proxy before it passes WebSocket messages on")
	}
	switch m := m.(type) {
	case *signal.Welcome:
		half := time.Since(begun) / 2
		e.welcome = &welcome{m, m.ServerTime - e.cfg.Now().Add(-half).UnixMilli()}
		if len(m.VerifyKeys) == 0 {
			return warn("no-keys", "the tracker welcomes this viewer, and knows of no seed or packager that certifies", "start a seed (leeway seed, with nats.url of the trackers), or wait some seconds if it has just started")
		}
		return ok("the tracker welcomes this viewer; it names %s", counted(len(m.VerifyKeys), "certifying key"))
	case *signal.Error:
		return refusedHello(m)
	}
	return fail("welcome-timeout", "the tracker answered something else", "load the same version of tracker and doctor")
}

// ask sends a message and reads until one comes that is wanted, or an error.
func (e *examination) ask(ctx context.Context, m signal.Message, wanted func(signal.Message) bool) (signal.Message, error) {
	b, err := signal.Encode(m)
	if err == nil {
		err = e.conn.Write(b)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { e.conn.Close(wsconn.CloseDone, "") })
	defer stop()
	var unread error // why the last message that is none cannot be read: it may have been the answer
	for {
		b, err := e.conn.Read()
		if err != nil {
			err = cmp.Or(ctx.Err(), err) // the end of ctx closes the connection, which then says so
			if unread != nil {
				err = fmt.Errorf("%w; it sent what this program cannot read: %w (are both of one version?)", err, unread)
			}
			return nil, err
		}
		got, err := signal.Decode(b)
		if err != nil {
			unread = err
			continue // as viewers do
		}
		if _, refused := got.(*signal.Error); refused || wanted(got) {
			return got, nil
		}
	}
}

// refusedHello turns the tracker's error into what to do.
func refusedHello(m *signal.Error) []Finding {
	fixes := map[string]string{
		"token-required": "give a join token: --token, which leeway token mint makes with the site's key; the page gives it by data-token",
		"token-expired":  "mint a new token: leeway token mint --life 5m; if it is fresh, compare the clocks of the backend and of the tracker",
		"bad-token":      "sign with a key of the site's token_keys: leeway token verify --keys keys.json --site NAME TOKEN says what is wrong",
		"bad-site":       "give --site as one of the names under sites in the tracker's configuration (data-site of the page)",
		"bad-origin":     "add the page's origin to page_origins of the site, or give --site",
		"bad-version":    "update this program, or the tracker: both have to speak " + signal.Subprotocol,
	}
	fix := fixes[m.Code]
	fix = cmp.Or(fix, m.Hint)
	text := m.Message
	if m.Hint != "" && fix != m.Hint {
		text += " " + m.Hint
	}
	return fail(m.Code, "the tracker: "+text, fix)
}

// Clock differences: below the first nothing is noticed; beyond the second join tokens and relay credentials, good for minutes, are
// refused.
const (
	skewNoticed = 5_000  // ms
	skewHarms   = 60_000 // ms
)

// checkClock compares this machine's clock with the tracker's and the origin's.
func checkClock(_ context.Context, e *examination) []Finding {
	var origin, ahead int64
	dated := false
	if e.manifest != nil {
		origin, dated = e.manifest.ahead()
	}
	other := "the tracker's"
	switch {
	case e.welcome != nil:
		ahead = e.welcome.ahead
	case dated:
		ahead, other = origin, "the origin's"
	default:
		return skipped("neither tracker nor origin said what time it is")
	}
	skew := max(ahead, -ahead)
	text := fmt.Sprintf("this clock and %s differ by %s", other, (time.Duration(skew) * time.Millisecond).Round(100*time.Millisecond))
	if skew < skewNoticed {
		return ok("%s", text)
	}
	whose := "set the clock of whichever is wrong by NTP (timedatectl set-ntp true)"
	if e.welcome != nil && dated {
		if apart := ahead - origin; max(apart, -apart) < skewNoticed {
			whose = "tracker and origin agree: set this machine's clock by NTP (timedatectl set-ntp true)"
		} else if max(origin, -origin) < skewNoticed {
			whose = "this machine and the origin agree: set the tracker's clock by NTP (timedatectl set-ntp true)"
		}
	}
	if skew < skewHarms {
		return warn("clock-skew", text, whose)
	}
	return fail("clock-skew", text+": join tokens and relay credentials are refused", whose)
}
