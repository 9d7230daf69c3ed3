package transfer

import (
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

var errOverrun = errors.New("more than the protocol allows")

// bucket is what is left of a rate, in thousandths, so that both languages count alike.
type bucket struct {
	level int64
	at    time.Time // zero before the first use, when it is full
}

// take takes n, and says whether there was as much. It counts whole milliseconds.
func (b *bucket) take(r peer.Rate, n int64, now time.Time) bool {
	if b.at.IsZero() {
		b.level, b.at = 1000*r.Burst, now
	}
	if ms := now.Sub(b.at).Milliseconds(); ms > 0 {
		b.level = min(1000*r.Burst, b.level+ms*r.PerSecond)
		b.at = b.at.Add(time.Duration(ms) * time.Millisecond)
	}
	b.level -= 1000 * n
	return b.level >= 0
}

// give gives n back.
func (b *bucket) give(r peer.Rate, n int64) { b.level = min(1000*r.Burst, b.level+1000*n) }

// allowance is what the other side of a link may say: so much at a time of what it says unasked, and no more answers than it was
// asked for (spec/peer-protocol.md, "Rates").
type allowance struct {
	messages, requests, have, certificates, pings bucket

	// What the other side may still say because of what was said before.
	cancels, promotions     int64
	rejects, answers, pongs int64
	ends                    int64
	strays                  int64
}

// said notes what this side says: n things of a type.
func (a *allowance) said(t peer.Type, n int) {
	switch t {
	case peer.TypeRequest:
		a.rejects += int64(n)
	case peer.TypeCertificateRequest:
		a.answers += int64(n)
	case peer.TypePing:
		a.pongs++
	case peer.TypeSubscribe:
		a.ends++
	}
}

// served notes that a request of the other side has been sent whole: it was worth the asking.
func (a *allowance) served() { a.requests.give(peer.Rates[peer.LimitRequests], 1) }

// heard takes a control message that names n things, and returns the limit that it is beyond, "" if none.
func (a *allowance) heard(t peer.Type, n int, now time.Time) peer.Limit {
	took := func(b *bucket, limit peer.Limit, n int) peer.Limit {
		if b.take(peer.Rates[limit], int64(n), now) {
			return ""
		}
		return limit
	}
	switch t {
	case peer.TypeHave, peer.TypeCertificateRequest, peer.TypePing, peer.TypePromote,
		peer.TypeFollow, peer.TypePlace, peer.TypeSubscribe, peer.TypeUnsubscribe, peer.TypePart, peer.TypeEnough, peer.TypeHold:
		if over := took(&a.messages, peer.LimitMessages, 1); over != "" {
			return over
		}
	}
	switch t {
	case peer.TypeHave:
		return took(&a.have, peer.LimitHave, n)
	case peer.TypeCertificateRequest:
		return took(&a.certificates, peer.LimitCertificates, n)
	case peer.TypePing:
		return took(&a.pings, peer.LimitPings, n)
	case peer.TypeRequest:
		a.cancels += int64(n)
		a.promotions += int64(n)
		return took(&a.requests, peer.LimitRequests, n)
	case peer.TypeEnd:
		return a.owed(&a.ends, n)
	case peer.TypeCancel:
		return a.owed(&a.cancels, n)
	case peer.TypePromote:
		return a.owed(&a.promotions, n)
	case peer.TypeReject:
		return a.owed(&a.rejects, n)
	case peer.TypeCertificate, peer.TypeCertificateNone:
		return a.owed(&a.answers, n)
	case peer.TypePong:
		return a.owed(&a.pongs, n)
	}
	return ""
}

// owed takes n of what there is a reason for; what is beyond counts as stray.
func (a *allowance) owed(left *int64, n int) peer.Limit {
	*left -= int64(n)
	if *left < 0 {
		a.strays -= *left
		*left = 0
	}
	if a.strays > peer.MaxStrays {
		return peer.LimitStrays
	}
	return ""
}

// Overrun is the error that ends a link whose other side says too much.
func Overrun(l peer.Limit) error {
	return &LinkError{Close: peer.CloseLimit, Bye: peer.ByeOverLimit, Limit: l, Cause: errOverrun}
}
