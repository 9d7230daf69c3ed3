package access

import "time"

// sweepEvery is how often Buckets look for keys that they need not know any more, while they are full.
const sweepEvery = time.Second

// Buckets are token buckets by key: what has no price yet is charged to a key. Keys whose bucket is full again are forgotten, and
// keys beyond Most share one bucket. They are not safe for use from several goroutines.
type Buckets[K comparable] struct {
	Rate  float64 // tokens a second
	Burst float64 // tokens at once
	Most  int     // keys that are known at a time

	known map[K]bucket
	rest  bucket // of keys beyond Most
	swept time.Time
}

// bucket is how many tokens have been taken of one, as of a time.
type bucket struct {
	taken float64
	at    time.Time
}

// Take takes n tokens of a key; false says that it has not so many.
func (b *Buckets[K]) Take(key K, n float64, now time.Time) bool {
	if b.known == nil {
		b.known = map[K]bucket{}
	}
	of, known := b.known[key]
	if !known && len(b.known) >= b.Most && !b.sweep(now) {
		return b.take(&b.rest, n, now)
	}
	ok := b.take(&of, n, now)
	b.known[key] = of
	return ok
}

// Len is how many keys are known.
func (b *Buckets[K]) Len() int { return len(b.known) }

func (b *Buckets[K]) take(of *bucket, n float64, now time.Time) bool {
	of.taken, of.at = b.left(*of, now), now
	if of.taken+n > b.Burst {
		return false
	}
	of.taken += n
	return true
}

// left is what is still taken of a bucket.
func (b *Buckets[K]) left(of bucket, now time.Time) float64 {
	return max(0, of.taken-b.Rate*max(0, now.Sub(of.at).Seconds()))
}

// sweep makes room; false says that there is none.
func (b *Buckets[K]) sweep(now time.Time) bool {
	if since := now.Sub(b.swept); since >= 0 && since < sweepEvery {
		return false
	}
	b.swept = now
	for key, of := range b.known {
		if b.left(of, now) == 0 {
			delete(b.known, key)
		}
	}
	return len(b.known) < b.Most
}
