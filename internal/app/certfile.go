package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
)

var certificateEndMetric = &metric.Def{
	Name: "leeway_tls_certificate_expiry_timestamp_seconds", Help: "When the TLS certificate of the public port ends, Unix time; 0: the process has none", Kind: metric.Gauge,
}

// endsSoon is before the end of a certificate when the log says so at the start: what renews certificates does so earlier.
const endsSoon = 14 * 24 * time.Hour

// pairEvery is how often a certificate's files are checked, when a client connects.
const pairEvery = 10 * time.Second

// pair is a certificate and its key in files that another program renews.
type pair struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time
	loaded    atomic.Pointer[tls.Certificate]

	looking sync.Mutex  // held while the files are looked at: handshakes go on with what is loaded
	sink    metric.Sink // guarded by looking; nil: not counted yet
	stamps  [2]stamp    // guarded by looking: of the files that loaded came from
	looked  time.Time   // guarded by looking
}

// publicPair is the certificate of a public port; nil where none is named: no TLS there.
func publicPair(cert, key string, log *slog.Logger) (*pair, error) {
	if cert == "" {
		return nil, nil
	}
	return openPair(cert, key, log)
}

// openPair reads the files once, so that what is wrong with them is said at the start.
func openPair(cert, key string, log *slog.Logger) (*pair, error) {
	p := &pair{cert: cert, key: key, log: log, now: time.Now}
	stamps, err := p.changed() // before reading: what is renewed in between is read again then, and not missed
	var loaded tls.Certificate
	if err == nil {
		loaded, err = tls.LoadX509KeyPair(cert, key)
	}
	if err != nil {
		return nil, cmdline.Usage(fmt.Errorf("TLS certificate %s with key %s: %w", cert, key, err))
	}
	p.loaded.Store(&loaded)
	p.looked, p.stamps = p.now(), stamps
	switch left := loaded.Leaf.NotAfter.Sub(p.now()); {
	case left <= 0:
		log.Warn("the TLS certificate has ended: clients refuse it", "file", cert, "ended", loaded.Leaf.NotAfter)
	case left < endsSoon:
		log.Warn("the TLS certificate ends soon; the file is read again when it is renewed", "file", cert, "ends", loaded.Leaf.NotAfter)
	}
	return p, nil
}

// count tells when the certificate ends, now and when it was renewed. Without a certificate nothing is told.
func (p *pair) count(sink metric.Sink) {
	if p == nil {
		return
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	p.sink = sink
	sink.Set(certificateEndMetric, float64(p.loaded.Load().Leaf.NotAfter.Unix()))
}

// ready says that the certificate has ended, or nothing. It looks whether the file was renewed.
func (p *pair) ready() error {
	if p == nil {
		return nil
	}
	c, err := p.get(nil)
	if err == nil && !p.now().Before(c.Leaf.NotAfter) {
		err = fmt.Errorf("the TLS certificate %s ended at %s (renew it; the file is read again by itself)", p.cert, c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}

// config is how a server with this certificate speaks TLS. WebSockets are HTTP/1.1, so nothing else is offered.
func (p *pair) config() *tls.Config {
	return &tls.Config{GetCertificate: p.get, MinVersion: tls.VersionTLS12}
}

// names lists what the certificate is for, without wildcards; nothing where there is none.
func (p *pair) names() []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, name := range p.loaded.Load().Leaf.DNSNames {
		if !strings.HasPrefix(name, "*.") {
			names = append(names, name)
		}
	}
	return names
}

func (p *pair) changed() ([2]stamp, error) {
	cert, err := stampOf(p.cert)
	key, failed := stampOf(p.key)
	return [2]stamp{cert, key}, errors.Join(err, failed)
}

// get implements tls.Config's GetCertificate. One caller looks at the files, and no other waits for that.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p.looking.TryLock() {
		if now := p.now(); now.Sub(p.looked) >= pairEvery {
			p.looked = now
			p.look()
		}
		p.looking.Unlock()
	}
	return p.loaded.Load(), nil
}

// look reads the files again if they have changed. Files that cannot be read, or do not fit each other yet, change nothing: a
// certificate that ends soon is better than none. Under looking.
func (p *pair) look() {
	stamps, err := p.changed()
	if err == nil && stamps != p.stamps {
		var loaded tls.Certificate
		if loaded, err = tls.LoadX509KeyPair(p.cert, p.key); err == nil {
			p.loaded.Store(&loaded)
			p.stamps = stamps
			if p.sink != nil {
				p.sink.Set(certificateEndMetric, float64(loaded.Leaf.NotAfter.Unix()))
			}
			p.log.Info("TLS certificate read again", "file", p.cert)
		}
	}
	if err != nil {
		p.log.Warn("TLS certificate cannot be read again; the one in use stays", "file", p.cert, "error", err)
	}
}
