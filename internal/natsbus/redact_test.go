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
	if got := redacted("nats://a:%zz@b"); got != "the configured servers" {
		t.Errorf("a URL that cannot be read comes out as %q", got)
	}
}
