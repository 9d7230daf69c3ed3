package originhttp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestSignsForARealNginx has nginx itself judge the signatures.
func TestSignsForARealNginx(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "film", "ä b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.ts", "ä b/c.ts"} {
		if err := os.WriteFile(filepath.Join(dir, "film", name), film, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	base := testkit.Nginx(t, `
    root "`+dir+`";
    location /film/ {
      secure_link $arg_st,$arg_e;
      secure_link_md5 "$secure_link_expires$uri s3cret";
      if ($secure_link = "") { return 403; }
      if ($secure_link = "0") { return 410; }
    }
    location = /moved.ts { return 302 /film/a.ts; }
    location /guarded/ { if ($http_x_shield != "open sesame") { return 403; } alias "`+dir+`/film/"; }`)
	sign, err := NewNginx("$secure_link_expires$uri s3cret", "st", "e")
	if err != nil {
		t.Fatal(err)
	}
	get := func(auth Auth, path string) (*seed.Fetched, error) {
		return client(t, Config{Base: base, Auth: auth}).Get(context.Background(), seed.Fetch{Path: path, MaxBytes: 1 << 20, Shared: true})
	}
	if _, err := get(Auth{}, "/film/a.ts"); outcome(t, err) != seed.OutcomeClient {
		t.Errorf("without a signature: %v", err)
	}
	for _, path := range []string{"/film/a.ts", "/film/%C3%A4%20b/c.ts", "/film//a.ts", "/film/a.ts?lang=de"} {
		got, err := get(Auth{Sign: sign}, path)
		if err != nil || !bytes.Equal(got.Data, film) || got.Path != path {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if got, err := get(Auth{Sign: sign}, "/moved.ts"); err != nil || got.Path != "/film/a.ts" {
		t.Errorf("a redirect below the base is not signed: %v, %v", got, err)
	}
	wrong, err := NewNginx("$secure_link_expires$uri other", "st", "e")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(Auth{Sign: wrong}, "/film/a.ts"); outcome(t, err) != seed.OutcomeClient || strings.Contains(err.Error(), "st=") {
		t.Errorf("by another secret: %v", err)
	}
	headers, err := ParseHeaders([]byte("# of the shield\nX-Shield: open sesame\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(Auth{Header: headers}, "/guarded/a.ts"); err != nil || !bytes.Equal(got.Data, film) {
		t.Errorf("with the header: %v, %v", got, err)
	}
}

func TestNginxSignatureOfItsDocumentation(t *testing.T) {
	sign, err := NewNginx("$secure_link_expires$uri${arg_expires} secret", "md5", "expires")
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse("http://host/s/link?a=b")
	if err := sign.sign(u, time.Unix(2147483647, 0)); err != nil {
		t.Fatal(err)
	}
	// echo -n '2147483647/s/link2147483647 secret' | openssl md5 -binary | openssl base64 | tr +/ -_ | tr -d =
	if want := "a=b&md5=8jRZojV_acVweD8aJdQfUA&expires=2147483647"; u.RawQuery != want {
		t.Errorf("%s, want %s", u.RawQuery, want)
	}
	for _, expression := range []string{"", "$uri$remote_addr secret", "$secure_link_expires secret", "${uri}$request_uri"} {
		if _, err := NewNginx(expression, "md5", "expires"); err == nil {
			t.Errorf("%q is taken", expression)
		}
	}
}

// cloudFrontOf judges requests as CloudFront's documentation has it: by the policy, made anew from the URL, and the public key.
func cloudFrontOf(t *testing.T, public crypto.PublicKey, at func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		base, query, _ := strings.Cut(at()+r.RequestURI, "Expires=")
		values, err := url.ParseQuery("Expires=" + query)
		if err != nil || len(values) != 3 || values.Get("Key-Pair-Id") != "K2JCJMDEHXQW5F" {
			http.Error(w, "no signature", http.StatusForbidden)
			return
		}
		resource := strings.TrimRight(base, "?&")
		policy := fmt.Sprintf(`{"Statement":[{"Resource":"%s","Condition":{"DateLessThan":{"AWS:EpochTime":%s}}}]}`, resource, values.Get("Expires"))
		signature, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "=", "~", "/").Replace(values.Get("Signature")))
		digest := sha1.Sum([]byte(policy))
		good := false
		switch k := public.(type) {
		case *rsa.PublicKey:
			good = rsa.VerifyPKCS1v15(k, crypto.SHA1, digest[:], signature) == nil
		case *ecdsa.PublicKey:
			good = ecdsa.VerifyASN1(k, digest[:], signature)
		}
		if err != nil || !good {
			http.Error(w, "another signature than of "+policy, http.StatusForbidden)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(film))
	}
}

func TestSignsForCloudFront(t *testing.T) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return inPEM("PRIVATE KEY", der, err)
	}
	sec1, err := x509.MarshalECPrivateKey(e)
	for name, c := range map[string]struct {
		public crypto.PublicKey
		key    []byte
	}{
		"RSA, PKCS 1":  {&r.PublicKey, inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r), nil)},
		"RSA, PKCS 8":  {&r.PublicKey, pkcs8(r)},
		"P-256, SEC 1": {&e.PublicKey, inPEM("EC PRIVATE KEY", sec1, err)},
		"P-256":        {&e.PublicKey, pkcs8(e)},
	} {
		sign, err := NewCloudFront("K2JCJMDEHXQW5F", c.key)
		if err != nil {
			t.Fatal(err)
		}
		var s *httptest.Server
		s = serve(t, cloudFrontOf(t, c.public, func() string { return s.URL }))
		for _, path := range []string{"/film/a.ts", "/film/a%20b.ts?lang=de&v=%26"} {
			got, err := client(t, Config{Base: s.URL, Auth: Auth{Sign: sign}}).Get(context.Background(), seed.Fetch{Path: path, MaxBytes: 1 << 20, Shared: true})
			if err != nil || got.Path != path {
				t.Errorf("%s: %s: %v, %v", name, path, got, err)
			}
		}
		if _, err := client(t, Config{Base: s.URL}).Get(context.Background(), seed.Fetch{Path: "/film/a.ts", MaxBytes: 1 << 20}); outcome(t, err) != seed.OutcomeClient {
			t.Errorf("%s: without a signature: %v", name, err)
		}
	}
	for _, key := range []string{"", "secret", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, err := NewCloudFront("K", []byte(key)); err == nil {
			t.Errorf("%q is taken", key)
		}
	}
}

