package seed

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Lives of certificates (spec/certificate.md).
const (
	lifeVOD   = certificate.MaxLife
	lifeLive  = 10 * time.Minute
	maxLedger = 65536
)

// errContradicts says that a segment has other bytes than a certificate that is still valid.
var errContradicts = errors.New("the bytes differ from what is certified")

// issuer signs certificates with the seed's key, and remembers what it certified: as long as a certificate is valid, other content
// under the same name gets none, for two valid certificates would withdraw the name at every viewer.
type issuer struct {
	dir       string
	sites     []string
	takedowns *takedowns
	verifiers *verifiers
	sink      metric.Sink
	log       *slog.Logger
	now       func() time.Time

	rotating sync.Mutex // held while the key is replaced
	failed   bool       // guarded by rotating: it could not be replaced

	mu     sync.Mutex
	signer *signer               // guarded by mu
	ledger map[segment.ID]issued // guarded by mu
	swept  time.Time             // guarded by mu: when what has ended was dropped from it last
}

// issued is what the seed certified.
type issued struct {
	cert    certificate.Certificate // without digests
	content [32]byte
}

// standing is under what a segment is certified: the time of its last purge, and the key.
type standing struct {
	purgedMs int64
	signer   *signer
}

// openIssuer reads the signing key of a data directory, or makes it. One that is revoked is replaced.
func openIssuer(dir string, sites []string, t *takedowns, v *verifiers, sink metric.Sink, log *slog.Logger, now func() time.Time) (*issuer, error) {
	signer, err := loadSigner(dir)
	if err == nil && t.withdrawsKey(signer.id) {
		signer, err = makeSigner(dir)
	}
	if err != nil {
		return nil, err
	}
	i := &issuer{dir: dir, sites: sites, takedowns: t, verifiers: v, sink: sink, log: log, now: now, signer: signer, ledger: map[segment.ID]issued{}}
	if err := i.own(signer); err != nil {
		return nil, fmt.Errorf("seed: signing key: %w", err)
	}
	log.Info("seed signs", "key", signer.id.String()) // what leeway purge --key asks for
	return i, nil
}

func (i *issuer) own(s *signer) error {
	return i.verifiers.own(certificate.VerifyKey{KeyID: s.id, Key: s.point, Sites: i.sites})
}

func (i *issuer) key() *signer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signer
}

// signs says whether certificates of the seed's key hold.
func (i *issuer) signs() bool { return !i.takedowns.withdrawsKey(i.key().id) }

// rotate replaces the signing key if it is revoked, and is not being replaced. What it signed is withdrawn already. A revocation does not
// lock the seed out: an operator that trusts its machine no more takes it off the bus.
func (i *issuer) rotate() (rotated bool) {
	if !i.rotating.TryLock() {
		return false
	}
	defer i.rotating.Unlock()
	if i.signs() {
		return false
	}
	fresh, err := makeSigner(i.dir)
	if err == nil {
		err = i.own(fresh)
	}
	if err != nil {
		if !i.failed {
			i.log.Error("this seed's signing key is revoked and no other could be made: it certifies nothing, and goes on trying", "error", err)
		}
		i.failed = true
		return false
	}
	i.failed = false
	i.mu.Lock()
	old := i.signer
	i.signer = fresh
	i.mu.Unlock()
	i.log.Warn("this seed's signing key was revoked; it has another", "revoked", old.id.String(), "key", fresh.id.String())
	return true
}

// judge says what becomes of a certificate of the store. An expired one still says which validator the bytes had: they may
// turn out unchanged. One from the future says that this machine does not know the time yet.
func (i *issuer) judge(c *certificate.Certificate) keeping {
	switch i.verifiers.verify(c, c.Site, c.Name, i.now()) {
	case certificate.Valid, certificate.Expired, certificate.FromTheFuture:
		if !i.takedowns.withdraws(c) {
			return good
		}
	case certificate.UnknownKey:
		return unknown
	}
	return bad
}

