package seed

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/testkit"
)

// oneList is an origin that has one list of certificates.
type oneList []byte

func (o oneList) Get(context.Context, Fetch) (*Fetched, error) { return &Fetched{Data: o}, nil }

func (oneList) Flow(context.Context, Fetch, func([]byte) error) (*Fetched, error) {
	panic("nothing flows")
}

// listOf is a list of so many segments.
func listOf(t *testing.T, segments int) []byte {
	t.Helper()
	key := testkit.PackagerKey(t)
	var entries [][]byte
	for n := range segments {
		data, now := []byte{byte(n)}, time.UnixMilli(1_790_000_000_000)
		raw, err := certificate.Issue(nil, key, certificate.Certificate{
			Alg: certificate.Packager, IssuedAt: now, NotAfter: now.Add(time.Hour), ObjectLength: 1, Length: 1,
			Site: "demo", Name: segment.Name(fmt.Sprintf("/films/%d.ts", n)), Digests: certificate.DigestPieces(data),
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := certificate.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		short, err := c.Short()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, short)
	}
	list, err := certificate.EncodeList(entries)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAListTakesThePlaceOfTheOneBefore: there is room for one and a half of it.
func TestAListTakesThePlaceOfTheOneBefore(t *testing.T) {
	const segments = 10
	list := listOf(t, segments)
	s := newShelves(t, shareOfLists*int64(segments*signedBytes+len(list))*3/2, 10)
	s.site.origin, s.site.conns, s.site.reading = oneList(list), make(chan struct{}, 1), make(chan struct{}, 1)
	ix := newIndex(t.Context(), s.catalog, s.site, "/films/master.m3u8")
	for i, c := range []struct{ path, want string }{
		{"/films/low.m3u8", listLoaded}, {"/films/low.m3u8", listLoaded}, {"/films/high.m3u8", listOverweight}, {"/films/low.m3u8", listLoaded},
	} {
		ix.signed.saw(c.path, [32]byte{byte(i)}, true, s.now)
		entries, outcome := ix.fetchSigned(t.Context(), c.path)
		if ix.signed.put(c.path, entries, s.now); outcome != c.want {
			t.Errorf("load %d, of the list of %s: %s, want %s", i+1, c.path, outcome, c.want)
		}
	}
}

// TestTheListOfAFilmIsAskedForAgain where it could not be had, when a segment is compared with it, and not at once: the film's playlists are not
// loaded again.
func TestTheListOfAFilmIsAskedForAgain(t *testing.T) {
	inStations(t, 1, "#EXT-X-ENDLIST\n", func(t *testing.T, o *stations) {
		const path = "/films/0.m3u8.leeway"
		keys, err := certificate.NewKeySet()
		if err != nil {
			t.Fatal(err)
		}
		o.site.packagers.Store(keys)
		ix, id := o.want("/films"), segment.NewID("demo", "/films/0.ts")
		for _, c := range []struct {
			after time.Duration
			asked int
		}{{0, 1}, {signedAgain / 2, 1}, {signedAgain / 2, 2}, {signedAgain, 2}, {signedAgain, 3}} {
			sleep.For(t.Context(), c.after)
			if c.asked == 3 {
				o.publish(path, listOf(t, 1))
			}
			ix.signedOf(id)
			synctest.Wait()
			if n := o.count(path); n != c.asked {
				t.Errorf("after %v it was asked for %d times", c.after, n)
			}
		}
		if e, _ := ix.signedOf(id); e == nil {
			t.Error("what it has is not known")
		}
	})
}
