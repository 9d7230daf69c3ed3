package transfer

import (
	"testing"
	"time"
)

func TestKeepalive(t *testing.T) {
	const round = PingAfter
	for name, c := range map[string]struct {
		met          bool
		each         func(k *keepalive) // in each round
		tick         time.Duration
		pings, until int // pings within, and the tick at which the link is over; 0: not within 12
	}{
		"no hello":                        {false, nil, round, 0, HelloRounds},
		"no hello, but messages":          {false, func(k *keepalive) { k.hear() }, round, 0, HelloRounds},
		"silence on both sides":           {true, nil, round, SilentRounds - 1, SilentRounds},
		"this side speaks":                {true, func(k *keepalive) { k.spoke = true }, round, SilentRounds - 2, SilentRounds},
		"the other side speaks":           {true, func(k *keepalive) { k.hear() }, round, 12, 0},
		"this side spoke once":            {true, func(k *keepalive) { k.hear(); k.spoke = k.round.Equal(time.Unix(1000, 0)) || k.spoke }, round, 11, 0},
		"both speak":                      {true, func(k *keepalive) { k.hear(); k.spoke = true }, round, 0, 0},
		"ticks of which a round is many":  {true, nil, round / 4, 3, 0},
		"a timer that stood still is one": {true, func(k *keepalive) { k.hear(); k.spoke = true }, 100 * round, 0, 0},
	} {
		now := time.Unix(1000, 0)
		k := keepalive{round: now}
		if c.met {
			k.meet()
		}
		pings, until := 0, 0
		for n := 1; n <= 12 && until == 0; n++ {
			if c.each != nil {
				c.each(&k)
			}
			now = now.Add(c.tick)
			over, ping := k.tick(now)
			if over {
				until = n
			}
			if ping {
				pings++
			}
			if over && ping {
				t.Errorf("%s: a ping on a link that is over", name)
			}
		}
		if until != c.until || pings != c.pings {
			t.Errorf("%s: over at tick %d after %d pings, want %d after %d", name, until, pings, c.until, c.pings)
		}
	}
	if over, ping := new(keepalive).tick(time.Unix(1e9, 0)); over || ping {
		t.Error("rounds are counted before the link is open")
	}
}
