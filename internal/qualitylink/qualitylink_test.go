package qualitylink

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/testkit"
)

// heard are the events of a line.
type heard struct {
	opened chan struct{}
	closed chan error

	mu       sync.Mutex
	messages []string
	controls []string
	lanes    []string
}

func newHeard() *heard { return &heard{opened: make(chan struct{}), closed: make(chan error, 1)} }

func (h *heard) Open() { close(h.opened) }

func (h *heard) Message(b []byte, text bool, _ time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = append(h.messages, fmt.Sprintf("%.12s %v", b, text))
}

func (h *heard) Control(b []byte, text bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.controls = append(h.controls, fmt.Sprintf("%s %v", b, text))
}

func (h *heard) Lane(b []byte, text bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes = append(h.lanes, fmt.Sprintf("%.12s %v", b, text))
}

func (h *heard) Closed(err error) { h.closed <- err }

func (h *heard) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.messages, h.controls, h.lanes)
}

type pair struct {
	server, client *Host
	at, ct         *Line
	atServer       *heard
	atClient       *heard
}

// joined makes a line from one host to another.
func joined(t *testing.T, air *testkit.Air, client string, dscp int) *pair {
	t.Helper()
	p := &pair{atServer: newHeard(), atClient: newHeard()}
	var err error
	if p.server, err = NewHost(air.Listen("192.0.2.1:4601")); err != nil {
		t.Fatal(err)
	}
	if p.client, err = NewHost(air.Listen(client)); err != nil {
		t.Fatal(err)
	}
	from := netip.MustParseAddrPort(client).Addr()
	var offer, answer string
	if p.ct, offer, err = p.client.Offer(from, dscp, p.atClient); err != nil {
		t.Fatal(err)
	}
	if p.at, answer, err = p.server.Answer(Asked{Offer: offer, Client: from, Reached: netip.MustParseAddr("192.0.2.1"), DSCP: 34}, p.atServer); err != nil {
		t.Fatal(err)
	}
	if err := p.ct.Accept(answer); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pair) close() {
	p.client.Close()
	p.server.Close()
}

func TestALineCarriesBothChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air := &testkit.Air{Fate: func(_, _ netip.AddrPort, _ []byte) (time.Duration, bool) { return 10 * time.Millisecond, true }}
		p := joined(t, air, "198.51.100.7:40000", 46)
		<-p.atServer.opened
		<-p.atClient.opened
		for _, l := range []*Line{p.at, p.ct} {
			if err := l.Send([]byte{65, 66}); err != nil {
				t.Error(err)
			}
			if err := l.Say([]byte("hello")); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Second)
		for _, h := range []*heard{p.atServer, p.atClient} {
			if got := strings.Join(h.got(), ","); got != "AB false,hello true" {
				t.Errorf("heard %s", got)
			}
		}
		if rtt := p.ct.RTT(); rtt < 20*time.Millisecond || rtt > 300*time.Millisecond {
			t.Errorf("round trip %v", rtt)
		}
		atServer, ok := p.at.Marks()
		atClient, okay := p.ct.Marks()
		if !ok || !okay || atServer[46] < 5 || atServer[0] != 0 || atClient[34] < 5 || atClient[0] != 0 {
			t.Errorf("marks %v %v", atServer, atClient)
		}
		p.ct.Close()
		if err := <-p.atClient.closed; err != nil {
			t.Errorf("this side closed, and hears %v", err)
		}
		if err := <-p.atServer.closed; err == nil {
			t.Error("the other side closed, and this one hears no reason")
		}
		p.close()
	})
}

