package load

import (
	"context"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// Sample is one second of a run.
type Sample struct {
	Second   float64   `json:"s"`
	Up       int64     `json:"up"` // clients
	Opened   int64     `json:"opened"`
	Failed   int64     `json:"failed"`
	Lost     int64     `json:"lost"`
	Arms     int       `json:"arms"`         // that are there
	ArmCPU   float64   `json:"arm_cpu"`      // processors, of all arms together
	ArmMost  float64   `json:"arm_cpu_most"` // share of its processors of the busiest arm
	PeerCPU  float64   `json:"peer_cpu"`     // processors, of the peer or server under test
	ArmRSS   int64     `json:"arm_rss"`
	PeerRSS  int64     `json:"peer_rss"`
	Lag      float64   `json:"lag_s"`       // p99 of the arm that was the latest
	OwnLag   float64   `json:"own_lag_s"`   // of this controller
	Drops    int64     `json:"drops"`       // datagrams that sockets had no room for, in this second
	Silent   int       `json:"silent_arms"` // that are there and say nothing
	GC       float64   `json:"gc"`          // share of the collector of the processor time of the arm where it is largest
	Sent     float64   `json:"sent_bps"`
	Received float64   `json:"received_bps"`
	Whole    bool      `json:"whole"`            // all clients are there, or would be
	Packets  float64   `json:"received_packets"` // RTP, of the arms, in this second
	NACKs    int64     `json:"nacks"`            // packets that the arms and the peer asked for again, in this second
	Join     float64   `json:"join_p99_s"`
	Chunk    float64   `json:"chunk_p99_s"`
	Spoiled  []string  `json:"spoiled,omitempty"` // why nothing is claimed from this second
	At       time.Time `json:"at"`
}

// hear takes the events of all arms.
func (u *run) hear(a *Arm, m armwire.Message) {
	if m.Kind != armwire.Statistics {
		return
	}
	b, bad := armwire.DecodeBody[armwire.StatisticsBody](m)
	if bad == nil {
		bad = u.total.Add(b.Delays)
	}
	if bad == nil {
		bad = u.second.Load().Add(b.Delays)
	}
	if bad != nil {
		a.fail(bad)
	}
}

// sampler makes a sample each second.
type sampler struct {
	u       *run
	between map[*Arm]interval
	samples []Sample
	tested  tested
	whole   *Delays // of the seconds in which all clients were there; nil: there was none
}

// interval is between the last two things that an arm has said of itself. An arm's seconds are not this controller's: where it has said
// nothing new within one of these, what it did before goes on.
type interval struct {
	before, after armwire.StatisticsBody
	quiet         int // samples since
}

// mostQuiet is how many samples may pass without a word of an arm. Its seconds begin between this controller's, so that one may pass.
const mostQuiet = 1

func newSampler(u *run) *sampler {
	s := &sampler{u: u, between: map[*Arm]interval{}, tested: tested{pid: u.Tested}}
	for _, a := range u.all() {
		s.between[a] = interval{after: a.Statistics()}
	}
	return s
}

// all are the arms, the peer among them.
func (u *run) all() []*Arm {
	if u.peer == nil {
		return u.arms
	}
	return append([]*Arm{u.peer}, u.arms...)
}

func (s *sampler) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			one := s.sample(now)
			s.samples = append(s.samples, one)
			if s.u.Progress != nil {
				s.u.Progress(one)
			}
		}
	}
}

