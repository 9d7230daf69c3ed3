package tracker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// secrets are the keys of names that only trackers can compute. All are derived from Config.Secret, so that every replica computes
// the same names.
type secrets struct {
	swarms    []byte
	addresses []byte
	subjects  []byte // what a backend calls its viewers stays off the bus
	relays    []byte
	rollout   []byte // which viewers a site holds back
	titles    []byte // in metrics
}

func newSecrets(cfg *Config) secrets {
	return secrets{cfg.derive("swarms"), cfg.derive("addresses"), cfg.derive("subjects"), cfg.derive("relays"), cfg.derive("rollout"), cfg.derive("titles")}
}

// swarmID is computable by trackers only: a client has to name the title to be told of a swarm.
func (k *secrets) swarmID(site, title string) signal.ID { return keyed(k.swarms, site, title) }

// subjectID is what the home of a subject of a site's tokens is found by.
func (k *secrets) subjectID(site, subject string) signal.ID { return keyed(k.subjects, site, subject) }

// keyed is an ID of something that a site has. It cannot be computed without the key.
func keyed(key []byte, site, name string) signal.ID {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(site))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return signal.ID(h.Sum(nil)[:16])
}

// hashed is an address, or its subnet of so many bits, as replicas may know it.
func (k *secrets) hashed(a netip.Addr, bits4, bits6 int) string {
	if !a.IsValid() {
		return ""
	}
	bits := bits6
	if a.Is4() {
		bits = bits4
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return short(k.addresses, []byte(p.String()))
}

// Subnet is the subnet of a visitor as replicas may know it; empty: its address is not known.
func (k *secrets) Subnet(v Visitor) string { return k.hashed(v.Address, 24, 48) }

// drawn is what a roll-out is drawn by: the subject of a site's tokens, else the address (in IPv6 its /64), so that a viewer that
// comes back is drawn alike. It is computed where it is needed and kept nowhere.
func (k *secrets) drawn(site, subject string, a netip.Addr) signal.ID {
	name := "subject " + subject
	if bits := 64; subject == "" {
		if a = a.Unmap(); a.Is4() {
			bits = 32
		}
		p, _ := a.Prefix(bits) // of an address that is not known: the zero prefix, one draw for all of them
		name = "address " + p.String()
	}
	return keyed(k.rollout, site, name)
}

// heldBack says whether a site's roll-out has not reached a viewer. A smaller share holds back none that a larger one did not.
func (k *secrets) heldBack(site *configured.Site, subject string, v Visitor) bool {
	permille := site.Config().Policy.HoldBackPermille
	return permille > 0 && swarm.Draw(k.drawn(site.Name(), subject, v.Address)) < permille
}

// holder is a session's name towards relays: the same with all trackers, and useless to a reader of the traffic between them.
func (k *secrets) holder(session signal.ID) string { return short(k.relays, session[:]) }

func short(key, name []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(name)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func newID() signal.ID {
	var id signal.ID
	_, _ = rand.Read(id[:]) // never fails
	return id
}