// TestStrangersAreNotAnswered: packets go to the address that has asked and to no other, whatever an offer says, and whatever address it comes from.
// TestALineTakesOneLane: channel lane carries messages both ways, before the other side has seen the others too, and another channel ends
// the line.
func TestALineTakesOneLane(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		kind  datachannel.ChannelType
	}{
		"a second lane": {labelLane, datachannel.ChannelTypeReliableUnordered}, "another label": {"x", datachannel.ChannelTypeReliableUnordered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				air := &testkit.Air{Fate: func(_, _ netip.AddrPort, _ []byte) (time.Duration, bool) { return 10 * time.Millisecond, true }}
				p := joined(t, air, "198.51.100.7:40000", 0)
				<-p.atClient.opened
				if err := p.ct.OpenLane(); err != nil {
					t.Fatal(err)
				}
				<-p.at.Lane()
				for _, l := range []*Line{p.at, p.ct} {
					if behind, ok := l.Room(100); behind != 0 || !ok || l.Payload() < 1156 || !l.SendBackground(make([]byte, largestLane)) {
						t.Errorf("room %v behind %d, payload %d", ok, behind, l.Payload())
					}
				}
				<-time.After(time.Second)
				for _, h := range []*heard{p.atServer, p.atClient} {
					if got := h.got(); len(got) != 1 {
						t.Errorf("heard %q", got)
					}
				}
				_, err := datachannel.Dial(p.ct.association, 100, &datachannel.Config{ChannelType: c.kind, Label: c.label, LoggerFactory: silent})
				if err != nil {
					t.Fatal(err)
				}
				if err := <-p.atServer.closed; !errors.Is(err, ErrChannels) {
					t.Errorf("the line has ended by %v", err)
				}
				p.close()
			})
		})
	}
}

// TestALaneOfAnotherKindEndsTheLine: one that loses messages, or has an order.
func TestALaneOfAnotherKindEndsTheLine(t *testing.T) {
	for _, kind := range []datachannel.ChannelType{datachannel.ChannelTypeReliable, datachannel.ChannelTypePartialReliableRexmitUnordered} {
		synctest.Test(t, func(t *testing.T) {
			p := joined(t, &testkit.Air{}, "198.51.100.7:40000", 0)
			<-p.atClient.opened
			if _, err := datachannel.Dial(p.ct.association, 100, &datachannel.Config{ChannelType: kind, Label: labelLane, LoggerFactory: silent}); err != nil {
				t.Fatal(err)
			}
			if err := <-p.atServer.closed; !errors.Is(err, ErrChannels) {
				t.Errorf("the line has ended by %v", err)
			}
			p.close()
		})
	}
}

func TestStrangersAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[netip.Addr]int{}
		air := &testkit.Air{Fate: func(from, to netip.AddrPort, _ []byte) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			if from.Port() == 4601 {
				sent[to.Addr()]++
			}
			return time.Millisecond, true
		}}
		server, err := NewHost(air.Listen("192.0.2.1:4601"))
		if err != nil {
			t.Fatal(err)
		}
		// The client's packets come from another address than its request, which its offer names.
		client, err := NewHost(air.Listen("203.0.113.5:40000"))
		if err != nil {
			t.Fatal(err)
		}
		atClient, atServer := newHeard(), newHeard()
		l, offer, err := client.Offer(netip.MustParseAddr("203.0.113.5"), 0, atClient)
		if err != nil {
			t.Fatal(err)
		}
		offer += "a=candidate:1 1 udp 2130706431 203.0.113.5 40000 typ host\r\n"
		_, answer, err := server.Answer(Asked{Offer: offer, Client: netip.MustParseAddr("198.51.100.7"), Reached: netip.MustParseAddr("192.0.2.1")}, atServer)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Accept(answer); err != nil {
			t.Fatal(err)
		}
		if err := <-atServer.closed; err != ErrOpen {
			t.Errorf("the server's end: %v", err)
		}
		if err := <-atClient.closed; err != ErrOpen {
			t.Errorf("the client's end: %v", err)
		}
		mu.Lock()
		if len(sent) != 0 {
			t.Errorf("the server sent to %v", sent)
		}
		mu.Unlock()
		client.Close()
		server.Close()
	})
}

// TestALineHearsFewAddresses: a client whose packets come from more addresses than a line hears makes nothing grow, and its line goes on.
func TestALineHearsFewAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air := &testkit.Air{}
		p := joined(t, air, "198.51.100.7:40000", 0)
		<-p.atServer.opened
		<-p.atClient.opened
		user, password, err := p.ct.agent.GetRemoteUserCredentials()
		own, _, errOwn := p.ct.agent.GetLocalUserCredentials()
		if err = errors.Join(err, errOwn); err != nil {
			t.Fatal(err)
		}
		for i := range 10 * maxRemotes {
			check, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(user+":"+own), ice.PriorityAttr(1),
				stun.NewShortTermIntegrity(password), stun.Fingerprint)
			if err != nil {
				t.Fatal(err)
			}
			if err := air.Listen(fmt.Sprintf("198.51.100.7:%d", 41_000+i)).WriteMarked(check.Raw, 0, p.server.gate.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if all, err := p.at.agent.GetRemoteCandidates(); len(all) != maxRemotes || err != nil {
			t.Errorf("the agent has %d addresses (%v)", len(all), err)
		}
		p.talks(t)
		p.close()
	})
}

