package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestMain is an arm, too, for what starts this program as one: it tells its process group, and ends on SIGTERM.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "arm" {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, syscall.Getpgrp())
		<-ended
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCtrlCEndsTheRunAndNotItsArms: a terminal signals the process group. Arms that end with it cannot tell what they have counted last.
func TestCtrlCEndsTheRunAndNotItsArms(t *testing.T) {
	said, log := io.Pipe()
	stop, err := (&loadRunCmd{}).startArm("ws://127.0.0.1:1/", load.Launch{Name: "arm-1"}, log)
	if err != nil {
		t.Fatal(err)
	}
	group := 0
	if _, err := fmt.Fscanln(bufio.NewReader(said), &group); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the arm is of group %d, as the run: %v", group, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestArmsElsewhereReachThePeer: on 127.0.0.1 each of their clients waits for 30 s and has failed.
func TestArmsElsewhereReachThePeer(t *testing.T) {
	for name, c := range map[string]struct {
		controller, at string
		remote         int
		behavior       load.Behavior
		fails          bool
	}{
		"an address":         {"ws://10.0.0.1:7600/", "", 3, load.Echo, false},
		"every address":      {"ws://[::]:7600/", "", 3, load.Echo, true},
		"every one of IPv4":  {"ws://0.0.0.0:7600/", "", 3, load.Echo, true},
		"it is given":        {"ws://[::]:7600/", "10.0.0.2", 3, load.Echo, false},
		"this machine":       {"ws://127.0.0.1:40000/", "", 3, load.Echo, false},
		"local arms":         {"ws://[::]:7600/", "", 0, load.Echo, false},
		"a server elsewhere": {"ws://[::]:7600/", "", 3, load.WHEP, false},
	} {
		run := &loadRunCmd{ArmsAt: c.at}
		err := run.reachable(load.Scenario{Arms: load.Arms{Remote: c.remote}, Groups: []load.Group{{Behavior: c.behavior}}}, c.controller)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnArmListensWhereItReachesItsController: on another machine that is no loopback address.
func TestAnArmListensWhereItReachesItsController(t *testing.T) {
	want := map[string]netip.Addr{"127.0.0.1:7600": {}, "[::1]:7600": {}, "[::]:7600": {}, "localhost": {}, "nothing.invalid:1": {}}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			want[p.Addr().String()+":7600"] = p.Addr()
		}
	}
	for host, at := range want {
		if got := addressFrom(&url.URL{Scheme: "ws", Host: host, Path: "/"}); got != at {
			t.Errorf("%s is reached from %v, want %v", host, got, at)
		}
	}
}
