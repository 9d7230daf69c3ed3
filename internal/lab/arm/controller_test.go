package arm_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// script is a controller that says fixed texts: the first to the register command, the others behind it.
type script struct {
	conn  *wsconn.Conn
	texts []string
}

// Receive implements wsconn.Receiver.
func (s *script) Receive([]byte) bool {
	for _, text := range s.texts {
		_ = s.conn.Write([]byte(text))
	}
	s.texts = nil
	return true
}

// End implements wsconn.Receiver.
func (s *script) End(error) {}

func TestControllersThatSayWhatTheyMustNot(t *testing.T) {
	const taken = `{"jattack":"success","transaction":"register"}`
	for _, c := range []struct {
		texts []string
		code  armwire.Code
	}{
		{[]string{`{"jattack":"error","transaction":"register","body":{"code":"refused","reason":"no"}}`}, armwire.Refused},
		{[]string{`{"jattack":"create-session","transaction":"t","id":"s"}`}, armwire.BadMessage},
		{[]string{`<html>`}, armwire.BadMessage},
		{[]string{taken, `{"jattack":`}, armwire.BadMessage},
		{[]string{taken, `{"jattack":"create-session","transaction":"a b"}`}, armwire.BadMessage},
		{[]string{taken, `{"jattack":"create-session","transaction":"t","id":"s"}`, `null`}, armwire.BadMessage},
	} {
		current := goleak.IgnoreCurrent()
		endpoint := wsconn.Handler(wsconn.Config{Subprotocol: armwire.Subprotocol, MaxMessage: armwire.MaxMessage}, func(conn *wsconn.Conn, _ *http.Request) wsconn.Receiver {
			return &script{conn, c.texts}
		})
		server := httptest.NewServer(endpoint)
		err := arm.Run(t.Context(), arm.Config{Controller: "ws" + strings.TrimPrefix(server.URL, "http"), Name: "a"})
		var typed *armwire.Error
		if !errors.As(err, &typed) || typed.Code != c.code {
			t.Errorf("%q: the arm ended with %v, expected %s", c.texts, err, c.code)
		}
		server.Close()
		endpoint.Wait()
		goleak.VerifyNone(t, current)
	}
}

func TestAnArmWithoutAController(t *testing.T) {
	err := arm.Run(t.Context(), arm.Config{Controller: "ws://127.0.0.1:1/", Name: "a"})
	if !arm.IsDial(err) {
		t.Errorf("%v", err)
	}
}
