package seed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// revokedFile keeps revocations and switches: a message of the bus a line. Trackers keep them in memory only, and a cluster
	// that starts anew has them from its seeds.
	revokedFile = "revoked.jsonl"
	// lineBytes is what the revocations of one line, or of one message, take.
	lineBytes = bus.MaxMessage / 4
)

// takedowns is what is not to be shared any more: what is revoked, and which sites are off. It is on disk, too.
type takedowns struct {
	path    string
	log     *slog.Logger
	now     func() time.Time
	keeping sync.Mutex  // held while the file is written
	unkept  atomic.Bool // it could not be written

	mu         sync.Mutex
	revoked    *certificate.Revocations // guarded by mu
	switches   cluster.Switches         // guarded by mu
	configured map[string]bool          // guarded by mu: the seed's sites; true: the configuration has the site off
}

// openTakedowns reads what was revoked and switched before this run. A file that cannot be read keeps the seed from starting:
// without it, what was taken down would be shared again.
func openTakedowns(dir string, sites map[string]bool, packaged []string, log *slog.Logger, now func() time.Time) (*takedowns, error) {
	t := &takedowns{path: filepath.Join(dir, revokedFile), log: log, now: now, revoked: &certificate.Revocations{}, configured: sites}
	for _, name := range packaged { // before the file is read: purges of such a site are in force for longer
		t.packages(name)
	}
	text, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("seed: revocations: %w", err)
	}
	for line := range bytes.Lines(text) {
		var m bus.RevokeMessage
		if err := bus.Decode(line, &m); err != nil {
			return nil, fmt.Errorf("seed: revocations in %s: %w (remove it to start without; what was purged may be certified again then)", t.path, err)
		}
		t.add(m.Revocations, m.Switches)
	}
	return t, nil
}

// domain is a revocation as certificates are judged by it.
func domain(r signal.Revocation) certificate.Revocation {
	v := certificate.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: time.UnixMilli(r.MinIssuedAt)}
	if len(r.KeyID) == len(v.KeyID) {
		v.KeyID = certificate.KeyID(r.KeyID)
	}
	return v
}

// add notes what is new of revocations and switches; trackers say them again and again.
func (t *takedowns) add(list []signal.Revocation, switches []bus.Switch) (revoked, switched bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range list {
		v := domain(r)
		if t.revoked.Holds(v) || t.revoked.Ended(v, now) {
			continue
		}
		revoked = true
		err := t.revoked.Add(v)
		if err != nil {
			t.revoked.MakeRoom(now)
			err = t.revoked.Add(v)
		}
		if err != nil {
			t.log.Warn("a revocation was dropped", "error", err)
		}
	}
	for _, w := range switches {
		if _, served := t.configured[w.Site]; served && t.switches.Set(w.Statement()) {
			switched = true
		}
	}
	return revoked, switched
}

// take is add, and what is new is on disk when it returns.
func (t *takedowns) take(list []signal.Revocation, switches []bus.Switch) (revoked bool) {
	revoked, switched := t.add(list, switches)
	if revoked || switched {
		t.keep()
	}
	return revoked
}

func (t *takedowns) withdraws(c *certificate.Certificate) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revoked.Withdraws(c)
}

// withdrawsKey says whether everything is withdrawn that a key signed.
func (t *takedowns) withdrawsKey(id certificate.KeyID) bool {
	return t.withdraws(&certificate.Certificate{KeyID: id})
}

// since is the time of a segment's last purge.
func (t *takedowns) since(site string, name segment.Name) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revoked.Since(site, name)
}

// refuses says why a segment gets no certificate now whatever the origin has; is is false where nothing speaks against one.
func (t *takedowns) refuses(site string, name segment.Name) (why peer.NoneReason, is bool) {
	now := t.now()
	switch {
	case t.off(site):
		return peer.NoneNotAllowed, true
	case certificate.Buried(t.since(site, name), now):
		return peer.NoneWithdrawn, true
	}
	return 0, false
}

// off says whether peer delivery of a site is off.
func (t *takedowns) off(site string) bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.configured[site] || t.switches.Off(site, now)
}

// packages says that certificates of a site may live as long as a packager's.
func (t *takedowns) packages(site string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked.Packaged(site)
}

func (t *takedowns) configure(site string, off bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, served := t.configured[site]; served {
		t.configured[site] = off
	}
}

func (t *takedowns) statements(site string, off bool, reason string, until time.Time) []bus.Switch {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return bus.Switches(t.switches.Say(site, off, reason, until, now))
}

// forget drops revocations that no certificate can be withdrawn by any more.
func (t *takedowns) forget() {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked.Forget(now)
}

// messages is all that is revoked and switched, in messages of the bus.
func (t *takedowns) messages() (out []*bus.RevokeMessage) {
	t.mu.Lock()
	var list []signal.Revocation
	for _, r := range t.revoked.List() {
		v := signal.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: r.MinIssuedAt.UnixMilli()}
		if r.Site == "" {
			v = signal.Revocation{KeyID: r.KeyID[:]}
		}
		list = append(list, v)
	}
	switches := bus.Switches(t.switches.List())
	t.mu.Unlock()
	for _, part := range signal.Parts(list, lineBytes) {
		out = append(out, &bus.RevokeMessage{Revocations: part, Switches: switches})
		switches = nil
	}
	return out
}

// keep writes what is revoked and switched to disk.
func (t *takedowns) keep() {
	t.keeping.Lock()
	defer t.keeping.Unlock()
	t.write()
}

// keepAgain does so if it could not be done before, and is not being done.
func (t *takedowns) keepAgain() {
	if !t.keeping.TryLock() {
		return
	}
	defer t.keeping.Unlock()
	if t.unkept.Load() {
		t.write()
	}
}

// write is under keeping. A failure is told once.
func (t *takedowns) write() {
	var text bytes.Buffer
	for _, m := range t.messages() {
		b, err := bus.Encode(m)
		if err != nil {
			t.log.Error("revocations cannot be kept", "error", err)
			return
		}
		text.Write(append(b, '\n'))
	}
	err := writeAtomic(t.path, true, text.Bytes())
	switch failed := t.unkept.Swap(err != nil); {
	case err != nil && !failed:
		t.log.Error("revocations are not on disk: after a restart this seed may not know them; it goes on trying", "error", err)
	case err == nil && failed:
		t.log.Info("revocations are on disk now")
	}
}
