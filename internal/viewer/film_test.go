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
	sent   map[string]int                          // requests for segments, by path
	bytes  int64                                   // of segments
	broken bool                                    // every request fails
	outage bool                                    // every request for a segment fails
	hangs  time.Time                               // until then nothing comes, and no error either
	live   *broadcast                              // nil: all of it is there
	heard  func(from *node, path string, size int) // hears of each request for a segment; nil: nothing does
}

// newFilm makes renditions of n segments, each of so many bytes.
func newFilm(w *world, n int, duration time.Duration, sizes ...int) *film {
	return newVaried(w, n, duration, []float64{1}, sizes...)
}

// noise is what films are cut from.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
})

// newVaried makes renditions of n segments, of a size at most, and of as much of it as the pattern says in turn.
func newVaried(w *world, n int, duration time.Duration, pattern []float64, sizes ...int) *film {
	rules, err := site.New(site.Config{Name: "test", Hosts: []string{"film.test"}})
	if err != nil {
		panic(err)
	}
	f := &film{node: newNode(w, "origin", 1e9, 1e9), files: map[string][]byte{}, sent: map[string]int{}, rules: rules}
	master, from := "#EXTM3U\n", 0
	for i, size := range sizes {
		bandwidth := int64(float64(size) * 8 / duration.Seconds())
		master += fmt.Sprintf("#EXT-X-STREAM-INF:BANDWIDTH=%d,RESOLUTION=1x%d\n%d/index.m3u8\n", bandwidth, i, i)
		list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:%d\n", int(duration.Seconds()+1))
		for s := range n {
			list += fmt.Sprintf("#EXTINF:%.3f,\nseg-%d.ts\n", duration.Seconds(), s)
			bytes := int(pattern[s%len(pattern)] * float64(size))
			from = (from + 4099) % (len(noise()) - bytes)
			f.files[fmt.Sprintf("/media/film/%d/seg-%d.ts", i, s)] = noise()[from : from+bytes : from+bytes]
		}
		f.files[fmt.Sprintf("/media/film/%d/index.m3u8", i)] = []byte(list + "#EXT-X-ENDLIST\n")
	}
	f.files["/media/film/master.m3u8"] = []byte(master)
	return f
}

// apart makes a sound that is apart of the last rendition.
func (f *film) apart() {
	master := string(f.files["/media/film/master.m3u8"])
	at := strings.LastIndex(master, "#EXT-X-STREAM-INF")
	sound := master[at:]
	sound = sound[strings.Index(sound, "\n")+1:]
	master = strings.ReplaceAll(master[:at], "RESOLUTION", "AUDIO=\"a\",RESOLUTION")
	f.files["/media/film/master.m3u8"] = []byte(master + "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"" + strings.TrimSpace(sound) + "\"\n")
}

// path of a URL.
func path(url string) string { return strings.TrimPrefix(url, "http://film.test") }

// get is what the origin has under a path now.
func (f *film) get(path string) ([]byte, bool) {
	if f.live != nil {
		if data, is := f.live.get(path); is {
			return data, data != nil
		}
	}
	data, ok := f.files[path]
	return data, ok
}

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
	w.After(3*o.film.node.away(o.node), func() { // connection and request
		data, ok := o.film.get(path(f.URL))
		switch {
		case over:
			return
		case o.film.broken || !ok || o.film.outage && strings.HasSuffix(f.URL, ".ts"):
			end(Fetched{}, errors.New("the origin does not answer"))
			return
		}
		if f.Ranged {
			data = data[f.First : f.Last+1]
		}
		if f.MaxBytes > 0 && int64(len(data)) > f.MaxBytes {
			end(Fetched{}, ErrTooLarge)
			return
		}
		if strings.HasSuffix(f.URL, ".ts") {
			o.film.sent[path(f.URL)]++
			o.film.bytes += int64(len(data))
			if o.film.heard != nil {
				o.film.heard(o.node, path(f.URL), len(data))
			}
		}
		o.transfer(data, func() bool { return over }, progress, func(took time.Duration) {
			end(Fetched{Data: data, URL: f.URL, Transfer: took}, nil)
		})
	})
	return func() { end(Fetched{}, errors.New("canceled")) }
}

// chunk is what a transfer is cut into.
const chunk = 16 << 10

// transfer sends data to the node with a window that fills the path and half a usual queue, as TCP would.
func (o origin) transfer(data []byte, over func() bool, progress func(int64), done func(took time.Duration)) {
	w, from, away := o.node.w, o.film.node, o.film.node.away(o.node)
	begin, window := w.now, chunk+int(o.node.down.Rate*(2*away+50*time.Millisecond).Seconds())
	sent, came := 0, 0
	var pump func()
	pump = func() {
		if wait := o.film.hangs.Sub(w.now); wait > 0 {
			w.After(wait, pump)
			return
		}
		for sent < len(data) && sent-came < window && !over() {
			n := min(chunk, len(data)-sent)
			sent += n
			from.send(o.node, n, func() {}, func() {
				if came += n; over() {
					return
				}
				progress(int64(came))
				if came == len(data) {
					done(w.now.Sub(begin) - away)
					return
				}
				w.After(away, pump)
			})
		}
	}
	pump()
}

// correct says whether a result is byte for byte what the origin has.
func (f *film) correct(r *Result) bool {
	return bytes.Equal(bytes.Join(r.Pieces, nil), f.files[path(r.URL)])
}

// testKey signs certificates, and packagerKey lists; made from a seed, so that every run has the same.
var (
	testKey     = sync.OnceValue(func() *ecdsa.PrivateKey { return keyFrom(7) })
	packagerKey = sync.OnceValue(func() *ecdsa.PrivateKey { return keyFrom(9) })
)

func keyFrom(seed byte) *ecdsa.PrivateKey {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), append(make([]byte, 31), seed))
	if err != nil {
		panic(err)
	}
	return key
}

// names of the film's segments by ID.
func (f *film) names() map[segment.ID]segment.Name {
	out := map[segment.ID]segment.Name{}
	for p := range f.files {
		out[segment.NewID("test", segment.WholeName(p))] = segment.WholeName(p)
	}
	return out
}
