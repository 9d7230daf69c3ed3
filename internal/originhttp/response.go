package originhttp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
)

// maxSkip is how far into a whole object the client reads when the origin ignores a Range, bytes.
const maxSkip = 32 << 20

// Get implements seed.Origin.
func (c *Client) Get(ctx context.Context, f seed.Fetch) (*seed.Fetched, error) {
	resp, err := c.ask(ctx, f)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // what was needed has been read
	if !f.Shared && !f.Ranged {
		if err := Unpack(resp, f.MaxBytes); err != nil {
			return nil, failed(f, outcomeOf(ctx, err), cause(err))
		}
	}
	got := c.described(resp)
	var large *tooLargeError
	if got.Data, got.ObjectLength, err = body(resp, f); err != nil {
		switch {
		case errors.As(err, &large):
			return nil, failed(f, seed.OutcomeTooLarge, err)
		case errors.Is(err, errRefused):
			return nil, failed(f, seed.OutcomeRefused, err)
		}
		return nil, failed(f, outcomeOf(ctx, err), cause(err))
	}
	return got, nil
}

// ask asks for a response whose body is to be read: one that is refused is none.
func (c *Client) ask(ctx context.Context, f seed.Fetch) (*http.Response, error) {
	req, err := c.request(ctx, f)
	if err != nil {
		return nil, failed(f, seed.OutcomeRefused, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, failed(f, outcomeOf(ctx, err), cause(err))
	}
	o, err := judge(resp)
	switch {
	case !f.Shared:
	case err == nil:
		o, err = seed.OutcomeRefused, Shareable(resp)
	case o == seed.OutcomeNotModified:
		if refused := forEveryone(resp.Header); refused != nil {
			o, err = seed.OutcomeRefused, refused
		}
	}
	if err != nil {
		_ = resp.Body.Close()
		e := failed(f, o, err)
		e.Clock = clockOf(resp.Header, time.Now())
		return nil, e
	}
	return resp, nil
}

// clockOf is by how much a clock is ahead of the origin's at least, by the Date of an answer that has just come and that no cache has kept.
// Below 0 the clock is behind. 0: it may be right, for a Date has whole seconds and has been on its way.
func clockOf(h http.Header, now time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if age := h.Get("Age"); err != nil || age != "" && age != "0" {
		return 0
	}
	ahead := now.Sub(date)
	if ahead > 0 {
		ahead = max(0, ahead-2*time.Second)
	}
	return ahead.Round(time.Second)
}

// described is what the header of a response says of the object.
func (c *Client) described(resp *http.Response) *seed.Fetched {
	got := &seed.Fetched{Validator: resp.Header.Get("ETag")}
	if got.Validator == "" {
		got.Validator = resp.Header.Get("Last-Modified")
	}
	got.Path, _ = below(c.base, resp.Request.URL)
	return got
}

// failed is why a fetch brought nothing. Of an object that is too large it has the length.
func failed(f seed.Fetch, o seed.Outcome, why error) *seed.FetchError {
	path, _, _ := strings.Cut(f.Path, "?") // queries may hold secrets, errors are logged
	e := &seed.FetchError{Outcome: o, Path: path, Cause: why}
	var large *tooLargeError
	if errors.As(why, &large) {
		e.ObjectLength = large.object
	}
	return e
}

func outcomeOf(ctx context.Context, err error) seed.Outcome {
	var n net.Error
	switch {
	case errors.Is(err, errRefused):
		return seed.OutcomeRefused
	case ctx.Err() != nil, errors.As(err, &n) && n.Timeout():
		return seed.OutcomeTimeout
	}
	return seed.OutcomeNetwork
}

// cause strips the URL, whose query may hold secrets, from an error of net/http.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// judge sorts responses by status.
func judge(resp *http.Response) (seed.Outcome, error) {
	err := fmt.Errorf("status %d", resp.StatusCode)
	switch s := resp.StatusCode; {
	case s == http.StatusOK, s == http.StatusPartialContent && resp.Request.Header.Get("Range") != "":
		return seed.OutcomeOK, nil
	case s == http.StatusNotModified:
		return seed.OutcomeNotModified, err
	case s == http.StatusNotFound, s == http.StatusGone:
		return seed.OutcomeNotFound, err
	case s >= 500:
		return seed.OutcomeServer, err
	}
	return seed.OutcomeClient, err
}

// Shareable says why a seed refuses to pass the body of a response on, or nil.
func Shareable(resp *http.Response) error {
	if err := forEveryone(resp.Header); err != nil {
		return err
	}
	return passable(resp)
}

// forEveryone says whether the origin means a response for everyone, and to be kept (spec/certificate.md).
func forEveryone(h http.Header) error {
	if len(h.Values("Set-Cookie")) > 0 {
		return fmt.Errorf("%w: the response sets a cookie", errRefused)
	}
	if d := cacheControl(h, "private", "no-store"); d != "" {
		return fmt.Errorf("%w: the response is %s (Cache-Control)", errRefused, d)
	}
	for _, v := range h.Values("Vary") {
		for _, name := range strings.Split(v, ",") {
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "", "accept-encoding", "origin":
			default:
				return fmt.Errorf("%w: the response varies (Vary) by more than Accept-Encoding and Origin", errRefused)
			}
		}
	}
	return nil
}

