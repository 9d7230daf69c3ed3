package demopage

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// What a page tells is its bench's; all else goes to the servers as it is.
func TestWhatThePageTellsDoesNotCrossTheLine(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "<head>"+r.Method+" "+r.URL.Path)
	}))
	t.Cleanup(behind.Close)
	var heard []string
	front := httptest.NewServer(Telling((&net.Dialer{}).DialContext, strings.TrimPrefix(behind.URL, "http://"), "<!-- ours -->", func(body io.Reader) error {
		b, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		if heard = append(heard, string(b[:min(len(b), 9)])); string(b) == "nonsense" {
			return errors.New("what?")
		}
		return nil
	}))
	t.Cleanup(front.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct{ method, path, body, want string }{
		{http.MethodGet, "/", "", "200 <head><!-- ours -->GET /"},
		{http.MethodGet, "/media//a.ts", "", "200 <head>GET /media//a.ts"},
		{http.MethodPost, toldAt, "something", "200 "},
		{http.MethodPost, toldAt, "nonsense", "400 what?\n"},
		{http.MethodPost, toldAt, strings.Repeat("x", toldBound+1), "400 http: request body too large\n"},
	} {
		request, _ := http.NewRequest(c.method, front.URL+c.path, strings.NewReader(c.body))
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := response.Status[:4] + string(body); err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.method, c.path, got, err, c.want)
		}
	}
	if got := strings.Join(heard, ", "); got != "something, nonsense" {
		t.Errorf("heard: %s", got)
	}
}
