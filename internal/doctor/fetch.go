package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Bounds of what is read of an answer, bytes.
const (
	maxManifest = playlist.MaxBytes + 1 // one more than seeds and viewers read, which is too many
	maxSample   = 64 << 10              // of a segment
)

// answer is what a URL answered.
type answer struct {
	what     string // manifest, rendition, segment
	url      string // after redirects
	asked    string
	response *http.Response // its body is read
	came     time.Time      // the response, by Config.Now
	body     []byte
	err      error
}

// newClient fetches as a page does.
func newClient(c Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: c.Dial, TLSClientConfig: c.tls(), DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// tls is how servers are spoken to and checked.
func (c Config) tls() *tls.Config {
	return &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12, Time: c.Now}
}

func (e *examination) tls() *tls.Config { return e.cfg.tls() }

// get fetches at most a number of bytes of a URL; ranged asks for no more than those.
func (e *examination) get(ctx context.Context, what, at string, most int64, first int64, ranged bool) answer {
	a := answer{what: what, asked: at, url: at}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		a.err = err
		return a
	}
	if o := e.cfg.PageOrigin; o != "" && o != originOf(at) {
		req.Header.Set("Origin", o)
	}
	req.Header.Set("Accept-Encoding", "identity")
	if ranged {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, first+most-1))
	}
	res, err := e.http.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	body := res.Body
	defer body.Close()
	a.response, a.came, a.url = res, e.cfg.Now(), res.Request.URL.String()
	if !ranged {
		if a.err = originhttp.Unpack(res, most); a.err != nil {
			return a
		}
	}
	a.body, a.err = io.ReadAll(io.LimitReader(res.Body, most))
	return a
}

// ahead is how far the clock of the server is ahead of this one, ms; false where it does not say what time it is. A cache gives the date on
// which it had the answer, and how long ago that was.
func (a answer) ahead() (ms int64, ok bool) {
	at, err := http.ParseTime(a.response.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	age, _ := strconv.ParseUint(a.response.Header.Get("Age"), 10, 32) // 0: it is no copy
	return at.UnixMilli() + int64(age)*1000 - a.came.UnixMilli(), true
}

// trouble says what is wrong with an answer, for a code that begins with what was asked for; nil: its status is fine.
func (a answer) trouble() []Finding {
	if a.err != nil {
		return connectTrouble(a.what, plainURL(a.asked), a.err)
	}
	at := plainURL(a.asked)
	switch status := a.response.StatusCode; {
	case status == http.StatusOK, status == http.StatusPartialContent:
		if len(a.body) < maxManifest {
			return nil
		}
		return fail(a.what+"-large", fmt.Sprintf("%s has more than %d MiB, and seeds read no more", at, playlist.MaxBytes>>20),
			"list less in it: of a live stream a shorter window, of a film longer segments")
	case status == http.StatusNotFound, status == http.StatusGone:
		return fail(a.what+"-missing", fmt.Sprintf("%s answers %d", at, status), "check the URL: the origin has no such file")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(a.what+"-refused", fmt.Sprintf("%s answers %d", at, status),
			"the origin wants a signature, cookie or header that this request does not have: give the URL as the player has it, signature included")
	default:
		return fail(a.what+"-status", fmt.Sprintf("%s answers %d", at, status), "look at the origin's own log: it should answer 200")
	}
}

// connectTrouble explains why there was no answer.
func connectTrouble(what, at string, err error) []Finding {
	var dns *net.DNSError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var timeout net.Error
	text := func(format string, args ...any) string { return at + ": " + fmt.Sprintf(format, args...) }
	switch {
	case errors.As(err, &dns):
		return fail(what+"-dns", text("the name %s does not resolve", dns.Name), "correct the host name, or add its DNS record")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(what+"-tls-expired", text("the TLS certificate has expired or is not valid yet (valid %s to %s)", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter)),
			"renew the certificate (tracker.cert_file and key_file, or that of the proxy before it); if it is valid, set this machine's clock")
	case errors.As(err, &name):
		return fail(what+"-tls-name", text("the TLS certificate is for another name: %v", name), "use a name that the certificate has, or have it made for this one")
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return fail(what+"-tls-untrusted", text("the TLS certificate is not trusted: %v", errors.Unwrap(err)), "serve the whole chain (fullchain.pem) of a public authority")
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fail(what+"-no-tls", text("nothing speaks TLS there"), "write http:// or ws://, or give the server a certificate (tracker.cert_file)")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fail(what+"-timeout", text("no answer in time"), "check the firewall and the address: packets are dropped")
	}
	var u *url.Error
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		err = op
	case errors.As(err, &u):
		err = u.Err
	}
	return fail(what+"-unreachable", text("%v", err), "start the server, or correct host and port: nothing listens there")
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// plainURL is a URL for messages: its query may hold secrets.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the URL"
	}
	if u.User = nil; u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return strings.Replace(u.String(), "?%E2%80%A6", "?…", 1)
}

// originOf is the origin of a URL as browsers write it; empty where it has none.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return scheme + "://" + host
}
