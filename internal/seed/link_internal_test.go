package seed

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// wire is a link that takes control messages. It satisfies transfer.Link and transfer.Holder as far as a session needs it.
type wire struct {
	transfer.Link
	mu   sync.Mutex
	full bool           // guarded by mu: the viewer has not read what was sent
	said []peer.Message // guarded by mu
}

func (w *wire) SendControl(b []byte) {
	m, err := peer.Decode(peer.Control, b)
	if peer.IsUnknown(err) {
		m, err = peer.DecodeParts(peer.Control, b)
	}
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, m)
}

func (w *wire) ControlRoom() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full
}

func (w *wire) fill(full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
}

// take returns what was said since the last call.
func (w *wire) take() (said []peer.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, w.said = w.said, nil
	return said
}

// desk is a seed with one title of ten segments and one link, without playlists, origin and transport.
type desk struct {
	*viewerLink
	supply  *supply
	sibling *issuer // another seed, whose key is known
	wire    *wire
	refs    []*ref
	now     *time.Time
}

func newDesk(t *testing.T, memory int64) *desk {
	now := time.UnixMilli(1_790_000_000_000)
	clock := func() time.Time { return now }
	work := newTasks()
	t.Cleanup(func() { work.end(); work.wait() })
	state := &siteState{rules: testSite(t), name: "demo", scope: newScope("site", 0, 0), sink: metric.Discard}
	issuers := func(v *verifiers) *issuer {
		dir := t.TempDir()
		downs, err := openTakedowns(dir, map[string]bool{"demo": false}, nil, silent, clock)
		if err != nil {
			t.Fatal(err)
		}
		i, err := openIssuer(dir, []string{"demo"}, downs, v, metric.Discard, silent, clock)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	own, sibling := issuers(newVerifiers()), issuers(newVerifiers())
	other := sibling.key()
	if err := own.verifiers.learn(certificate.VerifyKey{KeyID: other.id, Key: other.point, Sites: []string{"demo"}}, now); err != nil {
		t.Fatal(err)
	}
	d, err := openDisk(t.TempDir(), 1<<30, own.judge, metric.Discard, silent)
	if err != nil {
		t.Fatal(err)
	}
	b := newBudgets(newScope("seed", 0, 0), 1.5, metric.Discard, clock)
	s := &supply{
		shelf: newShelf(newStore(d, memory, metric.Discard), work, b, metric.Discard), fetches: newFetches(work, clock), fleet: alone{},
		issuer: own, budgets: b, withhold: func(...segment.ID) {}, sink: metric.Discard, log: silent, now: clock,
	}
	c := newCatalog(work, 1<<20, 10, metric.Discard, silent, clock)
	guest := party{session: signal.ID{1}}
	ix := newIndex(t.Context(), c, state, "/film/index.m3u8")
	list := &playlist.Listed{}
	for n := range 10 {
		path := fmt.Sprintf("/film/%d.ts", n)
		list.Segments = append(list.Segments, playlist.Entry{Name: segment.WholeName(path), Path: path})
	}
	ix.take("/film/index.m3u8", list, now)
	ix.loads = 1
	c.mu.Lock()
	c.add(ix, guest, now)
	c.mu.Unlock()
	title := newTitle(c, state, signal.ID{7}, "/film/index.m3u8")
	title.name(2, []signal.ID{{8}, {9}})
	all := &viewerLinks{tasks: work, supply: s, budgets: b, uploader: transfer.NewUploader(clock), sink: metric.Discard, log: silent, now: clock}
	desk := &desk{
		viewerLink: newViewerLink(all, title, signal.ID{2}, signal.ID{3}, guest),
		supply:     s, sibling: sibling, wire: &wire{}, now: &now,
	}
	for _, one := range list.Segments {
		desk.refs = append(desk.refs, ix.lookup(segment.NewID("demo", one.Name)))
	}
	session := transfer.NewSession(desk.wire, peer.Hello{}, signal.ID{1}, desk.viewerLink, clock)
	upload := func(transfer.Link, *transfer.Session) *transfer.Upload {
		return all.uploader.Add(transfer.UploadConfig{Link: desk.wire, Session: session, Pieces: &desk.pieces, Observer: &desk.pieces})
	}
	if !desk.conn.answered(desk.wire, session) || !desk.conn.open(desk.account(1), upload) {
		t.Fatal("the link does not open")
	}
	return desk
}

// signed is a segment under a certificate of an issuer that lives for lifeVOD.
func (d *desk) signed(t *testing.T, by *issuer, n int, data []byte) *held {
	t.Helper()
	by.disown(d.refs[n].id)
	h, err := by.issue("demo", d.refs[n], by.key(), *d.now, &Fetched{Data: data, ObjectLength: int64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (d *desk) request(n int) request { return request{d.title, d.refs[n], d.conn.payer()} }

func (d *desk) purge(at time.Time) {
	d.supply.issuer.takedowns.take([]signal.Revocation{{Site: "demo", Prefix: "/film/", MinIssuedAt: at.UnixMilli()}}, nil)
}

// nones counts the refusals in what was said, by reason.
func nones(said []peer.Message) map[peer.NoneReason]int {
	out := map[peer.NoneReason]int{}
	for _, m := range said {
		if none, is := m.(peer.CertificateNone); is {
			out[none.Reason]++
		}
	}
	return out
}

// TestCertificatesGoOutAsTheViewerReads, in turn, and what is shown is remembered.
func TestCertificatesGoOutAsTheViewerReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1<<20)
		var ids []segment.ID
		for n := range d.refs {
			d.supply.keep(d.signed(t, d.supply.issuer, n, []byte{byte(n)}))
			ids = append(ids, d.refs[n].id)
		}
		d.wire.fill(true)
		d.showing.wanted(ids)
		synctest.Wait()
		if said := d.wire.take(); len(said) > 0 {
			t.Errorf("%d go out to a viewer that does not read", len(said))
		}
		d.showing.drained()
		synctest.Wait()
		if said := d.wire.take(); len(said) > 0 {
			t.Errorf("%d go out while there is still no room", len(said))
		}
		d.wire.fill(false)
		d.showing.drained()
		synctest.Wait()
		said := d.wire.take()
		if len(said) != len(ids) || len(d.showing.asked) > 0 || d.showing.worked != 0 {
			t.Errorf("%d of %d go out, %d are left", len(said), len(ids), len(d.showing.asked))
		}
		for _, m := range said {
			c := m.(peer.Certificate)
			if content, was := d.showing.shown(c.Segment); !was || content != d.supply.shelf.cached(c.Segment).sum {
				t.Error("what was shown is not remembered")
			}
		}
		if _, was := d.showing.shown(segment.ID{1}); was {
			t.Error("what was not shown is remembered")
		}
		d.showing.wanted([]segment.ID{{1}})
		d.title.name(1, nil)
		d.showing.wanted(ids[:1])
		synctest.Wait()
		if got := nones(d.wire.take()); got[peer.NoneTooFewViewers] != 1 || len(got) != 2 {
			t.Errorf("refused for %v", got)
		}
		d.wire.fill(true)
		d.showing.wanted(make([]segment.ID, peer.MaxAsked))
		d.showing.wanted(ids)
		if got := nones(d.wire.take()); got[peer.NoneBudget] != len(ids) {
			t.Errorf("%d beyond the bound are refused of %d", got[peer.NoneBudget], len(ids))
		}
		d.all.tasks.end()
		d.wire.fill(false)
		d.showing.drained()
		d.showing.more()
		synctest.Wait()
		if got := nones(d.wire.take()); got[peer.NoneBudget] != peer.MaxAsked || d.showing.worked != 0 {
			t.Errorf("%d are told that the seed ends, of %d", got[peer.NoneBudget], peer.MaxAsked)
		}
	})
}