// good says whether a certificate may be handed out.
func (i *issuer) good(c *certificate.Certificate) bool {
	return i.now().Before(c.NotAfter) && !i.takedowns.withdraws(c)
}

// ending says whether it is time for a new certificate.
func (i *issuer) ending(c *certificate.Certificate) bool {
	return c.NotAfter.Sub(i.now()) < c.NotAfter.Sub(c.IssuedAt)/4
}

// refuses says why a segment gets no certificate now whatever the origin has; is is false where nothing speaks against one.
func (i *issuer) refuses(site string, name segment.Name) (why peer.NoneReason, is bool) {
	if why, is = i.takedowns.refuses(site, name); !is && !i.signs() {
		return peer.NoneWithdrawn, true
	}
	return why, is
}

func (i *issuer) standing(site string, name segment.Name) standing {
	return standing{i.takedowns.since(site, name).UnixMilli(), i.key()}
}

// issue signs a certificate for bytes that were just fetched, or just found unchanged. errContradicts: another content is certified.
func (i *issuer) issue(site string, r *ref, by *signer, issuedAt time.Time, got *Fetched) (*held, error) {
	life, validator := lifeVOD, got.Validator
	if r.live {
		life = lifeLive
	}
	if len(validator) > 255 {
		validator = ""
	}
	c := certificate.Certificate{
		KeyID: by.id, IssuedAt: issuedAt, NotAfter: issuedAt.Add(life), ObjectLength: got.ObjectLength, Length: int64(len(got.Data)),
		Site: site, Name: r.seg.Name, Validator: validator, Digests: certificate.DigestPieces(got.Data),
	}
	var cert *certificate.Certificate
	err := errContradicts
	if i.record(r.id, c, contentOf(&c)) {
		var raw []byte
		if raw, err = certificate.Issue(rand.Reader, by.key, c); err == nil {
			cert, err = certificate.Parse(raw)
		}
	}
	if err != nil {
		i.sink.Add(mCertificates, 1, site, "refused")
		return nil, err
	}
	i.sink.Add(mCertificates, 1, site, "issued")
	return newHeld(r.id, cert, got.Data), nil
}

// record notes that a certificate is issued, unless another one with other content still holds.
func (i *issuer) record(id segment.ID, c certificate.Certificate, content [32]byte) bool {
	c.Digests = nil
	now := i.now()
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, ok := i.ledger[id]; ok && old.content != content && now.Before(old.cert.NotAfter) && !i.takedowns.withdraws(&old.cert) {
		return false
	}
	// Certificates of a live stream end all the time.
	if len(i.ledger) >= maxLedger || now.Sub(i.swept) >= lifeLive {
		i.prune(now)
		i.swept = now
	}
	i.ledger[id] = issued{c, content}
	return true
}

// learn notes the certificate of what is held, if there is none: a run before has issued it, and it still holds.
func (i *issuer) learn(h *held) {
	c := *h.cert
	c.Digests = nil
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.ledger[h.id]; !known && len(i.ledger) < maxLedger {
		i.ledger[h.id] = issued{c, h.sum}
	}
}

// disown forgets a certificate that no viewer has seen.
func (i *issuer) disown(id segment.ID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.ledger, id)
}

// prune drops what has ended, and some of the rest if that is not enough: first what ends soon, as what is live does. A low-latency stream
// has many certificates, and few viewers still have use for those of a minute ago. Under mu.
func (i *issuer) prune(now time.Time) {
	for id, e := range i.ledger {
		if !now.Before(e.cert.NotAfter) {
			delete(i.ledger, id)
		}
	}
	for _, within := range []time.Duration{lifeLive, math.MaxInt64} {
		for id, e := range i.ledger {
			if len(i.ledger) < maxLedger*3/4 {
				return
			}
			if e.cert.NotAfter.Sub(now) <= within {
				delete(i.ledger, id)
			}
		}
	}
}

func contentOf(c *certificate.Certificate) [32]byte {
	h := sha256.New()
	for _, d := range c.Digests {
		h.Write(d[:])
	}
	return [32]byte(h.Sum(nil))
}
