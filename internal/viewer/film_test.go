package viewer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
)

const filmURL = "http://film.test/media/film/master.m3u8"

// film is a film of random bytes on an origin of the world.
type film struct {
	node   *node
	files  map[string][]byte // by path
	rules  *site.Site
	sent   map[string]int // requests for segments, by path
	bytes  int64          // of segments
	broken bool           // every request fails
}

// newFilm makes renditions of n segments, each of so many bytes.
func newFilm(w *world, n int, duration time.Duration, sizes ...int) *film {
	rules, err := site.New(site.Config{Name: "test", Hosts: []string{"film.test"}})
	if err != nil {
		panic(err)
	}
	f := &film{node: &node{w: w, name: "origin", up: 1e9, down: 1e9}, files: map[string][]byte{}, sent: map[string]int{}, rules: rules}
	random := rand.NewChaCha8([32]byte{1})
	master := "#EXTM3U\n"
	for i, size := range sizes {
		bandwidth := int64(float64(size) * 8 / duration.Seconds())
		master += fmt.Sprintf("#EXT-X-STREAM-INF:BANDWIDTH=%d,RESOLUTION=1x%d\n%d/index.m3u8\n", bandwidth, i, i)
		list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:%d\n", int(duration.Seconds()+1))
		for s := range n {
			list += fmt.Sprintf("#EXTINF:%.3f,\nseg-%d.ts\n", duration.Seconds(), s)
			b := make([]byte, size)
			_, _ = random.Read(b)
			f.files[fmt.Sprintf("/media/film/%d/seg-%d.ts", i, s)] = b
		}
		f.files[fmt.Sprintf("/media/film/%d/index.m3u8", i)] = []byte(list + "#EXT-X-ENDLIST\n")
	}
	f.files["/media/film/master.m3u8"] = []byte(master)
	return f
}

// path of a URL.
func path(url string) string { return strings.TrimPrefix(url, "http://film.test") }

// origin is how one node gets the film.
type origin struct {
	film *film
	node *node
}

// Get implements Origin.
func (o origin) Get(f Fetch, progress func(int64), done func(Fetched, error)) (cancel func()) {
	w, over := o.node.w, false
	end := func(got Fetched, err error) {
		if !over {
			over = true
			done(got, err)
		}
	}
	w.After(3*oneWay, func() { // connection and request
		data, ok := o.film.files[path(f.URL)]
		switch {
		case over:
			return
		case o.film.broken || !ok:
			end(Fetched{}, errors.New("the origin does not answer"))
			return
		}
		if f.Ranged {
			data = data[f.First : f.Last+1]
		}
		if strings.HasSuffix(f.URL, ".ts") {
			o.film.sent[path(f.URL)]++
			o.film.bytes += int64(len(data))
		}
		begin := w.now
		o.film.node.send(o.node, len(data), func() {}, func() {
			progress(int64(len(data)))
			end(Fetched{Data: data, URL: f.URL, Transfer: w.now.Sub(begin) - oneWay}, nil)
		})
	})
	return func() { end(Fetched{}, errors.New("canceled")) }
}

// correct says whether a result is byte for byte what the origin has.
func (f *film) correct(r *Result) bool {
	return bytes.Equal(bytes.Join(r.Pieces, nil), f.files[path(r.URL)])
}

// testKey signs certificates; made from a seed, so that every run has the same.
var testKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	d := make([]byte, 32)
	d[31] = 7
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d)
	if err != nil {
		panic(err)
	}
	return key
})

// names of the film's segments by ID.
func (f *film) names() map[segment.ID]segment.Name {
	out := map[segment.ID]segment.Name{}
	for p := range f.files {
		out[segment.NewID("test", segment.WholeName(p))] = segment.WholeName(p)
	}
	return out
}
