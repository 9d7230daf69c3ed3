package partsim

import (
	"slices"
)

// Result is what came of one run, of its honest viewers.
type Result struct {
	Peers, Seed, Origin float64 // shares of the bytes of played parts
	Saved               float64 // share that viewers sent beyond what the seed fetched
	Twice               float64 // bytes that came twice, of those that were played
	Lag                 float64 // s behind the clock, mean
	Startup             float64 // s, mean
	Stalls              int
	Stalled             float64 // share of the time
	Delay50, Delay99    float64 // ms from a part's publication to the player
	Digest99            float64 // ms that parts waited for their certificate
	Depth               float64 // mean hops from the source
	Deepest             int
	Bad                 int     // pieces that were wrong
	WorstBad            int     // of one polluter at one viewer
	Messages            float64 // of the mesh, a viewer and second
	Requests            float64 // to the origin, a part that was played anywhere
	Viewers             int
}

// Play runs an audience.
func Play(o Options) Result {
	if o.Trouble.Seedless {
		o.Seeds = 0
	}
	return run(o).result()
}

func (s *sim) result() Result {
	var r Result
	var bytes [4]float64
	var delay, digest []int64
	var played, stalled, twice, lags, lagged, startup, depths, hops float64
	for _, n := range s.all {
		if n.temper != honest {
			continue
		}
		w := n.watch
		r.Viewers++
		for i, b := range w.bytes {
			bytes[i] += float64(b)
		}
		delay, digest = append(delay, w.delay...), append(digest, w.digest...)
		played += float64(w.player.played)
		stalled += float64(w.player.stalled)
		twice += float64(w.twice)
		lags += w.player.lags
		lagged += float64(w.player.lagged)
		startup += float64(w.player.startup)
		r.Stalls += w.player.stalls
		r.Bad += w.bad
		for _, d := range w.depths {
			hops += float64(d)
			depths++
			r.Deepest = max(r.Deepest, d)
		}
		for _, k := range w.wrong {
			r.WorstBad = max(r.WorstBad, k)
		}
	}
	all := bytes[fromOrigin] + bytes[fromSeed] + bytes[fromViewer]
	r.Peers, r.Seed, r.Origin = bytes[fromViewer]/all, bytes[fromSeed]/all, bytes[fromOrigin]/all
	r.Saved = (bytes[fromViewer] + bytes[fromSeed] - float64(s.fetched)) / all
	r.Twice = twice / all
	r.Lag, r.Startup = lags/lagged/second, startup/float64(r.Viewers)/second
	r.Stalled = stalled / (played + stalled)
	r.Delay50, r.Delay99, r.Digest99 = quantile(delay, 0.5), quantile(delay, 0.99), quantile(digest, 0.99)
	if depths > 0 {
		r.Depth = hops / depths
	}
	r.Messages = float64(s.messages) / float64(len(s.all)) / (length / second)
	r.Requests = float64(s.requests)
	return r
}

// quantile is in ms.
func quantile(us []int64, q float64) float64 {
	if len(us) == 0 {
		return 0
	}
	slices.Sort(us)
	return float64(us[min(len(us)-1, int(q*float64(len(us))))]) / 1000
}
