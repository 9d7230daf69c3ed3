package originhttp

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signedFor is how long a signed URL of a seed is good for: longer than any fetch and than clocks differ.
const signedFor = time.Hour

// Auth is how a client shows the origin that it may fetch. It is used below fetch_base alone: where a redirect leads elsewhere,
// the other server sees neither headers nor signatures.
type Auth struct {
	// Header is sent with each request.
	Header http.Header
	// Sign adds a signature to each URL; nil adds none.
	Sign Signer
}

// Signer signs URLs as an origin or a CDN checks them. It is safe for concurrent use.
type Signer interface {
	// sign adds to the query what makes the URL good until a time.
	sign(u *url.URL, until time.Time) error
}

// reserved are headers that the client or the protocol sets itself.
var reserved = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
	"If-Unmodified-Since", "Keep-Alive", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ParseHeaders reads headers to send: a line each, "Name: value". Blank lines, and lines that begin with #, are left out.
// Errors name the line and never its value.
func ParseHeaders(text []byte) (http.Header, error) {
	h := http.Header{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok || !headerName.MatchString(name) || value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("line %d is no header (write Name: value)", n)
		case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(name)):
			return nil, fmt.Errorf("line %d: the seed sets %s itself (leave it out)", n, name)
		}
		h.Add(name, value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("a line is too long: %w", err)
	}
	if len(h) == 0 {
		return nil, errors.New("has no header (write a line for each, Name: value)")
	}
	return h, nil
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// nginx signs as nginx's secure_link checks.
type nginx struct {
	parts              []string // literal text and variables in turn
	signature, expires string   // names of the parameters
}

// nginxVariable is a variable in an expression of nginx.
var nginxVariable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// NewNginx signs by the expression that secure_link_md5 has in nginx's configuration, such as "$secure_link_expires$uri secret".
// Signature and expires are the names of the parameters that its secure_link takes the values from.
func NewNginx(expression, signature, expires string) (Signer, error) {
	s := &nginx{signature: signature, expires: expires}
	rest := 0
	for _, m := range nginxVariable.FindAllStringSubmatchIndex(expression, -1) {
		name := nginxVariable.FindStringSubmatch(expression[m[0]:m[1]])
		variable := name[1] + name[2]
		switch variable {
		case "uri", "secure_link_expires", "arg_" + expires:
		default:
			return nil, fmt.Errorf("the expression has $%s, which a seed cannot know (it knows $secure_link_expires and $uri; give seeds a location of their own)", variable)
		}
		s.parts = append(s.parts, expression[rest:m[0]], variable)
		rest = m[1]
	}
	s.parts = append(s.parts, expression[rest:])
	if !slices.Contains(s.parts, "uri") {
		return nil, errors.New("the expression has no $uri: write what secure_link_md5 has in nginx's configuration, such as $secure_link_expires$uri and the secret")
	}
	return s, nil
}

func (s *nginx) sign(u *url.URL, until time.Time) error {
	at := strconv.FormatInt(until.Unix(), 10)
	uri := u.Path // as nginx's $uri: decoded, with slashes merged
	for strings.Contains(uri, "//") {
		uri = strings.ReplaceAll(uri, "//", "/")
	}
	var text strings.Builder
	for i, p := range s.parts {
		switch {
		case i%2 == 0:
			text.WriteString(p)
		case p == "uri":
			text.WriteString(uri)
		default:
			text.WriteString(at)
		}
	}
	sum := md5.Sum([]byte(text.String())) // the digest that secure_link is defined by
	addQuery(u, s.signature+"="+base64.RawURLEncoding.EncodeToString(sum[:])+"&"+s.expires+"="+at)
	return nil
}

// cloudFront signs URLs by CloudFront's canned policy.
type cloudFront struct {
	keyPair string
	key     crypto.Signer
}

// NewCloudFront signs URLs as CloudFront checks them, by the canned policy. The private key is in PEM: RSA or P-256.
func NewCloudFront(keyPairID string, key []byte) (Signer, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("is no private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		}
	}
	if err != nil {
		return nil, errors.New("is no private key that can be read (RSA or P-256, in PEM, without a passphrase)")
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		return &cloudFront{keyPairID, k}, nil
	case *ecdsa.PrivateKey:
		return &cloudFront{keyPairID, k}, nil
	}
	return nil, fmt.Errorf("is a key of type %T (CloudFront takes RSA and P-256)", parsed)
}

// canned is the policy that a canned signature stands for, in the order that it is signed in.
type canned struct {
	Statement [1]cannedStatement
}

type cannedStatement struct {
	Resource  string
	Condition struct {
		DateLessThan struct {
			Time int64 `json:"AWS:EpochTime"`
		}
	}
}

func (s *cloudFront) sign(u *url.URL, until time.Time) error {
	var policy canned
	policy.Statement[0].Resource = u.String()
	policy.Statement[0].Condition.DateLessThan.Time = until.Unix()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // the & of a query is signed as it is
	if err := e.Encode(policy); err != nil {
		return err
	}
	digest := sha1.Sum(bytes.TrimSpace(text.Bytes())) // the digest that CloudFront takes where the URL names none
	signature, err := s.key.Sign(rand.Reader, digest[:], crypto.SHA1)
	if err != nil {
		return err
	}
	safe := strings.NewReplacer("+", "-", "=", "_", "/", "~").Replace(base64.StdEncoding.EncodeToString(signature))
	addQuery(u, "Expires="+strconv.FormatInt(until.Unix(), 10)+"&Signature="+safe+"&Key-Pair-Id="+url.QueryEscape(s.keyPair))
	return nil
}

func addQuery(u *url.URL, more string) {
	if u.RawQuery != "" {
		more = u.RawQuery + "&" + more
	}
	u.RawQuery = more
}

// authorized sends what Auth has with requests below the base. It is a transport, so that neither redirects nor a Referer carry any
// of it elsewhere, and answers name the URL without its signature.
type authorized struct {
	auth Auth
	base *url.URL
	now  func() time.Time
	next http.RoundTripper
}

func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, ok := below(a.base, req.URL); !ok {
		return a.next.RoundTrip(req)
	}
	sent := req.Clone(req.Context())
	maps.Copy(sent.Header, a.auth.Header)
	if a.auth.Sign != nil {
		if err := a.auth.Sign.sign(sent.URL, a.now().Add(signedFor)); err != nil {
			return nil, fmt.Errorf("%w: the URL could not be signed: %w", errRefused, err)
		}
	}
	resp, err := a.next.RoundTrip(sent)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// CloseIdleConnections lets the transport's connections go, which http.Client asks for.
func (a *authorized) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