// cacheControl is the first of some directives that a response has; empty: none.
func cacheControl(h http.Header, directives ...string) string {
	for _, v := range h.Values("Cache-Control") {
		for _, d := range strings.Split(v, ",") {
			name, _, _ := strings.Cut(strings.ToLower(d), "=")
			if name = strings.TrimSpace(name); slices.Contains(directives, name) {
				return name
			}
		}
	}
	return ""
}

// passable says whether the bytes are those that viewers see, and whether their end can be told from a lost connection.
func passable(resp *http.Response) error {
	if resp.ContentLength < 0 && resp.ProtoMajor < 2 && len(resp.TransferEncoding) == 0 {
		return fmt.Errorf("%w: the response says neither its length nor where it ends (Content-Length)", errRefused)
	}
	if encoding(resp.Header) != "" {
		return fmt.Errorf("%w: the response is encoded (Content-Encoding) although identity was asked for", errRefused)
	}
	return nil
}

// encoding is how a body is packed; empty: it is not.
func encoding(h http.Header) string {
	for _, v := range h.Values("Content-Encoding") {
		if e := strings.ToLower(v); e != "" && e != "identity" {
			return e
		}
	}
	return ""
}

// Unpack has the body of a response read as it was before it was packed. Browsers do that unasked. A store that keeps playlists packed sends
// them so whatever was asked for.
func Unpack(resp *http.Response, most int64) error {
	packed := encoding(resp.Header)
	if packed == "" {
		return nil
	}
	if packed != "gzip" {
		return fmt.Errorf("%w: the response is encoded by %.16q (Content-Encoding) although identity was asked for; gzip alone is read", errRefused, packed)
	}
	z, err := gzip.NewReader(io.LimitReader(resp.Body, most))
	if err != nil {
		return err
	}
	resp.Body, resp.ContentLength = struct {
		io.Reader
		io.Closer
	}{z, resp.Body}, -1
	return nil
}

type tooLargeError struct{ object int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the object is too large (%d bytes)", e.object)
}

// body reads the bytes that were asked for; no more than f.MaxBytes are kept.
func body(resp *http.Response, f seed.Fetch) (data []byte, object int64, err error) {
	if !f.Ranged {
		if resp.ContentLength > f.MaxBytes {
			return nil, 0, &tooLargeError{resp.ContentLength}
		}
		if data, err = read(resp.Body, resp.ContentLength, f.MaxBytes); err != nil {
			return nil, 0, err
		}
		return data, int64(len(data)), nil
	}
	want := f.Last - f.First + 1
	if f.First < 0 || want < 1 || want > f.MaxBytes {
		return nil, 0, &tooLargeError{0}
	}
	if resp.StatusCode == http.StatusPartialContent {
		first, last, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || first != f.First || last != f.Last || resp.ContentLength >= 0 && resp.ContentLength != want {
			return nil, 0, fmt.Errorf("%w: the response is not the range that was asked for", errRefused)
		}
		if total == 0 && !f.AnyLength {
			return nil, 0, fmt.Errorf("%w: the response does not say how long the object is (Content-Range)", errRefused)
		}
		object = total
	} else { // the whole object: the part is cut out, if it is not too far in
		if object = resp.ContentLength; f.Last >= maxSkip || object <= f.Last {
			return nil, 0, fmt.Errorf("%w: the origin ignores Range, or the object ends before it", errRefused)
		}
		if _, err := io.CopyN(io.Discard, resp.Body, f.First); err != nil {
			return nil, 0, err
		}
	}
	data = make([]byte, want)
	if _, err := io.ReadFull(resp.Body, data); err != nil {
		return nil, 0, err
	}
	if resp.StatusCode == http.StatusPartialContent {
		if n, _ := io.ReadFull(resp.Body, make([]byte, 1)); n > 0 {
			return nil, 0, fmt.Errorf("%w: the response is longer than the range that was asked for", errRefused)
		}
	}
	return data, object, nil
}

// read reads a whole body of the given length, or of any length up to max when it is not known.
func read(r io.Reader, length, max int64) ([]byte, error) {
	if length >= 0 {
		data := make([]byte, length)
		_, err := io.ReadFull(r, data)
		return data, err
	}
	data, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(data)) > max {
		return nil, &tooLargeError{0}
	}
	return data, err
}

// contentRange reads "bytes first-last/total"; a total of 0 stands for "*": the origin does not know it.
func contentRange(v string) (first, last, total int64, ok bool) {
	rest, ok := strings.CutPrefix(v, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	from, to, ok3 := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	ok = ok && ok2 && ok3 && err1 == nil && err2 == nil && first <= last
	if size == "*" {
		return first, last, 0, ok
	}
	total, err := strconv.ParseInt(size, 10, 64)
	return first, last, total, ok && err == nil && last < total
}
