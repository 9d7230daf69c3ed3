package seed_test

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// flood says something again and again until the link ends, so many times at most, and returns how often. It says it as fast as
// the seed reads, for this side would end the link itself otherwise.
func (v *viewer) flood(most int, say func(n int) bool) (said int) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for said < most {
		if v.link.ControlRoom() && say(said) {
			said++
			continue
		}
		select {
		case <-v.closed:
			return said
		case <-look.C:
		}
	}
	wait(v.w.t, v.closed, "the end of the link")
	return said
}

func (v *viewer) says(message []byte) bool {
	v.link.SendControl(message)
	return true
}

// TestFloodsEndTheirLinkAndCostOthersNothing: each is sent past the library's own bounds, over a real link.
func TestFloodsEndTheirLinkAndCostOthersNothing(t *testing.T) {
	o := newOrigin(t)
	o.film(2)
	w := newWorld(t, o, nil)
	honest := w.connect(100, 8)
	c, none := honest.certificate("/film/low/0.m4s")
	if none != nil {
		t.Fatal(none)
	}
	raw := func(m peer.Message) []byte {
		b, err := peer.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	done := map[peer.Limit]bool{}
	requests := peer.Request{Segment: segment.ID{9}, Requests: make([]peer.PieceRequest, 255)}
	for n, f := range []struct {
		limit peer.Limit
		say   func(v *viewer, n int) bool
	}{
		{peer.LimitData, func(v *viewer, _ int) bool { return v.link.SendData(raw(peer.Data{Request: 77, Payload: []byte{1}})) }},
		{peer.LimitRequests, func(v *viewer, n int) bool {
			for i := range requests.Requests {
				requests.Requests[i].ID = uint32(255*n + i)
			}
			return v.says(raw(requests))
		}},
		{peer.LimitStrays, func(v *viewer, _ int) bool { return v.says(raw(peer.Cancel{IDs: make([]uint32, 255)})) }},
		{peer.LimitHave, func(v *viewer, _ int) bool { return v.says(raw(peer.Have{Entries: make([]peer.HaveEntry, 255)})) }},
		{peer.LimitCertificates, func(v *viewer, _ int) bool {
			return v.says(raw(peer.CertificateRequest{Segments: make([]segment.ID, 255)}))
		}},
		{peer.LimitPings, func(v *viewer, _ int) bool { return v.says(raw(peer.Ping{})) }},
	} {
		v := w.connect(byte(n+1), 8)
		v.deaf.Store(true) // else its own session would end the link for answers to what it has not asked
		said := v.flood(100_000, func(n int) bool { return f.say(v, n) })
		for _, l := range peer.Limits {
			if got := w.counted("leeway_seed_overruns_total", string(l)); (got == 1) != (l == f.limit || done[l]) {
				t.Errorf("%s: said %d times: %v links are over %s", f.limit, said, got, l)
			}
		}
		done[f.limit] = true
		if data, rejected := honest.fetch(c); len(rejected) > 0 || int64(len(data)) != c.Length {
			t.Errorf("%s: the honest viewer had %d pieces rejected", f.limit, len(rejected))
		}
	}
}

// TestAnHonestWorstCaseStaysFarBelowTheRates: a viewer that jumps about the timeline as fast as a link can bear asks for whole
// segments and takes them back; it is served afterwards as before.
func TestAnHonestWorstCaseStaysFarBelowTheRates(t *testing.T) {
	const jumps = 100
	o := newOrigin(t)
	names := o.shelf(2)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	c, none := v.certificate(names[0])
	if none != nil {
		t.Fatal(none)
	}
	target, pieces := targetOf(c), make([]int, 76)
	for i := range pieces {
		pieces[i] = i
	}
	for range jumps { // at once: 7,600 pieces are asked for and taken back
		v.download.Request(target, peer.Foreground, "jump", pieces...)
		v.download.Cancel(func(transfer.Order) bool { return true })
	}
	ids := make([]segment.ID, 255)
	for i := range ids {
		ids[i] = target.Segment
	}
	v.session.Send(peer.CertificateRequest{Segments: ids})
	for range ids {
		if m, is := wait(t, v.answers, "a certificate").(peer.Certificate); !is {
			t.Fatalf("answer %+v", m)
		}
	}
	for len(v.fetched) > 0 {
		<-v.fetched
	}
	v.download.Request(target, peer.Foreground, "test", 500, 501, 502)
	for range 3 {
		select {
		case r := <-v.closed:
			t.Fatalf("ended: %s", r)
		case f := <-v.fetched:
			if f.data == nil {
				t.Errorf("rejected: %d", *f.rejected)
			}
		case <-time.After(patience):
			t.Fatal("nothing came")
		}
	}
}
