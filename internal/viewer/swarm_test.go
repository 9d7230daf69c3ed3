package viewer

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/replay"
)

func TestFourViewersShareOneCopy(t *testing.T) {
	for name, l := range map[string]access{"fast": fast, "20/5": {up: 625_000, down: 2_500_000}} {
		t.Run(name, func(t *testing.T) {
			s := fourViewers(t, nil, l)
			s.check()
			all, peers := int64(4*20*750_000), s.bytes("peer")
			if offload := float64(peers) / float64(all); offload < 0.66 {
				t.Errorf("offload %.2f, origin %d, seed %d", offload, s.bytes("origin"), s.bytes("seed"))
			}
			for i, a := range s.viewers {
				sum := a.now()
				if sum.Stats.Stalls > 0 || len(a.results) != 20 || sum.Stats.PlayedMs < 79_900 || sum.Stats.PlayedMs > 80_000 {
					t.Errorf("viewer %d: %d stalls, %d segments, played %d ms", i, sum.Stats.Stalls, len(a.results), sum.Stats.PlayedMs)
				}
				if st := sum.Stats; float64(st.DuplicateBytes+st.WastedBytes) > 0.02*15e6 || st.RejectedBytes > 0 || sum.Banned > 0 {
					t.Errorf("viewer %d: %d duplicate, %d wasted, %d rejected, %d banned", i, st.DuplicateBytes, st.WastedBytes, st.RejectedBytes, sum.Banned)
				}
			}
		})
	}
}

// TestRunsCanBeRepeated has the same scene twice: the same decisions, to the byte, and they replay.
func TestRunsCanBeRepeated(t *testing.T) {
	var tapes [2]bytes.Buffer
	var sums [2][]byte
	for i := range tapes {
		s := fourViewers(t, &tapes[i], fast)
		for _, a := range s.viewers {
			b, err := json.Marshal(a.now())
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = append(sums[i], b...)
		}
	}
	if !bytes.Equal(tapes[0].Bytes(), tapes[1].Bytes()) || !bytes.Equal(sums[0], sums[1]) {
		t.Error("two runs of one scene differ")
	}
	n, diffs, err := replay.Replay(&tapes[0])
	if n < 100 || len(diffs) > 0 || err != nil {
		t.Errorf("replayed %d decisions: %d differ, %v", n, len(diffs), err)
	}
}
