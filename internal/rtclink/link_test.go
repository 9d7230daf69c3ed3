package rtclink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/datachannel"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func leakCheck(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestMessagesCrossBothWays(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, nil)
	if b := seed.Buffers(); b.Read <= 0 || b.Write <= 0 {
		t.Errorf("buffers were not read back: %+v", b)
	}
	a, b := newEnd(), newEnd()
	got := make(chan []byte, 1)
	b.data = func(m []byte) { got <- append([]byte(nil), m...) }
	connect(t, viewer, seed, a, b)
	big := bytes.Repeat([]byte("x"), peer.MaxControl)
	a.link.SendControl([]byte("first"))
	a.link.SendControl(big)
	if m := wait(t, b.control, "control"); string(m) != "first" {
		t.Errorf("control %q", m)
	}
	if m := wait(t, b.control, "a large control message"); !bytes.Equal(m, big) {
		t.Errorf("control of %d bytes", len(m))
	}
	b.link.SendControl([]byte("back"))
	if m := wait(t, a.control, "control"); string(m) != "back" {
		t.Errorf("control %q", m)
	}
	full := bytes.Repeat([]byte("d"), a.link.MaxMessage())
	if !a.link.SendData(full) {
		t.Fatal("data refused on an idle link")
	}
	if m := wait(t, got, "data"); !bytes.Equal(m, full) {
		t.Errorf("data of %d bytes", len(m))
	}
	if a.link.SendData(append(full, 0)) {
		t.Error("a message above the plan was taken")
	}
	if a.link.Path() != transfer.Direct {
		t.Errorf("path %s", a.link.Path())
	}
	a.link.Close(peer.CloseIdle, []byte("bye"))
	if m := wait(t, b.control, "the farewell"); string(m) != "bye" {
		t.Errorf("farewell %q", m)
	}
	if r := wait(t, a.closed, "own close"); r != peer.CloseIdle {
		t.Errorf("closed: %s", r)
	}
	wait(t, b.closed, "the other side's close")
}

// TestDataIsUnordered loses packets on the way: an ordered channel would hold back what came behind a gap.
func TestDataIsUnordered(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, func(c *Config) { c.Plan = peer.Plan{V: 1, Data: 1, Message: 1200} })
	path := newLossyPath(t, net.UDPAddrFromAddrPort(seed.Addr()), everyLarge(50))
	t.Cleanup(path.close)
	a, b := newEnd(), newEnd()
	a.rewrite = func(string) (string, bool) { return "", false } // the viewer is heard through the path only
	b.rewrite = path.through
	const count = 1500
	var mu sync.Mutex
	var order []uint32
	all := make(chan struct{})
	b.data = func(m []byte) {
		mu.Lock()
		defer mu.Unlock()
		if order = append(order, binary.BigEndian.Uint32(m)); len(order) == count {
			close(all)
		}
	}
	connect(t, viewer, seed, a, b)
	m := make([]byte, 1100)
	for i := uint32(0); i < count; {
		binary.BigEndian.PutUint32(m, i)
		if a.link.SendData(m) {
			i++
			continue
		}
		wait(t, a.drained, "drain")
	}
	wait(t, all, "every message")
	gaps, seen := 0, map[uint32]bool{}
	for i, v := range order {
		if seen[v] {
			t.Errorf("message %d came twice", v)
		}
		seen[v] = true
		if i > 0 && v < order[i-1] {
			gaps++
		}
	}
	if gaps == 0 {
		t.Errorf("%d messages over a path that loses one in 50 came in order: the channel is not unordered", count)
	}
}

func TestInFlightIsBounded(t *testing.T) {
	leakCheck(t)
	const bound = 64 << 10
	seed, viewer := listen(t, func(c *Config) { c.InFlight = bound }), listen(t, nil)
	a, b := newEnd(), newEnd()
	release := make(chan struct{})
	var received atomic.Int64
	a.data = func(m []byte) { <-release; received.Add(int64(len(m))) }
	connect(t, viewer, seed, a, b)
	m, sent := make([]byte, b.link.MaxMessage()), int64(0)
	for sent < 4*bound {
		if b.link.SendData(m) {
			sent += int64(len(m))
			continue
		}
		var buffered uint64
		for _, c := range b.link.(*Link).channels.data {
			buffered += c.BufferedAmount()
		}
		if buffered > bound {
			t.Fatalf("%d bytes in SCTP, the bound is %d", buffered, bound)
		}
		wait(t, b.drained, "drain")
	}
	close(release)
}