// TestALinkMakesSoManyCertificatesReadyAtATime: the rest waits for its turn.
func TestALinkMakesSoManyCertificatesReadyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1<<20)
		ctx, release := context.WithCancel(t.Context())
		d.supply.fleet = waiting{until: ctx}
		later := slices.Repeat([]segment.ID{d.refs[1].id}, 2*maxWorked)
		d.showing.asked = append(slices.Repeat([]segment.ID{d.refs[0].id}, maxWorked), later...)
		d.showing.more()
		synctest.Wait()
		if d.showing.worked != maxWorked || !slices.Equal(d.showing.asked, later) {
			t.Errorf("%d are made ready, and not the first; %d wait", d.showing.worked, len(d.showing.asked))
		}
		release()
		synctest.Wait()
		answered := map[segment.ID]int{}
		for _, m := range d.wire.take() {
			answered[m.(peer.CertificateNone).Segment]++
		}
		if d.showing.worked != 0 || answered[d.refs[0].id] != maxWorked || answered[d.refs[1].id] != 2*maxWorked {
			t.Errorf("%d are left, answered %v", d.showing.worked, answered)
		}
	})
}

// waiting is a fleet that is busy until a context ends, and then may not give the segment.
type waiting struct {
	alone
	until context.Context
}

func (w waiting) Segment(context.Context, Wanted) (*sibling.Answer, error) {
	<-w.until.Done()
	return &sibling.Answer{None: peer.NoneNotAllowed}, nil
}