// sample looks at what each arm has said since the last sample.
func (s *sampler) sample(now time.Time) Sample {
	u := s.u
	second := u.second.Swap(NewDelays())
	c := &u.counts
	one := Sample{
		At: now, Second: now.Sub(u.began).Seconds(), Up: c.up.Load(), Opened: c.opened.Load(), Failed: c.failed.Load(), Lost: c.lost.Load(),
		Join: second.Join(99).Seconds(), Chunk: second.Chunk(99).Seconds(),
	}
	if from, to := u.Scenario.whole(); from < now.Sub(u.began) && now.Sub(u.began) <= to {
		if s.whole == nil {
			s.whole = NewDelays()
		}
		s.whole.addChunks(second)
		one.Whole = true
	}
	for _, a := range u.all() {
		select {
		case <-a.Gone():
			continue
		default:
		}
		if a != u.peer {
			one.Arms++
		}
		i, b := s.between[a], a.Statistics()
		said := b.At > i.after.At
		if said {
			i = interval{before: i.after, after: b}
		} else {
			i.quiet++
		}
		s.between[a] = i
		if a != u.peer && i.quiet > mostQuiet {
			one.Silent++
		}
		if i.before.At == 0 {
			continue // it has said too little
		}
		if said { // the counter is of the machine that arms may share
			one.Drops = max(one.Drops, i.after.Machine.Drops-i.before.Machine.Drops)
		}
		one.add(a == u.peer, i)
	}
	if u.Tested > 0 {
		one.PeerCPU, one.PeerRSS = s.tested.look(now)
	}
	one.OwnLag = float64(u.self.Figures(true).Lag) / 1e6
	one.judge()
	return one
}

// add takes in what an arm did in an interval, as of one second.
func (o *Sample) add(peer bool, i interval) {
	before, b, long := i.before, i.after, float64(i.after.At-i.before.At)/1e6
	cpu := float64(b.Machine.CPU-before.Machine.CPU) / 1e6
	o.Received += 8 * float64(b.Traffic.ReceivedBytes-before.Traffic.ReceivedBytes) / long
	o.Sent += 8 * float64(b.Traffic.SentBytes-before.Traffic.SentBytes) / long
	if peer {
		o.PeerCPU, o.PeerRSS = cpu/long, b.Machine.RSS
		return
	}
	// What the arms ask the peer for, and it asks them for, both sides count. A peer of another program is heard of by the arms alone.
	o.NACKs += int64(math.Ceil(float64(b.Traffic.NACKs-before.Traffic.NACKs) / long))
	o.Packets += float64(b.Traffic.ReceivedPackets-before.Traffic.ReceivedPackets) / long
	o.ArmCPU += cpu / long
	o.ArmRSS += b.Machine.RSS
	o.ArmMost = max(o.ArmMost, cpu/long/float64(max(b.Machine.Processors, 1)))
	o.Lag = max(o.Lag, float64(b.Machine.Lag)/1e6)
	if cpu > busyEnough*long {
		o.GC = max(o.GC, float64(b.Machine.GC-before.Machine.GC)/1e6/cpu)
	}
}

// Bounds beyond which an arm is itself what is measured.
const (
	mostCPU    = 0.85  // of an arm's processors
	mostLag    = 0.050 // seconds that its clock ticks came late, p99
	mostGC     = 0.30  // of its processor time, where it uses busyEnough of a processor
	busyEnough = 0.25
	// mostSpoiled is the share of the seconds of a run, and of those in which all clients are there, that may be spoiled; more, and there is
	// no verdict.
	mostSpoiled = 0.05
	// comfortable is the share of its processors that an arm is planned with.
	comfortable = 0.60
)

// judge says whether the arms, or this controller, were themselves the bottleneck in this second.
func (o *Sample) judge() {
	if o.ArmMost > mostCPU {
		o.Spoiled = append(o.Spoiled, "an arm's processors were busy")
	}
	if o.Lag > mostLag {
		o.Spoiled = append(o.Spoiled, "an arm's clock ticks came late")
	}
	if o.Silent > 0 {
		o.Spoiled = append(o.Spoiled, "an arm said nothing")
	}
	if o.OwnLag > mostLag {
		o.Spoiled = append(o.Spoiled, "the controller's clock ticks came late")
	}
	if o.Drops > 0 {
		o.Spoiled = append(o.Spoiled, "sockets dropped datagrams for lack of room")
	}
	if o.GC > mostGC {
		o.Spoiled = append(o.Spoiled, "an arm collected garbage for much of its time")
	}
}
