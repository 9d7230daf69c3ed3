package loadgen

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// TestSessionsComeBackAsTheLibraryDoes plays spec/vectors/return.json.
func TestSessionsComeBackAsTheLibraryDoes(t *testing.T) {
	file := spec.Vectors[struct {
		Cases []struct {
			Name  string
			Steps []struct {
				Session    int64  `json:"session_ms"`
				Reconnect  *int64 `json:"reconnect_ms"`
				RetryAfter int64  `json:"retry_after_ms"`
				Draw       int    `json:"draw"`
				Wait       int64  `json:"wait_ms"`
			}
		}
	}](t, "return.json")
	for _, c := range file.Cases {
		var r returning
		for i, s := range c.Steps {
			at := r.wait(float64(s.Draw)/1024, time.Duration(s.Session)*time.Millisecond, s.Reconnect != nil).Milliseconds()
			early := s.RetryAfter
			if s.Reconnect != nil {
				early = *s.Reconnect
			}
			if got := max(at, early); got != s.Wait {
				t.Errorf("%s, step %d: after %d ms, want %d", c.Name, i, got, s.Wait)
			}
		}
	}
}
