package ledbat_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
)

const piece = 16_384

// viewer asks many senders for pieces, in turn, as long as its window lets it.
type viewer struct {
	s     *sim
	r     *ledbat.Receiver
	links []*bglink
	turn  int
	timer int64
}

// join makes a sender of its own for the viewer, behind an uplink that is no bottleneck.
func (v *viewer) join(flow int, l *line, delay int64) *bglink {
	b := v.s.sender(ledbat.Config{}).link(flow, l, delay)
	b.viewer, b.offset = v, 0
	b.source = v.r.Open(v.s.now)
	v.links = append(v.links, b)
	return b
}

func (v *viewer) ask() {
	for {
		ok, at := v.r.MayRequest(v.s.now, piece)
		if !ok {
			if at > v.s.now && v.timer <= v.s.now {
				v.timer = at
				v.s.at(at, v.ask)
			}
			return
		}
		v.turn = (v.turn + 1) % len(v.links)
		b := v.links[v.turn]
		b.source.OnRequest(v.s.now, piece)
		v.s.at(v.s.now+b.back, func() {
			b.asked += piece
			b.host.pump()
		})
	}
}

// besideViewer gives TCP's share of a downlink on which a viewer fetches from n senders; with bounded false the viewer asks
// for as much as its links let it, and only the senders' own windows hold it.
func besideViewer(r road, n int, bounded bool, seed uint64) (tcpShare, alone float64) {
	s, l := r.open(seed)
	v := &viewer{s: s, r: ledbat.NewReceiver(ledbat.Config{})}
	if !bounded {
		v.r = ledbat.NewReceiver(ledbat.Config{Controller: func(bool) ledbat.Controller { return openWindow{} }})
	}
	flows := make([]int, 0, n)
	for i := range n {
		b := v.join(1+i, l, r.rtt/2+int64(i)*500)
		b.extra = int64(i) * 500
		flows = append(flows, 1+i)
	}
	if n > 0 {
		v.ask()
	}
	used := share(l, 10*second, 30*second, flows...)
	tcp := s.rival(0, l, r.rtt/2)
	s.at(30*second, tcp.pump)
	u := share(l, 30*second, 90*second, 0)
	s.run(90 * second)
	return *u, *used
}

// TestAWindowGrowsByWhatComesOfIt: where the sender keeps the queue below the receiver's target, the receiver sees no reason not to ask for
// more, and what it asks for waits there.
func TestAWindowGrowsByWhatComesOfIt(t *testing.T) {
	t.Parallel()
	r := road{"20 Mbit/s, 40 ms, 100 KB", 20, 40_000, 100_000}
	s, l := r.open(1)
	v := &viewer{s: s, r: ledbat.NewReceiver(ledbat.Config{})}
	v.join(1, l, r.rtt/2)
	v.ask()
	used := share(l, 10*second, 60*second, 1)
	s.run(60 * second)
	flight, most := v.r.Stats().Flight, 2*int64(r.mbit*125_000)/5+piece // twice what comes in 200 ms
	t.Logf("%s: %d bytes are asked for, the line was used to %.3f", r.name, flight, *used)
	if flight > most || *used < 0.9 {
		t.Errorf("%s: %d bytes are asked for (want ≤ %d), the line was used to %.3f (want ≥ 0.9)", r.name, flight, most, *used)
	}
}

// openWindow is a controller that lets everything through.
type openWindow struct{}

func (openWindow) OnAck(ledbat.Signal)     {}
func (openWindow) OnLoss(ledbat.Signal)    {}
func (openWindow) OnTimeout(ledbat.Signal) {}
func (openWindow) OnIdle(ledbat.Signal)    {}
func (openWindow) Window() int64           { return 4 << 20 }
func (openWindow) State() ledbat.State     { return ledbat.Avoidance }
func (openWindow) Slowdowns() int64        { return 0 }

// TestSendersToOneViewer is case 13: many senders, one downlink, and TCP to the same viewer.
func TestSendersToOneViewer(t *testing.T) {
	testkit.InOneGoroutine(t)
	t.Parallel()
	for _, n := range []int{1, 5, 20} {
		lone, _ := besideViewer(fast, 0, true, 1)
		var uses []float64
		kept := median(3, func(seed uint64) float64 {
			k, u := besideViewer(fast, n, true, seed)
			uses = append(uses, u)
			return k / lone
		})
		used := sortedMiddle(uses)
		apart, usedApart := besideViewer(fast, n, false, 1)
		t.Logf("%d senders: TCP keeps %.3f, the downlink was used to %.3f; without the viewer's window %.3f, %.3f", n, kept, used, apart/lone, usedApart)
		if kept < 0.9 || used < 0.8 {
			t.Errorf("%d senders: TCP keeps %.3f (want ≥ 0.9), the downlink was used to %.3f (want ≥ 0.8)", n, kept, used)
		}
	}
}

// TestAFullWindowIsAskedAgainWhenAQuarterIsFree: one message then asks for several pieces. With a window of few pieces, each is asked for
// as soon as there is room.
func TestAFullWindowIsAskedAgainWhenAQuarterIsFree(t *testing.T) {
	for _, c := range []struct{ window, asked, again int64 }{{2 * piece, 2, 1}, {4 * piece, 4, 1}, {8 * piece, 8, 3}, {40 * piece, 40, 11}} {
		r := ledbat.NewReceiver(ledbat.Config{Controller: func(bool) ledbat.Controller { return fixedWindow{window: c.window} }})
		source := r.Open(0)
		ask := func() (n int64) {
			for ok := true; ok; n++ {
				if ok, _ = r.MayRequest(1_000, piece); !ok {
					return n
				}
				source.OnRequest(1_000, piece)
			}
			return n
		}
		if n := ask(); n != c.asked {
			t.Errorf("a window of %d bytes: %d requests, want %d", c.window, n, c.asked)
		}
		came := int64(0)
		for n := int64(0); n == 0; n = ask() {
			source.OnGone(piece)
			came++
		}
		if flight := r.Stats().Flight; came != c.again || flight != c.asked*piece {
			t.Errorf("a window of %d bytes: asked again after %d pieces, %d bytes in flight then; want %d and %d", c.window, came, flight, c.again, c.asked*piece)
		}
	}
}

// fixedWindow is a controller whose window stays.
type fixedWindow struct {
	openWindow
	window int64
}

func (f fixedWindow) Window() int64 { return f.window }
