package access

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

func secret(t testing.TB, text string) RelaySecret {
	t.Helper()
	s, err := NewRelaySecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRelayVectors reads what spec/turn.md points to.
func TestRelayVectors(t *testing.T) {
	vectors := spec.Vectors[struct {
		Credentials []struct {
			Secret, Site, Holder, Username, Credential string
			Expires                                    int64 `json:"expires_s"`
		}
		Refused []string
	}](t, "turn.json")
	for _, v := range vectors.Credentials {
		s := secret(t, v.Secret)
		username, credential := s.Mint(v.Site, v.Holder, time.Unix(v.Expires, 0))
		if username != v.Username || credential != v.Credential {
			t.Errorf("minted %s %s, want %s %s", username, credential, v.Username, v.Credential)
		}
		u, err := ParseRelayUser(v.Username)
		if err != nil || u.Site != v.Site || u.Holder != v.Holder || u.Expires.Unix() != v.Expires || u.SecretID != s.ID() {
			t.Errorf("%s is read as %+v, %v", v.Username, u, err)
		}
	}
	for _, username := range vectors.Refused {
		if u, err := ParseRelayUser(username); err == nil {
			t.Errorf("%q is taken for %+v", username, u)
		}
	}
}

func TestRelaySecrets(t *testing.T) {
	for _, bad := range []string{"", strings.Repeat("x", 31), strings.Repeat("x", 31) + " ", strings.Repeat("é", 20)} {
		if _, err := NewRelaySecret(bad); err == nil {
			t.Errorf("%q is taken for a secret", bad)
		}
	}
	now, before := secret(t, strings.Repeat("n", 32)), secret(t, strings.Repeat("b", 32))
	both := RelaySecrets{now, before}
	for _, s := range both {
		username, _ := s.Mint("demo", "holder", time.Unix(2_000_000_000, 0))
		u, err := ParseRelayUser(username)
		if err != nil {
			t.Fatal(err)
		}
		if of, ok := both.Of(u); !ok || of != s {
			t.Errorf("%s belongs to %s, %v; want %s", username, of.ID(), ok, s.ID())
		}
		if _, ok := (RelaySecrets{secret(t, strings.Repeat("o", 32))}).Of(u); ok {
			t.Errorf("%s belongs to a secret that it was not made with", username)
		}
	}
	if of, ok := both.Of(RelayUser{}); !ok || of != now {
		t.Error("a username without a secret's ID does not belong to the first")
	}
	if _, ok := (RelaySecrets{}).Of(RelayUser{}); ok {
		t.Error("there is a secret where there is none")
	}
}

func FuzzParseRelayUser(f *testing.F) {
	for _, seed := range []string{
		"1700000000:demo:AAECAwQFBgcICQoL:Zm9vYm", "1700000000:demo:x", "1700000000:demo", ":::", "01:a:b", "-1:a:b", "1:a:b:c:d", "1:a:b:ccccc\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, username string) {
		u, err := ParseRelayUser(username)
		if err != nil {
			return
		}
		again := strings.Join([]string{strings.Split(username, ":")[0], u.Name()}, ":")
		if u.SecretID != "" {
			again += ":" + u.SecretID
		}
		if again != username || u.Expires.Unix() < 0 {
			t.Fatalf("%q is read as %+v", username, u)
		}
	})
}
