package transfer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const patience = 20 * time.Second

// end is one end of a real link: it serves pieces of one segment, and fetches them.
type end struct {
	t        testing.TB
	id       byte
	link     *rtclink.Link
	other    *end
	made     chan struct{}
	ready    chan struct{}
	uploader *transfer.Uploader

	session  *transfer.Session
	upload   *transfer.Upload
	download *transfer.Download
	came     chan transfer.Order
	wrong    atomic.Int64
	behind   chan struct{} // background messages come
}

var film = func() (s struct {
	data   []byte
	target transfer.Target
}) {
	s.data = make([]byte, 128*peer.PieceSize) // 2 MiB
	_, _ = rand.NewChaCha8([32]byte{}).Read(s.data)
	s.target = transfer.Target{Segment: segment.ID{7}, Certificate: &certificate.Certificate{Length: int64(len(s.data)), Digests: certificate.DigestPieces(s.data)}}
	return s
}()

func (e *end) Piece(_ segment.ID, n int) ([]byte, transfer.Refusal) {
	return film.data[n*peer.PieceSize : (n+1)*peer.PieceSize], transfer.Served
}
func (e *end) Sent(peer.Lane, int)             {}
func (e *end) Served()                         {}
func (e *end) Promoted(int)                    {}
func (e *end) Rejected(peer.RejectReason, int) {}
func (e *end) Canceled(int)                    {}
func (e *end) Wasted(int)                      {}
func (e *end) Arrived(o transfer.Order, _ []byte, matches bool) {
	e.download.Remove(o.ID)
	if !matches {
		e.wrong.Add(1)
	}
	e.came <- o
}

func (e *end) Candidate(c transfer.Candidate) {
	go func() {
		<-e.other.made
		_ = e.other.link.AddCandidate(c)
	}()
}
func (e *end) Open()                   { <-e.made; e.session.Open() }
func (e *end) Control(b []byte)        { e.session.Control(b) }
func (e *end) Data(b []byte)           { e.session.Data(b) }
func (e *end) Ack(b []byte)            { e.session.Ack(b) }
func (e *end) Drain()                  { e.upload.Drain() }
func (e *end) Closed(peer.CloseReason) {}

// handler is what an end's session tells; lane what comes of the background transport.
type handler struct{ *end }
type lane struct{ *end }

func (h handler) Ready(peer.Hello) error {
	h.upload.Acknowledged(h.link)
	close(h.ready)
	return nil
}
func (h handler) Piece(m peer.Data) error { return h.download.Data(m) }
func (h handler) Message(m peer.Message) error {
	switch m := m.(type) {
	case peer.Request:
		return h.upload.Request(m)
	case peer.Promote:
		h.upload.Promote(m)
	case peer.Reject:
		h.t.Errorf("rejected: %+v", m)
	}
	return nil
}
func (l lane) BackgroundData(b []byte) error {
	select {
	case l.behind <- struct{}{}:
	default:
	}
	return l.download.BackgroundData(b)
}
func (l lane) Ack(b []byte) error { return l.upload.Ack(b) }

// begin gives an end what it needs once its link is made.
func (e *end) begin(l *rtclink.Link) {
	e.link = l
	hello := peer.Hello{MinVersion: 1, MaxVersion: 1, Flags: peer.AcksBackground, MaxRequests: 1024, Peer: swarm.ID{e.id}, Swarm: swarm.ID{9}}
	e.session = transfer.NewSession(l, hello, swarm.ID{e.other.id}, handler{e}, time.Now)
	e.session.Lane = lane{e}
	e.download = transfer.NewDownload(e.session.Send, time.Now, e)
	e.download.Background(l, background.NewRequester(ledbat.Config{}, time.Now), nil)
	e.upload = e.uploader.Add(transfer.UploadConfig{Link: l, Session: e.session, Pieces: e, Observer: e, MaxRequests: 1024, Background: true})
	close(e.made)
}

// connect makes two ends over a real link on loopback.
func connect(t testing.TB) (asks, serves *end) {
	t.Helper()
	var ends [2]*end
	var hosts [2]*rtclink.Host
	for i := range ends {
		h, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", Loopback: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		e := &end{t: t, id: byte(i + 1), made: make(chan struct{}), ready: make(chan struct{}), came: make(chan transfer.Order, 1024), behind: make(chan struct{}, 1), uploader: transfer.NewUploader(time.Now)}
		e.uploader.Background = background.NewSender(ledbat.Config{}, time.Now)
		running.Go(func() { e.uploader.Run(ctx) })
		ends[i], hosts[i] = e, h
		t.Cleanup(func() {
			e.download.Close()
			e.upload.Remove()
			_ = h.Close()
			cancel()
			running.Wait()
		})
	}
	ends[0].other, ends[1].other = ends[1], ends[0]
	l, offer, err := hosts[0].Offer(ends[0])
	if err != nil {
		t.Fatal(err)
	}
	ends[0].begin(l)
	a, answer, err := hosts[1].Answer(offer, ends[1])
	if err != nil {
		t.Fatal(err)
	}
	ends[1].begin(a.(*rtclink.Link))
	if err := l.Accept(answer); err != nil {
		t.Fatal(err)
	}
	for _, e := range ends {
		select {
		case <-e.ready:
		case <-time.After(patience):
			t.Fatal("no hello")
		}
	}
	return ends[0], ends[1]
}

// fetch asks for the whole segment in a lane and says how long it took.
func (e *end) fetch(in peer.Lane) time.Duration {
	pieces := make([]int, len(film.target.Certificate.Digests))
	for i := range pieces {
		pieces[i] = i
	}
	began := time.Now()
	e.download.Request(&film.target, in, "near", pieces...)
	late := time.After(patience)
	for left := len(pieces); left > 0; {
		select {
		case o := <-e.came:
			if o.Lane == in {
				left--
			}
		case <-late:
			e.t.Fatal("the segment did not come")
		}
	}
	return time.Since(began)
}

// TestForegroundIsNotHeldUpByTheBackground fetches a segment of 2 MiB over a real link, alone and while the other side has
// more to send in the background than it can. The bench of the transport measures by how much it is late; here it may be
// several times, for machines of two busy cores.
func TestForegroundIsNotHeldUpByTheBackground(t *testing.T) {
	asks, _ := connect(t)
	const runs = 5
	var alone, beside []time.Duration
	for range runs {
		alone = append(alone, asks.fetch(peer.Foreground))
	}
	again := &transfer.Target{Segment: segment.ID{8}, Certificate: film.target.Certificate}
	for range runs {
		for n := range len(again.Certificate.Digests) {
			asks.download.Request(again, peer.Background, "background", n)
		}
		select {
		case <-asks.behind:
		case <-time.After(patience):
			t.Fatal("nothing comes in the background")
		}
		beside = append(beside, asks.fetch(peer.Foreground))
		asks.download.Cancel(func(o transfer.Order) bool { return o.Lane == peer.Background })
	}
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("alone %v, beside background %v", alone, beside)
	if n := asks.wrong.Load(); n > 0 {
		t.Errorf("%d wrong pieces", n)
	}
	if bound := 5*alone[runs/2] + 100*time.Millisecond; beside[runs/2] > bound {
		t.Errorf("beside the background it takes %s, alone %s", beside[runs/2], alone[runs/2])
	}
}
