package seed_test

import (
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestManyCertificatesWaitForTheViewer: a viewer may ask for thousands of certificates at once, and read them late: it gets each of
// them, and its link does not end for what it has not read.
func TestManyCertificatesWaitForTheViewer(t *testing.T) {
	const askedFor = 1500 // 26 MB of certificates
	o := newOrigin(t)
	o.shelf(1)
	w := newWorld(t, o, nil)
	v := w.connect(1, 1)
	const name segment.Name = "/film/low/0.m4s"
	if c, none := v.certificate(name); c == nil || len(c.Bytes()) < 16_000 {
		t.Fatalf("no long certificate: %+v", none)
	}
	held := make(chan struct{})
	v.holdControl(held)
	id := w.id(name)
	for left := askedFor; left > 0; left -= 255 {
		m := peer.CertificateRequest{}
		for range min(left, 255) {
			m.Segments = append(m.Segments, id)
		}
		v.session.Send(m)
	}
	wait(t, v.holding, "the first certificate, which is not read on")
	close(held)
	for n := range askedFor {
		select {
		case r := <-v.closed:
			t.Fatalf("ended after %d certificates: %s", n, r)
		case m := <-v.answers:
			if _, is := m.(peer.Certificate); !is {
				t.Fatalf("answer %d of %d: %+v", n, askedFor, m)
			}
		}
	}
}