// TestPiecesOfWhatTheViewerKnows, and of nothing else.
func TestPiecesOfWhatTheViewerKnows(t *testing.T) {
	d := newDesk(t, 1<<20)
	data := bytes.Repeat([]byte("abc"), segment.PieceSize)
	h := d.signed(t, d.supply.issuer, 0, data)
	d.supply.keep(h)
	last := segment.Pieces(int64(len(data))) - 1
	for piece, want := range map[int][]byte{0: data[:segment.PieceSize], last: data[last*segment.PieceSize:]} {
		if got, why := d.pieces.Piece(h.id, piece); why != transfer.Served || !bytes.Equal(got, want) {
			t.Errorf("piece %d: %d bytes, %v", piece, len(got), why)
		}
	}
	refused := func(what string, id segment.ID, piece int, want peer.RejectReason) {
		t.Helper()
		if got, why := d.pieces.Piece(id, piece); got != nil || why != transfer.Refuse(want) {
			t.Errorf("%s: %d bytes, %v", what, len(got), why)
		}
	}
	refused("a piece after the last", h.id, last+1, peer.RejectOutOfRange)
	foreign := *h
	foreign.id = segment.ID{1}
	d.supply.keep(&foreign)
	refused("a segment of another title", foreign.id, 0, peer.RejectNotHeld)
	d.showing.message(h)
	other := d.signed(t, d.supply.issuer, 0, data[1:])
	d.supply.keep(other)
	refused("other bytes than the viewer would verify", h.id, 0, peer.RejectWithdrawn)
	d.showing.message(other)
	if _, why := d.pieces.Piece(h.id, 0); why != transfer.Served {
		t.Errorf("after the new certificate was shown: %v", why)
	}
	d.purge(d.now.Add(time.Second))
	refused("a segment that is withdrawn", h.id, 0, peer.RejectWithdrawn)
}

// TestPiecesWaitForAFetch, but not until the viewer takes the seed for stalled.
func TestPiecesWaitForAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1<<20)
		busy, end := context.WithCancel(t.Context())
		d.supply.fleet = waiting{until: busy}
		look := func(when string, want transfer.Refusal) {
			t.Helper()
			if got, why := d.pieces.Piece(d.refs[1].id, 0); got != nil || why != want {
				t.Errorf("%s: %d bytes, %v", when, len(got), why)
			}
		}
		look("at first", transfer.Later)
		*d.now = d.now.Add(pieceWait - 1)
		look("while it may wait", transfer.Later)
		*d.now = d.now.Add(1)
		look("after that", transfer.Refuse(peer.RejectNotHeld))
		end()
		synctest.Wait()
		look("once the fetch has failed", transfer.Refuse(peer.RejectNotHeld))
	})
}

// TestAFetchIsWaitedForOnce, however often a link asks while it runs: each wait that ends has the first requests of both lanes asked again.
func TestAFetchIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1<<20)
		busy, end := context.WithCancel(t.Context())
		d.supply.fleet = waiting{until: busy}
		asks := func() int {
			if _, why := d.pieces.Piece(d.refs[1].id, 0); why != transfer.Later {
				t.Fatalf("%v", why)
			}
			synctest.Wait()
			return runtime.NumGoroutine()
		}
		first := asks()
		for range 9 {
			if n := asks(); n != first {
				t.Fatalf("%d goroutines instead of %d", n, first)
			}
		}
		end()
		synctest.Wait()
		if _, is := d.pieces.waits.Load(d.refs[1].id); is {
			t.Error("it is waited for still")
		}
	})
}

// TestPiecesOnDiskComeLater, and what a file cannot be read of is fetched.
func TestPiecesOnDiskComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		h := d.signed(t, d.supply.issuer, 0, []byte("one"))
		d.supply.keep(h)
		d.supply.keep(d.signed(t, d.supply.issuer, 1, []byte("two")))
		if _, why := d.pieces.Piece(h.id, 0); why != transfer.Later {
			t.Fatalf("a segment that is on disk: %v", why)
		}
		synctest.Wait()
		if got, why := d.pieces.Piece(h.id, 0); why != transfer.Served || string(got) != "one" {
			t.Errorf("once it was read: %q, %v", got, why)
		}
		d.supply.keep(d.signed(t, d.supply.issuer, 2, []byte("three"))) // pushes the first out of memory
		d.pieces.loaded(h.id, nil)
		if _, why := d.pieces.Piece(h.id, 0); why != transfer.Later {
			t.Errorf("after a file could not be read: %v", why)
		}
		if _, why := d.pieces.Piece(h.id, 0); why != transfer.Later {
			t.Errorf("the next request: %v", why)
		}
		synctest.Wait()
		d.supply.keep(d.signed(t, d.supply.issuer, 3, []byte("four")))
		a := d.conn.payer()
		a.read.quota.ReserveN(*d.now, a.read.quota.Burst())
		if _, why := d.pieces.Piece(h.id, 0); why != transfer.Refuse(peer.RejectBudget) {
			t.Errorf("a session that has read enough: %v", why)
		}
	})
}
