package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// verifyKeys are the keys of a site as its tracker names them.
func verifyKeys(site string, keys []signal.VerifyKey) (*certificate.KeySet, error) {
	var list []certificate.VerifyKey
	for _, k := range keys {
		if len(k.KeyID) == len(certificate.KeyID{}) {
			list = append(list, certificate.VerifyKey{
				KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: []string{site}, Alg: certificate.Alg(k.Alg),
			})
		}
	}
	return certificate.NewKeySet(list...)
}

// packaged says whether a key is a packager's: viewers then make certificates themselves.
func packaged(keys []signal.VerifyKey) bool {
	return slices.ContainsFunc(keys, func(k signal.VerifyKey) bool { return k.Alg == signal.AlgPackager })
}

// revocationsOf are revocations as the tracker names them.
func revocationsOf(list []signal.Revocation) []certificate.Revocation {
	var out []certificate.Revocation
	for _, r := range list {
		v := certificate.Revocation{Site: r.Site, Prefix: r.Prefix, MinIssuedAt: time.UnixMilli(r.MinIssuedAt)}
		if len(r.KeyID) == len(v.KeyID) {
			v.KeyID = certificate.KeyID(r.KeyID)
		}
		out = append(out, v)
	}
	return out
}