func TestManyLinksOnOneSocket(t *testing.T) {
	leakCheck(t)
	seed := listen(t, nil)
	viewer := listen(t, func(c *Config) { c.SocketPerLink = true })
	runtime.GC()
	for i := range 8 {
		a, b := newEnd(), newEnd()
		connect(t, viewer, seed, a, b)
		a.link.SendControl([]byte(fmt.Sprint(i)))
		if m := wait(t, b.control, "control"); string(m) != fmt.Sprint(i) {
			t.Errorf("link %d heard %q", i, m)
		}
		if per := runtime.NumGoroutine() / (i + 1); i == 7 && per > 60 {
			t.Errorf("%d goroutines a link, both sides together", per)
		}
	}
}

// TestAnswererRefusesStrayChannels: those that the plan has not, and those that it has already. Beyond the agreed number it has each once.
func TestAnswererRefusesStrayChannels(t *testing.T) {
	leakCheck(t)
	for name, c := range map[string]struct {
		label func(i int) string
		count int
	}{
		"not in the plan": {func(i int) string {
			if i == 0 {
				return peer.ControlLabel // a second one is a stray, too
			}
			return fmt.Sprintf("stray-%d", i)
		}, peer.MaxStrayChannels + 1},
		"unused, and there already": {func(int) string { return "lw.data.7" }, peer.MaxStrayChannels + 2},
	} {
		t.Run(name, func(t *testing.T) {
			seed, viewer := listen(t, nil), listen(t, nil)
			a, b := newEnd(), newEnd()
			connect(t, viewer, seed, a, b)
			for i := range c.count {
				label := c.label(i)
				config := &datachannel.Config{Label: label, ChannelType: reliability(label), LoggerFactory: newLoggers(slog.New(slog.DiscardHandler))}
				if _, err := datachannel.Dial(a.link.(*Link).association, uint16(100+2*i), config); err != nil {
					t.Fatal(err)
				}
			}
			if r := wait(t, b.closed, "the link's end"); r != peer.CloseProtocol {
				t.Errorf("closed: %s", r)
			}
		})
	}
}

// TestATextMessageEndsTheLink: every message of the protocol is binary, in both languages.
func TestATextMessageEndsTheLink(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, nil)
	a, b := newEnd(), newEnd()
	connect(t, viewer, seed, a, b)
	if _, err := a.link.(*Link).channels.control.WriteDataChannel([]byte("hello"), true); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, b.closed, "the end of the link"); r != peer.CloseProtocol {
		t.Errorf("closed: %s", r)
	}
	wait(t, a.closed, "the other side's close")
}

func TestLinkThatNeverOpensTimesOut(t *testing.T) {
	leakCheck(t)
	h := listen(t, func(c *Config) { c.OpenTimeout = 200 * time.Millisecond })
	e := newEnd()
	e.peer = newEnd()
	if _, _, err := h.Offer(e); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, e.closed, "the timeout"); r != peer.CloseTimeout {
		t.Errorf("closed: %s", r)
	}
}

func TestBadOffersLeaveNothing(t *testing.T) {
	leakCheck(t)
	h := listen(t, nil)
	for _, o := range []transfer.Description{
		{SDP: "v=0", Plan: peer.DefaultPlan}, {SDP: "", Plan: peer.DefaultPlan},
		{SDP: "v=0", Plan: peer.Plan{V: 1, Data: 9, Message: 16384}}, {SDP: strings.Repeat("a=x\r\n", 3000), Plan: peer.DefaultPlan},
	} {
		if _, _, err := h.Answer(o, newEnd()); err == nil {
			t.Errorf("answered %.20q with plan %+v", o.SDP, o.Plan)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Offer(newEnd()); err == nil {
		t.Error("a closed host offers")
	}
}

func TestSmallBuffersAreWarnedAboutWithTheSysctl(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	warnBuffers(log, Buffers{Read: webrtcend.SocketBuffer, Write: webrtcend.SocketBuffer})
	warnBuffers(log, Buffers{})
	if out.Len() > 0 {
		t.Errorf("warned without a reason: %s", &out)
	}
	warnBuffers(log, Buffers{Read: 212992, Write: webrtcend.SocketBuffer})
	if !strings.Contains(out.String(), "net.core.rmem_max=4194304") {
		t.Errorf("no sysctl in %s", &out)
	}
}
