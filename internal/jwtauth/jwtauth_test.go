package jwtauth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

var now = time.Unix(1_790_000_000, 0)

func newKey(t testing.TB, alg, id string) access.Key {
	t.Helper()
	k, err := access.NewKey(alg, id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatIsSignedIsGranted(t *testing.T) {
	for _, alg := range []string{access.EdDSA, access.HS256} {
		key := newKey(t, alg, "one")
		claims := access.Claims{
			Site: "demo", Subject: "s", Titles: []string{"/a", "/b/*"}, Group: "g", Role: "leech", Unknown: "full", Upload: 2000, Disk: 3000, NotBefore: now.Add(-time.Minute), Expires: now.Add(time.Minute),
		}
		token, err := Sign(claims, key)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Check(token, "demo", access.Keys{newKey(t, alg, "other"), key.Checking()}, now)
		if err != nil || g.KeyID != "one" || g.Subject != "s" || g.Group != "g" || g.Role != "leech" || g.Unknown != "full" || g.Upload != 2000 || g.Disk != 3000 || !g.Expires.Equal(claims.Expires) || !g.Covers("/b/c") || g.Covers("/c") {
			t.Errorf("%s: %+v, %v", alg, g, err)
		}
		header, text, err := Peek(token)
		if err != nil || !strings.Contains(string(header), `"kid":"one"`) || !strings.Contains(string(text), `"site":"demo"`) {
			t.Errorf("%s: %s %s %v", alg, header, text, err)
		}
	}
}

// TestNoByteOfATokenMayChange flips each character of a good token: nothing but the token itself is granted anything.
func TestNoByteOfATokenMayChange(t *testing.T) {
	for _, alg := range []string{access.EdDSA, access.HS256} {
		key := newKey(t, alg, "one")
		token, err := Sign(access.Claims{Site: "demo", Expires: now.Add(time.Minute)}, key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(token) {
			for _, c := range []byte{'A', 'z', '.', '='} {
				if token[i] == c {
					continue
				}
				other := token[:i] + string(c) + token[i+1:]
				if g, err := Check(other, "demo", access.Keys{key}, now); err == nil {
					t.Fatalf("%s: granted %+v to a token whose byte %d is %q", alg, g, i, c)
				}
			}
		}
	}
}

// FuzzCheck: nothing is granted that was not signed, and no error is untyped or quotes the token.
func FuzzCheck(f *testing.F) {
	v, keys := readVectors(f)
	good := map[string]bool{}
	for _, c := range v.Tokens {
		f.Add(c.Token)
		if c.Grant != nil {
			good[c.Token] = true
		}
	}
	f.Fuzz(func(t *testing.T, token string) {
		g, err := Check(token, "demo", keys, now)
		if err == nil {
			if !good[token] {
				t.Fatalf("granted %+v to an unsigned token", g)
			}
			return
		}
		var refused *access.TokenError
		if !errors.As(err, &refused) || refused.Problem == "" || refused.Hint == "" || g != nil || len(err.Error()) > 400 {
			t.Fatalf("refused by %v", err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for _, alg := range []string{access.EdDSA, access.HS256} {
		b.Run(alg, func(b *testing.B) {
			key := newKey(b, alg, "one")
			token, err := Sign(access.Claims{Site: "demo", Titles: []string{"/media/*"}, Expires: now.Add(time.Minute)}, key)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Check(token, "demo", access.Keys{key}, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
