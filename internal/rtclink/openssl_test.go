package rtclink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// TestOpenSSLReadsOurRecordsAndWeIts: both roles, every size that there is, both ends closing.
func TestOpenSSLReadsOurRecordsAndWeIts(t *testing.T) {
	bothRoles(t, func(t *testing.T, client bool) {
		o := startOpenSSL(t, client, nil)
		got, ended := o.reader()
		for i := range 50 {
			line := fmt.Sprintf("to us %d", i)
			o.tells(line)
			if g := wait(t, got, line); g != line {
				t.Fatalf("read %q, want %q", g, line)
			}
		}
		for n := 1; n <= maxDatagram-recordCost; n += 67 {
			say(t, o.ours, strings.Repeat("x", n-1)+"\n")
			if g := wait(t, o.lines, "openssl to print"); len(g) != n-1 {
				t.Fatalf("openssl read %d bytes of %d", len(g), n-1)
			}
		}
		if client { // its input's end is its close_notify
			_ = o.in.Close()
			if err := wait(t, ended, "its close_notify"); !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v", err)
			}
			return
		}
		if err := o.ours.Close(); err != nil {
			t.Fatal(err)
		}
		err := wait(t, o.ended, "openssl to end at our close_notify")
		o.ended <- err
		if err != nil {
			t.Errorf("openssl ended with %v", err)
		}
	})
}

// TestOpenSSLOnABadPath: what is lost is lost, what comes twice is read once, and what comes late is read late, at both ends.
func TestOpenSSLOnABadPath(t *testing.T) {
	const many = 60
	// What becomes of the line with a number, and the order in which the lines are read then.
	becomes := func(n int) fate { return []fate{passes, lost, doubled, overtaken, passes}[n%5] }
	var want []string
	for n := 0; n < many; n += 5 {
		for _, i := range []int{n, n + 2, n + 4, n + 3} {
			want = append(want, fmt.Sprintf("line %02d", i))
		}
	}
	bothRoles(t, func(t *testing.T, client bool) {
		o := startOpenSSL(t, client, nil)
		got, _ := o.reader()
		o.tells("begin")
		if g := wait(t, got, "the first line"); g != "begin" {
			t.Fatalf("read %q", g)
		}
		say(t, o.ours, "begin\n")
		o.hears("begin")
		for _, out := range []bool{true, false} {
			n := 0
			o.path.become(func(way bool, _ int, p []byte) fate {
				if way != out || p[0] != contentApplication {
					return passes
				}
				n++
				return becomes(n - 1)
			})
			var heard []string
			for i := range many {
				line := fmt.Sprintf("line %02d", i)
				if out {
					say(t, o.ours, line+"\n")
					continue
				}
				o.tells(line)
				wait(t, o.path.came, line)
			}
			o.path.become(nil)
			if out {
				say(t, o.ours, "end\n")
				heard = o.hears("end")
			} else {
				o.tells("end")
				for g := wait(t, got, "a line"); g != "end"; g = wait(t, got, "a line") {
					heard = append(heard, g)
				}
			}
			if !slices.Equal(heard, want) {
				t.Errorf("out %v: read %q,\nwant %q", out, heard, want)
			}
		}
	})
}

// TestOpenSSLsHandshakeOnABadPath: flights are lost, come twice and in another order, and the handshake goes on; then records do.
func TestOpenSSLsHandshakeOnABadPath(t *testing.T) {
	bothRoles(t, func(t *testing.T, client bool) {
		o := startOpenSSL(t, client, func(_ bool, n int, p []byte) fate {
			switch {
			case p[0] == contentApplication:
				return passes
			case n == 1:
				return lost
			case n%2 == 0:
				return doubled
			case n == 3:
				return overtaken
			}
			return passes
		})
		got, _ := o.reader()
		o.tells("through")
		if g := wait(t, got, "a line"); g != "through" {
			t.Errorf("read %q", g)
		}
		say(t, o.ours, "back\n")
		o.hears("back")
	})
}

// TestOpenSSLPassesOverForgedRecords, and so do we: a bit that is turned, a record that is sealed under another number, one that is cut.
func TestOpenSSLPassesOverForgedRecords(t *testing.T) {
	forge := func(p []byte) (all [][]byte) {
		for _, at := range []int{4, 10, recordHeader, recordHeader + explicit, len(p) - 1} {
			bad := bytes.Clone(p)
			bad[at] ^= 1
			all = append(all, bad)
		}
		return append(all, p[:len(p)-1], p[:recordHeader], []byte{contentApplication})
	}
	bothRoles(t, func(t *testing.T, client bool) {
		o := startOpenSSL(t, client, nil)
		got, _ := o.reader()
		o.tells("begin")
		wait(t, got, "the first line")
		o.path.become(func(out bool, _ int, p []byte) fate {
			if p[0] != contentApplication {
				return passes
			}
			for _, bad := range forge(p) {
				if out {
					if _, err := o.path.WriteToUDP(bad, o.path.peer.Load()); err != nil {
						t.Error(err)
					}
				} else {
					o.path.queue = append(o.path.queue, bad)
				}
			}
			return passes
		})
		for i := range 10 {
			line := fmt.Sprintf("line %d", i)
			say(t, o.ours, line+"\n")
			if heard := o.hears(line); len(heard) > 0 {
				t.Errorf("openssl read %q", heard)
			}
			o.tells(line)
			if g := wait(t, got, line); g != line {
				t.Errorf("read %q, want %q", g, line)
			}
		}
	})
}

// TestOpenSSLsFatalAlertEndsTheHandshake: it has no cipher suite in common with us.
func TestOpenSSLsFatalAlertEndsTheHandshake(t *testing.T) {
	program := haveOpenSSL(t)
	leakCheck(t)
	theirs, err := webrtcend.NewIdentity(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spare := udp(t)
	at := spare.LocalAddr().(*net.UDPAddr)
	_ = spare.Close()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	o := &openssl{t: t, lines: make(chan string, 64), ended: make(chan error, 1), path: &opensslPath{UDPConn: conn, came: make(chan struct{}, 64)}}
	o.path.peer.Store(at)
	file := writeIdentity(t, theirs)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o.run(ctx, cancel, exec.CommandContext(ctx, program, "s_server", "-dtls1_2", "-accept", at.String(), "-cert", file, "-key", file,
		"-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "-naccept", "1", "-timeout", "-quiet"))
	if _, err := testHost(t).handshake(ctx, o.path, true, theirs.Fingerprint, func() {}); err == nil || ctx.Err() != nil {
		t.Errorf("the handshake ended with %v, %v", err, ctx.Err())
	}
}
