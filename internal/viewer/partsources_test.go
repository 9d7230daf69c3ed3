package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
)

// TestPiecesStayOfTheirPeers also where a part has come in part while pieces of many others were counted.
func TestPiecesStayOfTheirPeers(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	r.seed.pushes(r, 2, r.signs(2, data), data, 0)
	for n := 2; n < 6*parts.Kept; n++ {
		r.seed.pushes(r, n+1, r.signs(n+1, data), data, 0)
		r.seed.pushes(r, n, []byte{1}, data, 1, 2, 3, 4)
		if o := r.plays(n, time.Second); o.n != 1 || o.got.Source != FromSeed || o.got.Bytes[FromOrigin] > 0 {
			t.Fatalf("part %d: %+v", n, o)
		}
	}
	if n := len(r.loads.streams.tracks[0].sources); n > 2*parts.Kept+1 {
		t.Errorf("of %d parts it is known where they came from", n)
	}
}