// TestAuthStaysWithItsOrigin: what a redirect leads to beside fetch_base sees none of it.
func TestAuthStaysWithItsOrigin(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shield") != "" || r.Header.Get("Authorization") != "" || r.URL.RawQuery != "" || strings.Contains(r.Referer(), "md5") {
			t.Errorf("the other server is shown %s %v", r.URL, r.Header)
		}
		_, _ = w.Write(film)
	})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shield") != "a" || r.Header.Get("Authorization") != "Bearer b" || r.URL.Query().Get("md5") == "" {
			t.Errorf("the origin is shown %s %v", r.URL, r.Header)
		}
		http.Redirect(w, r, other.URL+"/film/a.ts", http.StatusFound)
	})
	sign, err := NewNginx("$uri s", "md5", "expires")
	if err != nil {
		t.Fatal(err)
	}
	auth := Auth{Header: http.Header{"X-Shield": {"a"}, "Authorization": {"Bearer b"}}, Sign: sign}
	got, err := client(t, Config{Base: s.URL, Redirects: []string{other.URL}, Auth: auth}).Get(context.Background(), seed.Fetch{Path: "/a.ts", MaxBytes: 1 << 20, Shared: true})
	if err != nil || !bytes.Equal(got.Data, film) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseHeaders(t *testing.T) {
	h, err := ParseHeaders([]byte("\n# a comment\r\nX-A: 1\r\nx-a:2\nAuthorization: Bearer a:b\n"))
	if err != nil || len(h.Values("X-A")) != 2 || h.Get("Authorization") != "Bearer a:b" {
		t.Errorf("%v, %v", h, err)
	}
	for _, text := range []string{"", "# none\n", "secret", "X A: secret", "X-A:", ": secret", "X-A: sec\x01ret", "Range: bytes=0-1", "host: secret", "x-a: 1\nTransfer-Encoding: secret"} {
		if _, err := ParseHeaders([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
