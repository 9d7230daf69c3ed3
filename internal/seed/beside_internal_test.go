package seed

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// What things take in virtual time: one message of a piece to be sealed and sent, and a file of 8 MiB to be read and hashed.
const (
	messageTakes = 20 * time.Microsecond
	fileTakes    = 20 * time.Millisecond
)

// taker is a link and its viewer, which asks for a piece whenever one has come.
type taker struct {
	transfer.Link
	t      *testing.T
	ctx    context.Context // it asks for nothing more once that ends
	upload *transfer.Upload
	ask    func() (segment.ID, int)
	bytes  func(n int)
	next   uint32
}

func (k *taker) SendData([]byte) bool {
	sleep.For(k.ctx, messageTakes) // on the goroutine that all links are sent from
	return true
}

func (k *taker) MaxMessage() int { return 8 << 10 }

func (k *taker) request() {
	if k.ctx.Err() != nil {
		return
	}
	id, piece := k.ask()
	k.next++
	if err := k.upload.Request(peer.Request{Segment: id, Requests: []peer.PieceRequest{{ID: k.next, Piece: uint16(piece)}}}); err != nil {
		k.t.Error(err)
	}
}

func (k *taker) Sent(_ peer.Lane, n int)             { k.bytes(n) }
func (k *taker) Served()                             { k.request() }
func (k *taker) Promoted(int)                        {}
func (k *taker) Rejected(r peer.RejectReason, _ int) { k.t.Errorf("rejected: %d", r) }
func (k *taker) Canceled(int)                        {}

// pieceFunc is Pieces of one function.
type pieceFunc func(segment.ID, int) ([]byte, transfer.Refusal)

func (f pieceFunc) Piece(id segment.ID, n int) ([]byte, transfer.Refusal) { return f(id, n) }

// besideReads is how many bytes a viewer gets in a second of virtual time, and for how many pieces of files that have left memory another
// link asks meanwhile, 16 at a time. inline has the files read where pieces are sent from.
func besideReads(t *testing.T, attacked, inline bool) (honest, pieces int) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		count := func(of *int) func(int) {
			return func(n int) {
				mu.Lock()
				defer mu.Unlock()
				*of += n
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		u := transfer.NewUploader(time.Now)
		running.Go(func() { u.Run(ctx) })
		piece := make([]byte, segment.PieceSize)
		file := func() { sleep.For(ctx, fileTakes) }
		reads := newLoads(func(id segment.ID) *held { file(); return &held{id: id} }, func(f func()) bool { running.Go(f); return true }, 1)
		add := func(atATime int, bytes *int, pieces transfer.Pieces, ask func() (segment.ID, int)) *taker {
			k := &taker{t: t, ctx: ctx, ask: ask, bytes: count(bytes)}
			k.upload = u.Add(transfer.UploadConfig{Link: k, Send: func(peer.Message) {}, Pieces: pieces, Observer: k, MaxRequests: 256})
			for range atATime {
				k.request()
			}
			return k
		}
		n := 0
		add(64, &honest, pieceFunc(func(segment.ID, int) ([]byte, transfer.Refusal) { return piece, transfer.Served }), func() (segment.ID, int) {
			n++
			return segment.ID{1}, n % 512
		})
		sent := 0
		if attacked {
			read := map[segment.ID]bool{} // a file leaves memory once a piece of it is sent
			var hostile *taker
			session := &reader{}
			shelf := pieceFunc(func(id segment.ID, _ int) ([]byte, transfer.Refusal) {
				mu.Lock()
				is := read[id]
				delete(read, id)
				mu.Unlock()
				switch {
				case is:
					return piece, transfer.Served
				case inline:
					file()
					return piece, transfer.Served
				}
				reads.want(session, id, func(*held) {
					mu.Lock()
					read[id] = true
					mu.Unlock()
					hostile.upload.Loaded()
				})
				return nil, transfer.Later
			})
			m := byte(0)
			hostile = &taker{t: t, ctx: ctx, bytes: count(&sent), ask: func() (segment.ID, int) { m++; return segment.ID{2, m}, int(m) }}
			hostile.upload = u.Add(transfer.UploadConfig{Link: hostile, Send: func(peer.Message) {}, Pieces: shelf, Observer: hostile, MaxRequests: 256})
			for range 16 {
				hostile.request()
			}
		}
		sleep.For(ctx, time.Second)
		mu.Lock()
		pieces = sent / segment.PieceSize
		mu.Unlock()
		cancel()
		running.Wait()
	})
	return honest, pieces
}

// TestHalfOfTheThroughputIsLeftBesideReads: in virtual time, so that neither the machine nor the asker's own work is in it. A link that
// has the seed read 8 MiB for each 16 KiB leaves a viewer at least half of what it had alone. Where the files are read by the goroutine
// that sends, as they once were, it does not: the measure can fail.
func TestHalfOfTheThroughputIsLeftBesideReads(t *testing.T) {
	alone, _ := besideReads(t, false, false)
	beside, pieces := besideReads(t, true, false)
	t.Logf("%d bytes alone, %d beside %d pieces of other files", alone, beside, pieces)
	if alone < 100<<20 || pieces < 10 {
		t.Fatalf("%d bytes alone, %d pieces of other files", alone, pieces)
	}
	if 2*beside < alone {
		t.Errorf("%.1f %% of the throughput is left", 100*float64(beside)/float64(alone))
	}
	if inline, _ := besideReads(t, true, true); 2*inline >= alone {
		t.Errorf("with reads where pieces are sent from %d bytes are left: nothing is measured", inline)
	} else {
		t.Logf("with reads where pieces are sent from: %d bytes, %.1f %%", inline, 100*float64(inline)/float64(alone))
	}
}
