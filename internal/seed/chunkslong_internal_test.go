package seed

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// bounded is take, which gets no more than a fetch may bring.
func bounded(f Fetch, length *int, take func([]byte) error) func([]byte) error {
	return func(b []byte) error {
		if *length += len(b); int64(*length) > f.MaxBytes {
			return &FetchError{Outcome: OutcomeTooLarge}
		}
		return take(b)
	}
}

// longChunk is one of so many bytes.
func longChunk(n int) []byte {
	b := make([]byte, n)
	copy(b, smallChunk(0)[:16])
	binary.BigEndian.PutUint32(b[8:], uint32(n-8))
	return b
}

// TestASegmentIsAsLongAsACertificateCoversAtMost: of a longer one there is no end. No chunk is told that is too long to be pushed, nor one
// behind it.
func TestASegmentIsAsLongAsACertificateCoversAtMost(t *testing.T) {
	const most, half = parts.MaxPart, segment.MaxLength / 4
	for name, c := range map[string]struct {
		chunks []int
		told   string
	}{
		"the longest":             {[]int{half, half, half, half}, "1.0 1.1 1.2 1.3 1.255"},
		"a byte more":             {[]int{half, half, half, half - 17, 18}, "1.0 1.1 1.2 1.3"},
		"the longest chunk":       {[]int{most, 17}, "1.0 1.1 1.255"},
		"a chunk of a byte more":  {[]int{17, most + 1, 17}, "1.0 1.255"},
		"all of it is one chunk":  {[]int{segment.MaxLength}, "1.255"},
		"the last one is as long": {[]int{half, half, most}, "1.0 1.1 1.2 1.255"},
	} {
		onChunks(t, func(d *chunkDesk) {
			d.serves(func(_ context.Context, s int, take func([]byte) error) error {
				if s > 1 {
					return errNotYet
				}
				for _, n := range c.chunks {
					for part := range slices.Chunk(longChunk(n), 1<<16) {
						if err := take(part); err != nil {
							return err
						}
					}
				}
				return nil
			})
			d.until(4.05)
			d.wants(name, c.told)
			ended := strings.HasSuffix(c.told, "255")
			if h := d.supply.shelf.cached(segment.NewID("demo", "/film/1.m4s")); (h != nil) != ended {
				t.Errorf("%s: held %v", name, h != nil)
			}
			if n := d.title.site.growing.Load(); n != 0 {
				t.Errorf("%s: %d bytes count as growing", name, n)
			}
		})
	}
}

// TestSegmentsThatAreMadeHaveSoMuchMemory: at the bound nothing more is read of a segment, and what it had is given back.
func TestSegmentsThatAreMadeHaveSoMuchMemory(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		site := d.title.site
		d.serves(func(_ context.Context, s int, take func([]byte) error) error {
			if err := take(smallChunk(byte(s))); err != nil {
				return err
			}
			return take(smallChunk(byte(s)))
		})
		others := int64(maxGrowing - 2*17)
		site.growing.Store(others)
		d.until(4.05)
		d.wants("just enough", "1.0 1.1 1.255")
		others++
		site.growing.Store(others)
		d.until(8.05)
		d.wants("a byte too few", "2.0")
		d.counted(partFailed, 1)
		if n := site.growing.Load(); n != others {
			t.Errorf("%d bytes count as growing, of others %d", n, others)
		}
	})
}

// TestAStreamWhoseSegmentWasTooLongRests: what is told of a segment without an end viewers have twice. After a while the seed tries again.
func TestAStreamWhoseSegmentWasTooLongRests(t *testing.T) {
	onChunks(t, func(d *chunkDesk) {
		d.serves(func(_ context.Context, s int, take func([]byte) error) error {
			if s > 1 {
				return take(smallChunk(1))
			}
			for range 3 {
				if err := take(longChunk(parts.MaxPart)); err != nil {
					return err
				}
			}
			return nil
		})
		d.until(4.05)
		d.wants("until it is too long", "1.0 1.1")
		for at := 8.05; at < 4*(longRest+2); at += 4 {
			d.until(at)
			d.s.heard(d.viewerLink, peer.Follow{Stream: d.id, On: true})
		}
		d.wants("while it rests", "")
		d.until(4*(longRest+2) + 0.05)
		d.wants("after that", "34.0 34.255")
		d.counted(partIdle, longRest)
	})
}
