package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFilesAreTheTrackersOwn(t *testing.T) {
	answer, status := "", http.StatusOK
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer admin.Close()
	at := strings.TrimPrefix(admin.URL, "http://")
	own, _ := maxFiles()
	for text, want := range map[string]uint64{
		"# TYPE process_max_fds gauge\nprocess_max_fds 65536\n": 65536,
		"process_max_fds 1.048576e+06\n":                        1 << 20,
		"":                                                      own,
		"process_max_fds NaN\n":                                 own,
		"process_max_fds -1\n":                                  own,
		"process_max_fds 1e300\n":                               own,
	} {
		answer = text
		if n, of := openFiles(t.Context(), at); n != want || (of == "the tracker") != (want != own) {
			t.Errorf("%q: %d of %s", text, n, of)
		}
	}
	answer, status = "process_max_fds 7\n", http.StatusForbidden
	for _, at := range []string{at, "", "127.0.0.1:1", "a b"} {
		if n, of := openFiles(t.Context(), at); n != own || of != "this process" {
			t.Errorf("%q: %d of %s", at, n, of)
		}
	}
}
