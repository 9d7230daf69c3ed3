package doctor_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/doctor"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// drawn is the tracker behind a proxy that puts sessions into the control group by their number, from one on.
func drawn(t *testing.T, tracker string, member func(n int32) bool) (at string, count *atomic.Int32) {
	return through(t, tracker, func(n int32, b []byte) []byte {
		if member(n) {
			b = bytes.Replace(b, []byte(`"control_group":false`), []byte(`"control_group":true`), 1)
		}
		return b
	})
}

// through is the tracker behind a proxy that changes what the tracker says to sessions, by their number, from one on.
func through(t *testing.T, tracker string, change func(n int32, b []byte) []byte) (at string, count *atomic.Int32) {
	count = new(atomic.Int32)
	upgrader := websocket.Upgrader{Subprotocols: []string{signal.Subprotocol}, CheckOrigin: func(*http.Request) bool { return true }}
	dialer := websocket.Dialer{Subprotocols: upgrader.Subprotocols}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		there, answer, err := dialer.Dial(tracker, http.Header{"Origin": r.Header["Origin"]})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_ = answer.Body.Close()
		here, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			_ = there.Close()
			return
		}
		pass := func(from, to *websocket.Conn, change func([]byte) []byte) {
			defer from.Close()
			defer to.Close()
			for {
				kind, b, err := from.ReadMessage()
				if err != nil || to.WriteMessage(kind, change(b)) != nil {
					return
				}
			}
		}
		var both sync.WaitGroup
		both.Go(func() { pass(here, there, func(b []byte) []byte { return b }) })
		both.Go(func() { pass(there, here, func(b []byte) []byte { return change(n, b) }) })
		both.Wait()
	}))
	t.Cleanup(proxy.Close)
	return "ws" + strings.TrimPrefix(proxy.URL, "http") + "/", count
}

// draws has the doctor's sessions drawn into the control group: it asks again, and not for ever.
func (s *set) draws(t *testing.T) {
	c := doctor.Config{Manifest: s.good.manifest(), Patience: 20 * time.Second}
	var count *atomic.Int32
	c.Tracker, count = drawn(t, s.tracker, func(n int32) bool { return n == 1 || n == 3 })
	report := doctor.Examine(t.Context(), c, nil)
	if f, ok := found(report, "control-group"); ok || !report.Healthy || count.Load() != 6 {
		t.Errorf("%d sessions, and %+v", count.Load(), f)
	}
	for _, f := range report.Findings {
		if f.Check == "piece" && f.Status != doctor.OK {
			t.Errorf("%+v", f)
		}
	}
	c.Tracker, count = drawn(t, s.tracker, func(int32) bool { return true })
	report = doctor.Examine(t.Context(), c, nil)
	if f, ok := found(report, "control-group"); !ok || f.Status != doctor.Warn || count.Load() != 3 {
		t.Errorf("%d sessions, and %+v", count.Load(), f)
	}
}

// late has the tracker hear of the seed when the doctor has joined: it joins again.
func (s *set) late(t *testing.T) {
	var joins atomic.Int32
	seeds := regexp.MustCompile(`"seeds":[1-9]`)
	c := doctor.Config{Manifest: s.good.manifest(), Patience: 20 * time.Second}
	c.Tracker, _ = through(t, s.tracker, func(_ int32, b []byte) []byte {
		if seeds.Match(b) && joins.Add(1) == 1 {
			return seeds.ReplaceAll(b, []byte(`"seeds":0`))
		}
		return b
	})
	report := doctor.Examine(t.Context(), c, nil)
	if f, ok := found(report, "no-seed"); ok || !report.Healthy || joins.Load() < 2 {
		t.Errorf("%d joins, and %+v", joins.Load(), f)
	}
}

// TestAnAnswerThatCannotBeReadIsTold: of a tracker of another version it would be wrong that it does not answer.
func TestAnAnswerThatCannotBeReadIsTold(t *testing.T) {
	upgrader := websocket.Upgrader{Subprotocols: []string{signal.Subprotocol}, CheckOrigin: func(*http.Request) bool { return true }}
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		if _, _, err := conn.ReadMessage(); err == nil {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"welcome","id":1}`))
		}
	}))
	defer tracker.Close()
	report := doctor.Examine(t.Context(), doctor.Config{Tracker: "ws" + strings.TrimPrefix(tracker.URL, "http") + "/", PageOrigin: tracker.URL}, nil)
	if f, ok := found(report, "welcome-timeout"); !ok || !strings.Contains(f.Text, "cannot read") || !strings.Contains(f.Text, "ice_servers is missing") {
		t.Errorf("%+v", report.Findings)
	}
}
