package certificate

import (
	"fmt"
	"testing"
	"time"
)

func TestRevocations(t *testing.T) {
	var r Revocations
	for _, bad := range []Revocation{{}, {Site: "demo"}, {Site: "demo", Prefix: "a"}, {KeyID: KeyID{1}, Site: "demo", Prefix: "/"}} {
		if r.Add(bad) == nil {
			t.Errorf("%+v was added", bad)
		}
	}
	c := issued(t, 1)
	if err := r.Add(Revocation{Site: "demo", Prefix: "/", MinIssuedAt: time.UnixMilli(t0 + 5)}, Revocation{Site: "demo", Prefix: "/", MinIssuedAt: time.UnixMilli(1)}); err != nil || !r.Withdraws(c) {
		t.Errorf("an older revocation has lifted a later one: %v", err)
	}
	if list := r.List(); len(list) != 1 || list[0].MinIssuedAt.UnixMilli() != t0+5 {
		t.Errorf("list is %+v", list)
	}
	for i := range MaxRevocations + 1 {
		err := r.Add(Revocation{KeyID: KeyID{1, byte(i >> 8), byte(i)}})
		if full := i >= MaxRevocations-1; (err != nil) != full {
			t.Fatalf("revocation %d: %v", i, err)
		}
	}
	if err := r.Add(Revocation{KeyID: KeyID{1}}); err != nil || len(r.List()) != MaxRevocations {
		t.Errorf("one that is known: %v; %d listed", err, len(r.List()))
	}
	var none *Revocations
	if none.Withdraws(c) || none.List() != nil {
		t.Error("nil withdraws")
	}
}

func TestTombstones(t *testing.T) {
	now, end := time.UnixMilli(t0), time.UnixMilli(t0+3600000)
	tomb := Tombstone("demo", "/media/", end)
	var r Revocations
	if err := r.Add(tomb); err != nil {
		t.Fatal(err)
	}
	least := r.Since("demo", film)
	for at, buried := range map[time.Time]bool{now: true, end.Add(-time.Millisecond): true, end: false, end.Add(time.Hour): false} {
		if Buried(least, at) != buried {
			t.Errorf("%s after: buried %v", at.Sub(now), !buried)
		}
	}
	if Buried(r.Since("demo", "/other/seg-1.ts"), now) || Buried(r.Since("other", film), now) {
		t.Error("what is not below the prefix is buried")
	}
	// A purge signed by a clock that is ahead is none.
	if Buried(now.Add(MaxSkew), now) || Ended(least, end.Add(MaxLife), MaxLife) || !Ended(least, end.Add(MaxLife+2*MaxSkew+1), MaxLife) {
		t.Error("a tombstone is forgotten when all that it withdraws has expired")
	}
}

// TestAPurgeOutlivesWhatAPackagerSigned: its certificates live for up to 31 days, those of seeds for 6 hours.
func TestAPurgeOutlivesWhatAPackagerSigned(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	r.Packaged("films")
	for _, site := range []string{"films", "demo"} {
		if err := r.Add(Revocation{Site: site, Prefix: "/", MinIssuedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	signed := &Certificate{Site: "films", Name: "/a", IssuedAt: now.Add(-time.Millisecond), Alg: Packager}
	r.Forget(now.Add(MaxLife + MaxSkew + time.Millisecond))
	if len(r.List()) != 1 || !r.Withdraws(signed) {
		t.Fatalf("%v are left", r.List())
	}
	r.Forget(now.Add(MaxPackaged + MaxSkew))
	if !r.Withdraws(signed) {
		t.Error("forgotten while a packager's certificate from before may be valid")
	}
	r.Forget(now.Add(MaxPackaged + MaxSkew + time.Millisecond))
	if r.Withdraws(signed) || len(r.List()) != 0 {
		t.Error("never forgotten")
	}
}

// TestRoomIsMadeByTheOldest: what withdraws certificates of packagers alone gives way to a new purge, what withdraws a seed's does not.
func TestRoomIsMadeByTheOldest(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	r.Packaged("films")
	for i, ago := range []time.Duration{2 * MaxLife, 3 * MaxLife, MaxLife, 0} {
		if err := r.Add(Revocation{Site: "films", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now.Add(-ago)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"/0/", "/2/", "/2/"} {
		r.MakeRoom(now)
		if list := r.List(); list[0].Prefix != want {
			t.Errorf("%v are left", list)
		}
	}
	if n := len(r.List()); n != 2 {
		t.Errorf("%d are left", n)
	}
}

// TestEndedRevocationsMakeRoom: a process that lives for years hears more purges than a set holds.
func TestEndedRevocationsMakeRoom(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	r := &Revocations{}
	key := Revocation{KeyID: KeyID{1}}
	if err := r.Add(key); err != nil {
		t.Fatal(err)
	}
	for i := range MaxRevocations - 1 {
		if err := r.Add(Revocation{Site: "demo", Prefix: fmt.Sprintf("/%d/", i), MinIssuedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := Revocation{Site: "demo", Prefix: "/fresh/", MinIssuedAt: now.Add(7 * time.Hour)}
	if r.Add(fresh) == nil {
		t.Fatal("more than a set holds was taken in")
	}
	r.Forget(now.Add(MaxLife + MaxSkew))
	if r.Holds(fresh) || len(r.List()) != MaxRevocations {
		t.Errorf("%d are left while they may still withdraw something", len(r.List()))
	}
	r.Forget(now.Add(MaxLife + MaxSkew + time.Millisecond))
	if err := r.Add(fresh); err != nil || len(r.List()) != 2 || !r.Holds(fresh) || !r.Holds(key) {
		t.Errorf("%v, %d are left", err, len(r.List()))
	}
	older := fresh
	if older.MinIssuedAt = now; !r.Holds(older) {
		t.Error("a later purge of the same prefix withdraws more")
	}
	if since := r.Since("demo", "/fresh/1.ts"); !since.Equal(fresh.MinIssuedAt) || r.Since("demo", "/other/").UnixMilli() != 0 {
		t.Errorf("since %s", since)
	}
}
