package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestTextsKeepNetworksOnly(t *testing.T) {
	for text, want := range map[string]string{
		"write udp 10.0.0.1:4600->203.0.113.9:51234: i/o timeout":      "write udp 10.0.0.0/24->203.0.113.0/24: i/o timeout",
		"TLS handshake error from [2001:db8:1:2:3::4]:443: EOF":        "TLS handshake error from [2001:db8:1::/48]:443: EOF",
		"candidate ::ffff:203.0.113.77.":                               "candidate 203.0.113.0/24.",
		"listen on 127.0.0.1:8080, [::1]:8080 and 0.0.0.0":             "listen on 127.0.0.1:8080, [::1]:8080 and 0.0.0.0",
		"at 12:30:45.5 version 1.2.3 of a.b.c took 1.5s, face: cafe.":  "at 12:30:45.5 version 1.2.3 of a.b.c took 1.5s, face: cafe.",
		"fe80::1%eth0 is down":                                         "fe80::/48%eth0 is down",
		"udp:203.0.113.9:5, face:203.0.113.9, ...203.0.113.9:":         "udp:203.0.113.0/24, face:203.0.113.0/24, ...203.0.113.0/24:",
		"peer 198.51.100.255:9 and 198.51.100.254: both of one subnet": "peer 198.51.100.0/24 and 198.51.100.0/24: both of one subnet",
	} {
		if got := withoutAddresses(text); got != want {
			t.Errorf("%q\nbecame %q\nnot    %q", text, got, want)
		}
	}
}

func TestLogsHaveTimesWithTheirUnit(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := newLogger(&out, false, LogConfig{Level: "info", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("waiting for NATS", "at_most", busWait)
		if !strings.Contains(out.String(), "2m0s") {
			t.Errorf("%s: %s", format, &out)
		}
	}
}

// TestLogsNameNoViewer: an address comes by an error, by a message, in a group or before the line; an own one stays.
func TestLogsNameNoViewer(t *testing.T) {
	var out bytes.Buffer
	log, err := newLogger(&out, false, LogConfig{Level: "debug", Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	failed := fmt.Errorf("dial: %w", &net.OpError{
		Op: "read", Net: "udp", Addr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("203.0.113.9:1")), Err: errors.New("203.0.113.9 is gone"),
	})
	log.With("cause", failed).WithGroup("g").Debug("Failed to ping 203.0.113.9:1", "error", failed.Error(), slog.Group("in", "any", failed), "listen", "192.0.2.4:8080")
	if got := out.String(); strings.Contains(got, "203.0.113.9") || strings.Count(got, "203.0.113.0/24") != 7 || !strings.Contains(got, "192.0.2.4:8080") {
		t.Error(got)
	}
}

func FuzzWithoutAddresses(f *testing.F) {
	f.Add("write udp 10.0.0.1:4600->203.0.113.9:51234")
	f.Add("[2001:db8::1]:443")
	f.Add("...:::1.2.3.4:::...")
	f.Fuzz(func(t *testing.T, text string) {
		once := withoutAddresses(text)
		for _, word := range strings.Fields(once) {
			if a, err := netip.ParseAddr(word); err == nil && !a.IsLoopback() && !a.IsUnspecified() && a.Zone() == "" {
				t.Errorf("%q left %q", text, word)
			}
		}
	})
}
