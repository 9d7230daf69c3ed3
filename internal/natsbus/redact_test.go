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
