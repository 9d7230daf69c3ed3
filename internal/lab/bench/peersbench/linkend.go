package peersbench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// outstanding is how many pieces a link may be asked for: what a seed queues.
const outstanding = 256

// content is what our ends serve: an item is the first bytes of it, a segment of its own. It is the same in every process, so
// that a client has the digests.
type content struct {
	data []byte

	mu      sync.Mutex
	targets map[int]*certificate.Certificate // guarded by mu: by the bytes of an item
}

func newContent() *content {
	c := &content{data: make([]byte, largestItem), targets: map[int]*certificate.Certificate{}}
	_, _ = rand.NewChaCha8([32]byte{}).Read(c.data) // cannot fail
	return c
}

// named is the ID of an item's segment: its size is in it, so that an end that serves knows it.
func named(item, bytes int) segment.ID {
	var id segment.ID
	binary.BigEndian.PutUint32(id[0:], uint32(bytes))
	binary.BigEndian.PutUint32(id[4:], uint32(item))
	return id
}

// Piece implements transfer.Pieces.
func (c *content) Piece(id segment.ID, piece int) ([]byte, transfer.Refusal) {
	bytes := int(binary.BigEndian.Uint32(id[0:]))
	if bytes > len(c.data) || piece >= segment.Pieces(int64(bytes)) {
		return nil, transfer.Refuse(peer.RejectNotHeld)
	}
	return c.piece(bytes, piece), transfer.Served
}

func (c *content) piece(bytes, piece int) []byte {
	return c.data[piece*peer.PieceSize : min((piece+1)*peer.PieceSize, bytes)]
}

// certificate has the digests of an item of so many bytes.
func (c *content) certificate(bytes int) *certificate.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.targets[bytes]
	if known == nil {
		known = &certificate.Certificate{Length: int64(bytes)}
		for i := range segment.Pieces(int64(bytes)) {
			known.Digests = append(known.Digests, sha256.Sum256(c.piece(bytes, i)))
		}
		c.targets[bytes] = known
	}
	return known
}

// linkEnd is ours: an end that serves as a seed does, or a client that asks and verifies as a viewer does.
type linkEnd struct {
	host
	links    *pairing.Links[*ourLink]
	rtc      *rtclink.Host
	content  *content
	uploader *transfer.Uploader
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

func newLinkEnd(h host) (*linkEnd, error) {
	rtc, err := rtclink.Listen(rtclink.Config{
		Listen: net.JoinHostPort(h.setup.Addr, "0"), Loopback: true, SocketPerLink: h.setup.fetches(),
		Plan: peer.Plan{V: 1, Data: h.setup.Channels, Message: peer.DefaultPlan.Message},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &linkEnd{host: h, rtc: rtc, content: newContent(), uploader: transfer.NewUploader(time.Now), stop: cancel}
	e.links = pairing.New(rtc, h.say, func() *ourLink { return &ourLink{end: e, waiting: map[segment.ID]*awaited{}} })
	e.wg.Go(func() { e.uploader.Run(ctx) })
	return e, nil
}

func (e *linkEnd) begin(link int) error { return e.links.Begin(link) }

func (e *linkEnd) hear(link int, s pairing.Signal) error { return e.links.Handle(link, s) }

func (e *linkEnd) drop(link int) error {
	e.links.Drop(link)
	return nil
}

func (e *linkEnd) run(j job) { e.fetch.begin(j) }

// ask asks for all pieces of an item; the link chooses its channels.
func (e *linkEnd) ask(l lane, item, bytes int) error {
	o, ok := e.links.Get(l.Link)
	if !ok {
		return fmt.Errorf("link %d is not there", l.Link)
	}
	o.ask(l, item, bytes)
	return nil
}

func (e *linkEnd) close() error {
	err := e.rtc.Close()
	e.stop()
	e.wg.Wait()
	return err
}

// ourLink is one end of one link.
type ourLink struct {
	pairing.Base
	pairing.Serving
	end      *linkEnd
	session  *transfer.Session
	download *transfer.Download

	mu      sync.Mutex
	waiting map[segment.ID]*awaited // guarded by mu
}

// awaited is an item on its way.
type awaited struct {
	lane    lane
	missing int // pieces
}

// Made implements pairing.End.
func (o *ourLink) Made() {
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: outstanding}
	o.session = transfer.NewSession(o.Link, hello, swarm.ID{}, o, time.Now)
	o.download = transfer.NewDownload(o.session.Send, time.Now, o)
}

func (o *ourLink) ask(l lane, item, bytes int) {
	target := &transfer.Target{Segment: named(item, bytes), Certificate: o.end.content.certificate(bytes)}
	pieces := make([]int, segment.Pieces(int64(bytes)))
	for i := range pieces {
		pieces[i] = i
	}
	o.mu.Lock()
	o.waiting[target.Segment] = &awaited{l, len(pieces)}
	o.mu.Unlock()
	o.download.Request(target, peer.Foreground, "bench", pieces...)
}

// Arrived implements transfer.DownloadEvents.
func (o *ourLink) Arrived(order transfer.Order, _ []byte, matches bool) {
	o.download.Remove(order.ID)
	if !matches {
		o.end.failed(fmt.Errorf("link %d: piece %d does not match its digest", o.Number, order.Piece))
		return
	}
	o.mu.Lock()
	w := o.waiting[order.Target.Segment]
	w.missing--
	whole := w.missing == 0
	if whole {
		delete(o.waiting, order.Target.Segment)
	}
	o.mu.Unlock()
	if whole {
		o.end.fetch.arrived(w.lane)
	}
}

// Wasted implements transfer.DownloadEvents.
func (o *ourLink) Wasted(int) {}

// Opened implements pairing.End.
func (o *ourLink) Opened() {
	o.end.moment(o.Number, opened)
	o.Serve(o.end.uploader, transfer.UploadConfig{Link: o.Link, Session: o.session, Pieces: o.end.content, MaxRequests: outstanding})
	o.session.Open()
}

// Control implements transfer.LinkEvents.
func (o *ourLink) Control(b []byte) { o.session.Control(b) }

// Data implements transfer.LinkEvents.
func (o *ourLink) Data(b []byte) { o.session.Data(b) }

// Closed implements transfer.LinkEvents.
func (o *ourLink) Closed(peer.CloseReason) {}

// Ready implements transfer.Handler.
func (o *ourLink) Ready(peer.Hello) error {
	o.end.moment(o.Number, usable)
	return nil
}

// Piece implements transfer.Handler.
func (o *ourLink) Piece(m peer.Data) error { return o.download.Data(m) }