// talks says something, and looks whether the server has heard that alone.
func (p *pair) talks(t *testing.T) {
	t.Helper()
	if err := p.ct.Say([]byte("hello")); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	if got := strings.Join(p.atServer.got(), ","); got != "hello true" {
		t.Errorf("heard %q", got)
	}
}

// TestAFloodOfChecksIsNotHeard: a client whose checks come faster than a browser's is answered no more of them, and its line goes on.
func TestAFloodOfChecksIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered atomic.Int64
		air := &testkit.Air{Fate: func(from, _ netip.AddrPort, b []byte) (time.Duration, bool) {
			if from.Port() == 4601 && stun.IsMessage(b) {
				answered.Add(1)
			}
			return 0, true
		}}
		p := joined(t, air, "198.51.100.7:40000", 0)
		<-p.atServer.opened
		<-p.atClient.opened
		user, password, err := p.ct.agent.GetRemoteUserCredentials()
		own, _, errOwn := p.ct.agent.GetLocalUserCredentials()
		if err = errors.Join(err, errOwn); err != nil {
			t.Fatal(err)
		}
		check, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(user+":"+own), ice.PriorityAttr(1),
			stun.NewShortTermIntegrity(password), stun.Fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		flood := func() int64 {
			answered.Store(0)
			for range 2_000 {
				if err := p.client.gate.WriteMarked(check.Raw, 0, p.server.gate.LocalAddr()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			return answered.Load()
		}
		if n := flood(); n > maxChecks {
			t.Errorf("%d checks of 2,000 were answered", n)
		}
		<-time.After(time.Second)
		if n, most := flood(), int64(time.Second/checksEach); n == 0 || n > most {
			t.Errorf("a second later %d checks were answered, want at most %d", n, most)
		}
		p.talks(t)
		p.close()
	})
}

func TestOffersThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := NewHost((&testkit.Air{}).Listen("192.0.2.1:4601"))
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		_, _, err = server.Answer(Asked{Offer: "v=0", Client: netip.MustParseAddr("198.51.100.7"), Reached: netip.MustParseAddr("192.0.2.1")}, newHeard())
		if blamed := (*DescriptionError)(nil); !errors.As(err, &blamed) {
			t.Errorf("%v", err)
		}
	})
}

// TestALocalClientMaySendFromAnyAddressOfTheMachine: a browser that has asked by a loopback address.
func TestALocalClientMaySendFromAnyAddressOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air := &testkit.Air{}
		server, err := NewHost(air.Listen("192.0.2.1:4601"))
		if err != nil {
			t.Fatal(err)
		}
		server.own = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
		client, err := NewHost(air.Listen("203.0.113.5:40000"))
		if err != nil {
			t.Fatal(err)
		}
		atClient, atServer := newHeard(), newHeard()
		l, offer, err := client.Offer(netip.MustParseAddr("203.0.113.5"), 0, atClient)
		if err != nil {
			t.Fatal(err)
		}
		loopback := netip.MustParseAddr("127.0.0.1")
		_, answer, err := server.Answer(Asked{Offer: offer, Client: loopback, Reached: loopback}, atServer)
		if err == nil {
			err = l.Accept(answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-atServer.opened
		client.Close()
		server.Close()
		server.at = netip.MustParseAddrPort("[::]:4601")
		if got := server.reachedAt(loopback); len(got) != 2 || got[1] != server.own[0] {
			t.Errorf("a local client is told %v", got)
		}
		if got := server.reachedAt(netip.MustParseAddr("198.51.100.1")); len(got) != 1 {
			t.Errorf("another client is told %v", got)
		}
	})
}
