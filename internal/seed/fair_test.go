package seed_test

import (
	"encoding/binary"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// settle returns when the seed has taken in what was sent before: messages of a link keep their order.
func (v *viewer) settle() {
	v.w.t.Helper()
	v.download.Request(&transfer.Target{Segment: segment.ID{255}, Certificate: &certificate.Certificate{Length: 1, Digests: make([][32]byte, 1)}}, peer.Foreground, "test", 0)
	if f := wait(v.w.t, v.fetched, "the reject"); f.rejected == nil {
		v.w.t.Error("a piece of nothing came")
	}
}

// TestRequestsForWhatIsNotListedDelayNoOtherViewer: such a request waits until the playlists are loaded again.
func TestRequestsForWhatIsNotListedDelayNoOtherViewer(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	release := o.hold("/vod/film/master.m3u8")
	w := newWorld(t, o, nil)
	const hostile, each = 16, 64
	for i := range hostile {
		v := w.connect(byte(i+1), hostile)
		var ids []segment.ID
		for j := range each {
			id := segment.ID{1, byte(i)}
			binary.BigEndian.PutUint32(id[4:], uint32(j))
			ids = append(ids, id)
		}
		v.session.Send(peer.CertificateRequest{Segments: ids})
		v.settle()
	}
	honest := w.connect(100, hostile+1)
	const name segment.Name = "/film/low/0.m4s"
	honest.session.Send(peer.CertificateRequest{Segments: []segment.ID{w.id(name)}})
	honest.settle()
	release()
	m := wait(t, honest.answers, "a certificate")
	if _, ok := m.(peer.Certificate); !ok {
		t.Errorf("answer %+v", m)
	}
}

// TestTitlesWithoutViewersGiveWay: a viewer that names many titles must not keep out those that are watched.
func TestTitlesWithoutViewersGiveWay(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) { c.MaxTitles = 2 })
	linked := w.connect(1, 1)
	name := func(n byte, viewers int) *bus.Title {
		title := w.title(viewers)
		title.Swarm = signal.ID{50, n}
		return title
	}
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: name(1, 1)}).Wait()
	offer := func(n byte, title *bus.Title) *viewer {
		v := w.newViewer(n)
		v.swarm = title.Swarm
		v.offer(title)
		return v
	}
	turned := offer(10, name(2, 1))
	if r := wait(t, turned.failed, "the refusal"); r != "busy" {
		t.Errorf("no room for one as small as those that are there: %s", r)
	}
	turned.link.Close(peer.CloseClosed, nil)
	taken := offer(11, name(3, 2))
	wait(t, taken.ready, "the seed's hello: a title without links gives way")
	if _, none := linked.certificate("/film/low/0.m4s"); none != nil {
		t.Errorf("one that is linked to is gone: reason %d", none.Reason)
	}
}
