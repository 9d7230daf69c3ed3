package natsbus

import (
	"strings"
	"testing"
)

func TestErrorsKeepPasswords(t *testing.T) {
	const servers = "nats://leeway:secret@127.0.0.1:1,nats://127.0.0.1:2"
	_, err := Open(Config{URL: servers, Name: "test"})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
	for _, url := range []string{
		"nats://secret@127.0.0.1:1", "leeway:secret@127.0.0.1:1", "secret@127.0.0.1:1", "nats://a:se cret%zz@127.0.0.1:1", "nats://a@secret@127.0.0.1:1",
		"nats://a:x@127.0.0.1:1,nats://secret@127.0.0.1:2", "nats://a:x@secret%zz@127.0.0.1:1",
	} {
		if _, err := Open(Config{URL: url, Name: "test"}); err == nil || strings.Contains(err.Error(), "cret") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if got := redacted("nats://a:%zz@b"); got != "nats://b" {
		t.Errorf("a URL that cannot be read comes out as %q", got)
	}
}

func TestOpenBusIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want bool
	}{
		{Config{}, false}, {Config{Listen: "127.0.0.1:4222"}, false}, {Config{Listen: "[::1]:0"}, false}, {Config{Listen: "localhost:4222"}, false},
		{Config{Listen: ":4222"}, true}, {Config{Listen: "10.0.0.5:4222"}, true}, {Config{Listen: "nats.internal:4222"}, true},
		{Config{Listen: ":4222", User: "leeway", Password: "x"}, false}, {Config{Listen: ":4222", CertFile: "c", KeyFile: "k"}, true},
		{Config{Listen: ":4222", CertFile: "c", KeyFile: "k", CAFile: "ca"}, false},
	} {
		if got := exposed(c.cfg); got != c.want {
			t.Errorf("%+v: %v", c.cfg, got)
		}
	}
}

// TestTheCheckTakesWhatTheClientTakes: an empty place in the list, no scheme, and one of other programs.
func TestTheCheckTakesWhatTheClientTakes(t *testing.T) {
	for _, servers := range []string{"nats", "nats:4222,", " nats://a:4222 , ,tls://[::1]:4222", "tcp://a:4222", "wss://name:secret@a"} {
		if err := (Config{URL: servers}).Check(); err != nil {
			t.Errorf("%q: %v", servers, err)
		}
	}
	if err := (Config{URL: "nats://a:4222,nats://"}).Check(); err == nil {
		t.Error("a server without a host passes")
	}
}
