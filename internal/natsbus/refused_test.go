package natsbus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/leeway-video/leeway/internal/testkit"
)

// restricted is a server whose user may publish and subscribe to test.allowed alone, and has its answers in an inbox of its own.
func restricted(t *testing.T) (url string) {
	t.Helper()
	return running(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Users: []*server.User{
		{Username: "all", Password: "a"},
		{Username: "some", Password: "s", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"test.allowed"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"test.allowed", "_INBOX.some.>"}},
			Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
		}},
	}}).ClientURL()
}

// running is a server that ends with the test.
func running(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	s, err := begin(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// TestARefusedSubjectIsAnError: what the server does not allow is neither reported as sent nor taken for a subscription.
func TestARefusedSubjectIsAnError(t *testing.T) {
	noLeaks(t)
	url := restricted(t)
	var r testkit.Recorder
	some := open(t, Config{URL: url, User: "some", Password: "s", Inbox: "some", Metrics: &r})
	all := open(t, Config{URL: url, User: "all", Password: "a"})
	ignore := func(string, []byte, func([]byte) error) {}
	if err := some.Send("test.allowed", nil); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := some.Send("test.other", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("sent where it may not: %v", err)
	}
	if _, err := some.Subscribe("test.other", ignore); !errors.Is(err, ErrRefused) {
		t.Errorf("subscribed where it may not: %v", err)
	}
	if err := some.Send("test.allowed", nil); err != nil {
		t.Errorf("allowed, after a refusal: %v", err)
	}
	waitFor(t, "both refusals are counted", func() bool { return r.Value(defRefused) == 2 })
	// Answers in both directions: to the inbox of its own, and by the right to answer.
	for asker, other := range map[*Bus]*Bus{some: all, all: some} {
		stop, err := other.Subscribe("test.allowed", func(_ string, _ []byte, reply func([]byte) error) { _ = reply([]byte("yes")) })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if v, err := asker.Request(ctx, "test.allowed", nil); err != nil || string(v) != "yes" {
			t.Errorf("answered %q, %v", v, err)
		}
		cancel()
		stop()
	}
}

// TestARequestCannotMakeAReplicaSpeakForAnother: the answer is not said on a subject that the request names, unless it is an inbox.
func TestARequestCannotMakeAReplicaSpeakForAnother(t *testing.T) {
	noLeaks(t)
	b := open(t, Config{})
	said := make(chan error, 1)
	if _, err := b.Subscribe("test.request", func(_ string, _ []byte, reply func([]byte) error) { said <- reply([]byte("x")) }); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{}, 2)
	if _, err := b.Subscribe("test.victim", func(string, []byte, func([]byte) error) { heard <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.PublishMsg(&nats.Msg{Subject: "test.request", Reply: "test.victim"}); err != nil {
		t.Fatal(err)
	}
	if err := <-said; !errors.Is(err, errNoInbox) {
		t.Errorf("answered: %v", err)
	}
	if err := b.Send("test.victim", nil); err != nil { // and nothing before it
		t.Fatal(err)
	}
	<-heard
	if len(heard) != 0 {
		t.Error("the answer was said on the subject of another")
	}
}

// TestAConnectionThatEndedForGoodIsTold: the client does not try again after an error of the server that it does not know. Without the news
// a service would run on without a bus.
func TestAConnectionThatEndedForGoodIsTold(t *testing.T) {
	noLeaks(t)
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	s := running(t, options)
	lost := make(chan error, 2)
	b := open(t, Config{URL: s.ClientURL(), Lost: func(err error) { lost <- err }})
	open(t, Config{URL: s.ClientURL(), Lost: func(err error) { t.Errorf("closed, and told of it: %v", err) }})
	// An operator lowers the limit: clients are not told of it.
	lower := *options
	lower.MaxPayload = 1 << 10
	if err := s.ReloadOptions(&lower); err != nil {
		t.Fatal(err)
	}
	_ = b.Send("test.long", make([]byte, 2<<10))
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "Maximum Payload") {
		t.Errorf("told %v", err)
	}
}
