package tracker

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestProbesGoWhereASeedSaysItIs(t *testing.T) {
	w := newWorld(t)
	sent := map[string]int{}
	began, passed := time.Now(), atomic.Int64{}
	n := w.tracker(func(c *Config) {
		c.BeatEvery, c.Now = time.Hour, func() time.Time { return began.Add(time.Duration(passed.Load())) }
		c.Probe = func(to netip.AddrPort, key string) error {
			sent[to.String()+" "+key]++
			return nil
		}
	})
	seed, key := signal.ID{7}, strings.Repeat("k", bus.MinProbeKey)
	probe := func(of signal.ID, address string) {
		b, err := bus.Encode(&bus.Probe{Seed: of, Address: address, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		n.prober.onProbe(b, nil)
	}
	probe(seed, "203.0.113.5:4600")
	if len(sent) > 0 {
		t.Error("a seed that never beat has packets sent")
	}
	n.roster.seed(bus.SeedBeat{Seed: seed, Draining: true}, began)
	for _, address := range []string{
		"127.0.0.1:4600", "[::1]:4600", "0.0.0.0:4600", "[::]:4600", "224.0.0.251:5353", "[ff02::fb]:5353", "255.255.255.255:9",
		"169.254.169.254:80", "[fe80::1]:4600", "[::ffff:127.0.0.1]:4600", "[::ffff:169.254.169.254]:80",
	} {
		probe(seed, address)
	}
	if len(sent) > 0 {
		t.Errorf("packets went to %v", sent)
	}
	n.prober.onProbe([]byte(`{"seed":"x"}`), nil)
	for range 3 * probesAtOnce {
		probe(seed, "203.0.113.5:4600")
	}
	probe(seed, "10.0.0.7:4600")
	if got := sent["203.0.113.5:4600 "+key]; got != probesAtOnce || len(sent) != 1 {
		t.Errorf("%d packets went out at once: %v", got, sent)
	}
	passed.Add(int64(time.Second))
	for range 3 * probesAtOnce {
		probe(seed, "10.0.0.7:4600")
	}
	if got := sent["10.0.0.7:4600 "+key]; got != probesPerSecond {
		t.Errorf("%d packets went out in a second", got)
	}
}

func TestATrackerWithoutASocketSendsNoProbes(t *testing.T) {
	n := newWorld(t).tracker(nil)
	n.roster.seed(bus.SeedBeat{Seed: signal.ID{7}}, time.Now())
	b, err := bus.Encode(&bus.Probe{Seed: signal.ID{7}, Address: "203.0.113.5:4600", Key: strings.Repeat("k", bus.MinProbeKey)})
	if err != nil {
		t.Fatal(err)
	}
	n.prober.onProbe(b, nil) // and does not fall over
}
