package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/leeway-video/leeway/internal/testkit"
)

func TestHeadersAreReadToTheByte(t *testing.T) {
	for name, c := range map[string]struct {
		header []byte
		want   string
	}{
		"version 1":               {testkit.Introduction(t, 1, "203.0.113.5:4711"), "203.0.113.5:4711"},
		"version 1, IPv6":         {testkit.Introduction(t, 1, "[2001:db9::7]:4711"), "[2001:db9::7]:4711"},
		"version 1, unknown":      {[]byte("PROXY UNKNOWN\r\n"), "invalid AddrPort"},
		"version 1, unknown, all": {[]byte("PROXY UNKNOWN ffff:f::1 ffff:f::2 65535 65535\r\n"), "invalid AddrPort"},
		"version 2":               {testkit.Introduction(t, 2, "203.0.113.5:4711"), "203.0.113.5:4711"},
		"version 2, IPv6":         {testkit.Introduction(t, 2, "[2001:db9::7]:4711"), "[2001:db9::7]:4711"},
		"version 2, more": {testkit.Introduction(t, 2, "203.0.113.5:4711", proxyproto.TLV{Type: proxyproto.PP2_TYPE_UNIQUE_ID, Value: []byte("one of many")}),
			"203.0.113.5:4711"},
		"version 2, its own": {testkit.Introduction(t, 2, ""), "invalid AddrPort"},
	} {
		r := bytes.NewReader(append(c.header, "what follows"...))
		got, err := Read(r)
		rest, _ := io.ReadAll(r)
		if err != nil || got.String() != c.want || string(rest) != "what follows" {
			t.Errorf("%s: %v, %v, then %q", name, got, err, rest)
		}
	}
}

func TestWhatIsNoHeader(t *testing.T) {
	long := testkit.Introduction(t, 2, "203.0.113.5:1")
	binary.BigEndian.PutUint16(long[14:], maxV2+1)
	unix, err := (&proxyproto.Header{
		Version: 2, Command: proxyproto.PROXY, TransportProtocol: proxyproto.UnixStream,
		SourceAddr: &net.UnixAddr{Net: "unix", Name: "a"}, DestinationAddr: &net.UnixAddr{Net: "unix", Name: "b"},
	}).Format()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"HTTP":             []byte("GET / HTTP/1.1\r\n\r\n"),
		"TLS":              append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 500)...),
		"no line":          []byte("PROXY TCP4 " + strings.Repeat("1", 200)),
		"no address":       []byte("PROXY TCP4 a b 1 2\r\n"),
		"of another house": []byte("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
		"too long":         append(long, make([]byte, 4096)...),
		"no network":       unix,
	} {
		if client, err := Read(bytes.NewReader(b)); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %v, %v", name, client, err)
		}
	}
	for _, version := range []byte{1, 2} {
		if _, err := Read(bytes.NewReader(testkit.Introduction(t, version, "203.0.113.5:4711")[:20])); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("half of version %d: %v", version, err)
		}
	}
}

// FuzzRead: a header names a client, no client, or is an error, and no more is read than the header.
func FuzzRead(f *testing.F) {
	for _, version := range []byte{1, 2} {
		f.Add(testkit.Introduction(f, version, "203.0.113.5:4711"))
		f.Add(testkit.Introduction(f, version, "[2001:db9::7]:4711"))
	}
	f.Add(testkit.Introduction(f, 2, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(append(bytes.Clone(b), "what follows"...))
		client, err := Read(r)
		if took := len(b) + len("what follows") - r.Len(); took > lengthV2+maxV2 {
			t.Errorf("%d bytes were read", took)
		}
		if err != nil && client.IsValid() {
			t.Errorf("%v, and %v", client, err)
		}
		if client.IsValid() && client.Addr().Is4In6() {
			t.Errorf("%v counts apart from itself", client)
		}
	})
}
