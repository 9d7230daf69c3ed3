package seed

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
)

func testSite(t testing.TB) *site.Site {
	t.Helper()
	s, err := site.New(site.Config{
		Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com",
		Key: site.KeyRule{IgnoreQuery: []string{"session"}, Path: "/t/{}/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type shop struct {
	key  *ecdsa.PrivateKey
	dir  string
	rec  *testkit.Recorder
	deny func(*certificate.Certificate) bool
}

func newShop(t testing.TB) *shop {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{key: key, dir: t.TempDir(), rec: &testkit.Recorder{}, deny: func(*certificate.Certificate) bool { return false }}
}

func (s *shop) open(t testing.TB, memory, onDisk int64) *store {
	t.Helper()
	d, err := openDisk(s.dir, onDisk, func(c *certificate.Certificate) keeping {
		if s.deny(c) {
			return bad
		}
		return good
	}, s.rec, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return newStore(d, memory, s.rec)
}

func (s *shop) held(t testing.TB, i, size int) *held {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data)
	name := segment.WholeName(fmt.Sprintf("/film/%d.ts", i))
	raw, err := certificate.Issue(rand.Reader, s.key, certificate.Certificate{
		IssuedAt: time.Now(), NotAfter: time.Now().Add(time.Hour), ObjectLength: int64(size), Length: int64(size),
		Site: "demo", Name: name, Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := certificate.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return newHeld(segment.NewID("demo", name), c, data)
}

func TestStoreIsBoundedInBothTiers(t *testing.T) {
	s := newShop(t)
	st := s.open(t, 50_000, 100_000)
	var all []*held
	for i := range 10 {
		h := s.held(t, i, 20_000)
		all = append(all, h)
		if err := st.put(h); err != nil {
			t.Fatal(err)
		}
		st.get(all[0].id) // the first stays in use
	}
	if st.bytes > 50_000 || st.disk.bytes > 100_000 {
		t.Errorf("%d bytes in memory, %d on disk", st.bytes, st.disk.bytes)
	}
	files, _ := os.ReadDir(s.dir)
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
	if st.get(all[0].id) == nil || st.get(all[9].id) == nil || st.get(all[3].id) != nil {
		t.Error("it is not the least recently used that goes")
	}
	if s.rec.Value(mEvictions, "disk") != 6 || s.rec.Value(mEvictions, "memory") == 0 {
		t.Errorf("evictions: %v on disk, %v in memory", s.rec.Value(mEvictions, "disk"), s.rec.Value(mEvictions, "memory"))
	}
	again := s.open(t, 50_000, 45_000) // a restart with less room
	if again.disk.bytes > 45_000 {
		t.Errorf("%d bytes on disk", again.disk.bytes)
	}
}

func TestWithdrawnSegmentsLeaveBothTiers(t *testing.T) {
	s := newShop(t)
	st := s.open(t, 30_000, 1<<20)
	a, b := s.held(t, 1, 20_000), s.held(t, 2, 20_000)
	_ = st.put(a)
	_ = st.put(b) // pushes a out of memory
	gone := st.withdraw(func(c *certificate.Certificate) bool { return c.Name == a.cert.Name })
	if !slices.Contains(gone, a.id) || slices.Contains(gone, b.id) || st.get(a.id) != nil || st.get(b.id) == nil {
		t.Errorf("gone: %v", gone)
	}
	st = s.open(t, 30_000, 1<<20)
	s.deny = func(*certificate.Certificate) bool { return true }
	if st.get(b.id) != nil || s.rec.Value(mCorrupt) != 1 {
		t.Error("a file whose certificate is not accepted was loaded")
	}
}

func FuzzStoreFile(f *testing.F) {
	s := newShop(f)
	st := s.open(f, 1<<20, 1<<20)
	h := s.held(f, 1, 40_000)
	_ = st.put(h)
	files, _ := os.ReadDir(s.dir)
	good, err := os.ReadFile(s.dir + "/" + files[0].Name())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := st.disk.verify(h.id, b)
		if err == nil && (got.cert.Name != h.cert.Name || !slices.Equal(certificate.DigestPieces(got.data), got.cert.Digests)) {
			t.Error("a file passed whose bytes are not those of its certificate")
		}
	})
}

func TestBudgetsTakeFromAllOrNone(t *testing.T) {
	now := time.Unix(1000, 0)
	rec := &testkit.Recorder{}
	site, session := newScope("site", 1_000_000, 0), newSessionScope(1.5, 1_000_000)
	b := &budget{mu: &sync.Mutex{}, scopes: []*scope{newScope("seed", 0, 0), site, session}, now: func() time.Time { return now }, sink: rec}
	taken := 0
	for {
		wait, ok := b.Take(10_000)
		if !ok {
			if wait <= 0 || wait > longestWait {
				t.Fatalf("wait %s", wait)
			}
			break
		}
		taken += 10_000
	}
	if taken != 250_000 { // a quarter of a second at once
		t.Errorf("took %d bytes at once from 1 MB/s", taken)
	}
	if load := site.load(now); load < 990 {
		t.Errorf("load %d‰ of a spent rate", load)
	}
	left := session.quota.TokensAt(now)
	for session.quota.TokensAt(now) >= 10_000 {
		now = now.Add(10 * time.Millisecond)
		if _, ok := b.Take(10_000); !ok {
			t.Fatal("a rate that was waited for refuses")
		}
	}
	if wait, ok := b.Take(10_000); ok || wait != 0 || rec.Value(mRefusals, "session") != 1 {
		t.Errorf("a session that had %.0f bytes ahead of its time is not refused", left)
	}
}

// TestSpentDayIsFullLoad: a seed that may not send any more must not be introduced.
func TestSpentDayIsFullLoad(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, s := range []*scope{newScope("seed", 0, 1<<20), newScope("seed", 1<<30, 1<<20)} {
		if load := s.load(now); load != 0 {
			t.Errorf("load %d‰ of an untouched day", load)
		}
		s.quota.AllowN(now, 1<<20-1000)
		if load := s.load(now); load != 1000 {
			t.Errorf("load %d‰ of a day that is spent", load)
		}
		if load := s.load(now.Add(12 * time.Hour)); load != 0 {
			t.Errorf("load %d‰ twelve hours later", load)
		}
	}
}

func TestWhatIsTakenForGrantedIsNotLogged(t *testing.T) {
	var out bytes.Buffer
	r, log := newReach(nil, nil), slog.New(slog.NewTextHandler(&out, nil))
	for range 30 { // which of two that are ready comes first is chance
		r.await(t.Context(), log, func(int) int { return 0 })
	}
	if out.Len() > 0 {
		t.Errorf("logs:\n%s", &out)
	}
}
