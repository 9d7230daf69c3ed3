package seed

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestWhatTheFleetIsAskedFor(t *testing.T) {
	d := newDesk(t, 1<<20)
	one := d.signed(t, d.supply.issuer, 0, []byte("one"))
	w := d.supply.offer(d.request(0), nil).wanted()
	if w.Segment != d.refs[0].id || w.Swarm != (signal.ID{7}) || !slices.Equal(w.Seeds, []signal.ID{{8}, {9}}) || w.Have != nil {
		t.Errorf("%+v", w)
	}
	if w = d.supply.offer(d.request(0), one).wanted(); w.Have == nil || [32]byte(*w.Have) != one.sum {
		t.Error("the fleet is not told what is held")
	}
	if w, held := d.supply.lacks(t.Context(), d.title, d.refs[0]); w == nil || held {
		t.Error("a segment that is on no shelf is not lacked")
	}
	d.supply.keep(one)
	if w, held := d.supply.lacks(t.Context(), d.title, d.refs[0]); w != nil || !held {
		t.Error("a segment that is on the shelf is lacked")
	}
	d.supply.issuer.takedowns.take(nil, d.supply.issuer.takedowns.statements("demo", true, "operator", time.Time{}))
	if w, held := d.supply.lacks(t.Context(), d.title, d.refs[1]); w != nil || held {
		t.Error("a segment of a site that is off is wanted")
	}
}

// TestACertificateOfASiblingIsJudged before its bytes are taken: as a viewer does, and by what is held.
func TestACertificateOfASiblingIsJudged(t *testing.T) {
	d := newDesk(t, 1<<20)
	old := d.signed(t, d.supply.issuer, 0, []byte("one"))
	again := d.signed(t, d.sibling, 0, []byte("one"))
	*d.now = d.now.Add(time.Minute)
	newer, two := d.signed(t, d.sibling, 0, []byte("one")), d.signed(t, d.sibling, 0, []byte("two"))
	elsewhere := d.signed(t, d.sibling, 1, []byte("one"))
	stranger, err := openIssuer(t.TempDir(), []string{"demo"}, d.sibling.takedowns, newVerifiers(), metric.Discard, silent, d.supply.now)
	if err != nil {
		t.Fatal(err)
	}
	unknown := d.signed(t, stranger, 0, []byte("one"))
	for name, c := range map[string]struct {
		old    *held
		offer  *held
		length int
		want   func(error) bool
	}{
		"nothing is held":            {nil, newer, 3, nil},
		"nothing is held, no bytes":  {nil, newer, 0, isPlain},
		"another length":             {nil, newer, 4, isPlain},
		"of another segment":         {nil, elsewhere, 3, isRefused},
		"of an unknown key":          {nil, unknown, 3, isRefused},
		"no newer than what is held": {old, again, 0, isStale},
		"newer, the bytes are held":  {old, newer, 0, nil},
		"other bytes than are held":  {old, two, 3, nil},
		"other bytes, and none come": {old, two, 0, isPlain},
	} {
		o := d.supply.offer(d.request(0), c.old)
		err := o.accept(c.offer.cert.Bytes(), c.length)
		if c.want == nil && (err != nil || o.cert == nil) || c.want != nil && (err == nil || !c.want(err) || o.cert != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.purge(*d.now)
	if err := d.supply.offer(d.request(0), nil).accept(again.cert.Bytes(), 3); !isStale(err) {
		t.Errorf("withdrawn: %v", err)
	}
	if err := d.supply.offer(d.request(0), nil).accept([]byte("rubbish"), 3); err == nil {
		t.Error("rubbish is accepted")
	}
}

func isStale(err error) bool   { return errors.Is(err, ErrStale) }
func isRefused(err error) bool { return errors.As(err, new(*certificate.Error)) }
func isPlain(err error) bool   { return !isStale(err) && !isRefused(err) }

// TestWhatASiblingGivesIsKept under its certificate, at the session's expense, and only if it matches.
func TestWhatASiblingGivesIsKept(t *testing.T) {
	d := newDesk(t, 1<<20)
	data := bytes.Repeat([]byte("x"), segment.PieceSize+100)
	given := d.signed(t, d.sibling, 0, data)
	offer := func(old *held) *offered {
		o := d.supply.offer(d.request(0), old)
		if err := o.accept(given.cert.Bytes(), len(data)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	forged := slices.Clone(data)
	forged[segment.PieceSize]++
	if o := offer(nil); o.keep(forged) == nil || o.held != nil || d.supply.shelf.cached(given.id) != nil {
		t.Error("bytes are kept that do not match the certificate")
	}
	before := d.conn.payer().fetched.quota.TokensAt(*d.now)
	o := offer(nil)
	if err := o.keep(data); err != nil || o.held == nil || d.supply.shelf.cached(given.id) != o.held || !bytes.Equal(o.held.data, data) {
		t.Errorf("not kept: %v", err)
	}
	if spent := before - d.conn.payer().fetched.quota.TokensAt(*d.now); spent != float64(len(data)) {
		t.Errorf("%v bytes are charged of %d", spent, len(data))
	}
	if other := d.signed(t, d.sibling, 0, data[1:]); true {
		o := d.supply.offer(d.request(0), nil)
		if err := o.accept(other.cert.Bytes(), len(data)-1); err != nil {
			t.Fatal(err)
		}
		if err := o.keep(data[1:]); !errors.Is(err, ErrDiffers) || d.supply.shelf.cached(given.id).sum != given.sum {
			t.Errorf("other bytes beside a certificate that holds: %v", err)
		}
	}
	*d.now = d.now.Add(time.Hour)
	given = d.signed(t, d.sibling, 0, data)
	o = offer(d.supply.shelf.cached(given.id))
	if err := o.keep(nil); err != nil || !bytes.Equal(o.held.data, data) || !o.held.cert.NotAfter.Equal(given.cert.NotAfter) {
		t.Errorf("a newer certificate for what is held: %v", err)
	}
	o = offer(nil)
	d.purge(d.now.Add(time.Second))
	if err := o.keep(data); !isStale(err) || o.held != nil || d.supply.shelf.cached(given.id) != nil {
		t.Errorf("a purge between the certificate and its bytes: %v", err)
	}
}
