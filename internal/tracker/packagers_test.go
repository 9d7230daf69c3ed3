package tracker

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// packagerKey is the public half of a new packager's key, and its ID.
func packagerKey(t *testing.T) (text string, id certificate.KeyID) {
	t.Helper()
	key := testkit.PackagerKey(t)
	text, err := certificate.Public(key)
	if err != nil {
		t.Fatal(err)
	}
	return text, certificate.KeyIDOf(&key.PublicKey)
}

func withPackagers(t *testing.T, keys ...string) func(*Config) {
	return func(c *Config) { c.Sites = oneSite(t, configured.Config{PackagerKeys: keys}) }
}

func (n *node) welcomed() *signal.Welcome {
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	return expect[*signal.Welcome](v)
}

// names says whether the first of the keys are those of packagers, and no others of the rest.
func names(keys []signal.VerifyKey, packagers ...certificate.KeyID) bool {
	for i, k := range keys {
		if (k.Alg == signal.AlgPackager) != (i < len(packagers)) || i < len(packagers) && !bytes.Equal(k.KeyID, packagers[i][:]) {
			return false
		}
	}
	return len(keys) >= len(packagers)
}

// TestPackagersKeysAreTold: at the welcome, when the configuration changes, and not once they are revoked.
func TestPackagersKeysAreTold(t *testing.T) {
	w := newWorld(t)
	first, firstID := packagerKey(t)
	second, secondID := packagerKey(t)
	n := w.tracker(withPackagers(t, first))
	v := n.viewer("")
	if m := n.welcomed(); !names(m.VerifyKeys, firstID) || len(m.VerifyKeys) != 1 {
		t.Fatalf("told %+v", m.VerifyKeys)
	}
	n.Packagers("demo", oneSite(t, configured.Config{PackagerKeys: []string{second, first}})[0].Packagers())
	if m := expect[*signal.Keys](v); !names(m.VerifyKeys, secondID, firstID) || len(m.VerifyKeys) != 2 {
		t.Errorf("pushed %+v", m.VerifyKeys)
	}
	w.revoke(signal.Revocation{KeyID: firstID[:]})
	expect[*signal.Revoke](v)
	if m := n.welcomed(); !names(m.VerifyKeys, secondID) || len(m.VerifyKeys) != 1 {
		t.Errorf("after the revocation: %+v", m.VerifyKeys)
	}
	n.Packagers("demo", nil)
	if m := expect[*signal.Keys](v); len(m.VerifyKeys) != 0 {
		t.Errorf("pushed %+v", m.VerifyKeys)
	}
}

// TestASeedNamesNoPackagersKey: what comes over the bus vouches for what seeds issue, alone. The keys of 64 seeds leave room for packagers.
func TestASeedNamesNoPackagersKey(t *testing.T) {
	w := newWorld(t)
	text, id := packagerKey(t)
	n := w.tracker(withPackagers(t, text))
	for i := range signal.MaxKeys + 8 {
		keyID := binary.BigEndian.AppendUint64(nil, uint64(i))
		key := func(alg int) bus.SeedKey {
			return bus.SeedKey{VerifyKey: signal.VerifyKey{KeyID: keyID, Alg: alg, Key: make(signal.Bytes, 65)}, Sites: []string{"demo"}}
		}
		w.clock.Move(time.Second) // the seeds before have gone
		n.roster.seed(bus.SeedBeat{Seed: newID(), Sites: []string{"demo"}, VerifyKeys: []bus.SeedKey{key(signal.AlgPackager), key(signal.AlgSeed)}}, w.clock.Now())
	}
	m := n.welcomed()
	if !names(m.VerifyKeys, id) || len(m.VerifyKeys) != signal.MaxKeys {
		t.Fatalf("told %d keys", len(m.VerifyKeys))
	}
	if oldest := binary.BigEndian.Uint64(m.VerifyKeys[1].KeyID); oldest != 9 {
		t.Errorf("the oldest key of a seed is number %d: not those that were heard of last are told", oldest)
	}
}

// TestAPurgeIsRememberedAsLongAsAPackagersCertificateLives, by a tracker that starts later as well.
func TestAPurgeIsRememberedAsLongAsAPackagersCertificateLives(t *testing.T) {
	w := newWorld(t)
	text, _ := packagerKey(t)
	n := w.tracker(withPackagers(t, text))
	n.Packagers("demo", nil) // what the key signed is still about
	n.trust.take(&bus.RevokeMessage{Revocations: []signal.Revocation{
		{Site: "demo", Prefix: "/", MinIssuedAt: w.clock.Now().UnixMilli()}, {Site: "other", Prefix: "/", MinIssuedAt: w.clock.Now().UnixMilli()},
	}})
	w.clock.Move(certificate.MaxPackaged)
	n.maintain()
	if list := n.trust.revoked.all(); len(list) != 1 || list[0].Site != "demo" {
		t.Fatalf("%+v are remembered", list)
	}
	later := w.tracker(withPackagers(t, text))
	if list := later.trust.revoked.all(); len(list) != 1 {
		t.Errorf("a tracker that starts later knows %+v", list)
	}
	w.clock.Move(certificate.MaxSkew + time.Second)
	testkit.Eventually(t, "the purge is forgotten", func() bool { return len(n.trust.revoked.all())+len(later.trust.revoked.all()) == 0 })
}
