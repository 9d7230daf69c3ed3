package viewer

import (
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestLinkedPeers: their order, their counts, and which of them say that they hold something.
func TestLinkedPeers(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(2))
	third, first, seed := r.peer(5, schedule.Viewer, 0), r.peer(2, schedule.Viewer, peer.NoUpload), r.peer(4, schedule.Seed, peer.OnDemand)
	if all := r.peers.inOrder(); len(all) != 3 || all[0] != first.remote || all[1] != seed.remote || all[2] != third.remote {
		t.Errorf("%d peers out of order", len(all))
	}
	first.holds(s, 2)
	if r.peers.announced(s) {
		t.Error("what a peer holds that gives nothing is announced")
	}
	if third.holds(s, 2); !r.peers.announced(s) {
		t.Error("what a viewer holds is not announced")
	}
	third.noUpload = true
	if r.peers.announced(s) {
		t.Error("what a peer holds that gives nothing any more is announced")
	}
	third.download.Request(s.target, peer.Foreground, "near", 0, 1)
	held := r.store.open(s.id, s.cert.Length)
	r.store.put(s.id, 0, []byte{1})
	if f := r.peers.flying(s, held); len(f) != 1 || !f[1] {
		t.Errorf("on their way are %v", f)
	}
	if r.peers.outdone(s, 1); len(third.download.Orders()) != 1 {
		t.Errorf("%d requests after one was outdone", len(third.download.Orders()))
	}
	if r.peers.outdone(s, -1); len(third.download.Orders()) != 0 {
		t.Errorf("%d requests after all were", len(third.download.Orders()))
	}
	if n := r.peers.linked(); n["viewer/direct"] != 2 || n["seed/direct"] != 1 {
		t.Errorf("linked are %v", n)
	}
	r.linkEnded(seed.remote, peer.CloseTimeout)
	r.linkEnded(seed.remote, peer.CloseTimeout)
	if r.peers.closed[peer.CloseTimeout] != 1 || len(r.peers.byID) != 2 || len(r.banned) != 0 {
		t.Errorf("%v, %d left, banned %v", r.peers.closed, len(r.peers.byID), r.banned)
	}
	if r.linkEnded(third.remote, peer.CloseFalse); len(r.banned) != 1 {
		t.Error("a liar is not banned")
	}
}
