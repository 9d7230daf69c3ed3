package fleet

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

func numbered(i int) (id wantedID) {
	binary.BigEndian.PutUint32(id.segment[:], uint32(i))
	return id
}

// TestDemandAges: what was asked for three times an hour ago is wanted less than what was asked for once just now.
func TestDemandAges(t *testing.T) {
	d, now := newDemand(), time.Unix(1_790_000_000, 0)
	old, fresh := numbered(1), numbered(2)
	for range 3 {
		d.note(old, now)
	}
	d.note(fresh, now)
	if l := d.list(now); len(l) != 2 || l[0].id != old || l[0].worth != 3 {
		t.Fatalf("%+v", l)
	}
	if l := d.list(now.Add(demandHalves)); l[0].worth != 1.5 {
		t.Errorf("after its half-life: %+v", l)
	}
	now = now.Add(40 * time.Minute)
	d.note(fresh, now)
	if l := d.list(now); l[0].id != fresh || len(l) != 2 {
		t.Errorf("%+v", l)
	}
	if l := d.list(now.Add(2 * time.Hour)); len(l) != 0 || len(d.counts) != 0 {
		t.Errorf("no viewer asked for two hours, and %+v is wanted", l)
	}
}

// TestDemandIsBounded: when there is too much to count, what is wanted least is not counted any more.
func TestDemandIsBounded(t *testing.T) {
	d, now := newDemand(), time.Unix(1_790_000_000, 0)
	for range 2 {
		d.note(wantedID{segment: segment.ID{9}}, now)
	}
	for i := range 2 * maxDemand {
		d.note(numbered(i), now)
		if len(d.counts) > maxDemand {
			t.Fatalf("%d segments are counted", len(d.counts))
		}
	}
	if l := d.list(now); l[0].id.segment != (segment.ID{9}) || l[0].worth != 2 {
		t.Errorf("what is wanted most was forgotten: %+v", l[0])
	}
}
