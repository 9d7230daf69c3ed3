package jwtauth

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Keys   json.RawMessage
	Tokens []struct {
		Name, Site, Token string
		Now               int64
		Reason            access.Reason
		Grant             *struct {
			KeyID     string `json:"key_id"`
			Expires   int64
			Titles    []string
			Manifests []string
			Subject   string
			Group     string
			Role      string
			Unknown   string `json:"unknown_line"`
			Upload    int64  `json:"upload_kbps"`
			Disk      int64  `json:"disk_bytes"`
		}
	}
}

func readVectors(t testing.TB) (v vectors, keys access.Keys) {
	t.Helper()
	v = spec.Vectors[vectors](t, "access.json")
	keys, err := access.ParseKeys(v.Keys)
	if err != nil {
		t.Fatal(err)
	}
	return v, keys
}

func TestVectors(t *testing.T) {
	v, keys := readVectors(t)
	seen := map[access.Reason]bool{}
	for _, c := range v.Tokens {
		g, err := Check(c.Token, c.Site, keys, time.Unix(c.Now, 0))
		var refused *access.TokenError
		if c.Grant == nil {
			if !errors.As(err, &refused) || refused.Reason != c.Reason || g != nil {
				t.Errorf("%s: %+v, %v; want it refused: %s", c.Name, g, err, c.Reason)
			}
			seen[c.Reason] = true
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		want := c.Grant
		if g.KeyID != want.KeyID || g.Expires.Unix() != want.Expires || g.Subject != want.Subject || g.Group != want.Group || g.Role != want.Role || g.Unknown != want.Unknown || g.Upload != want.Upload || g.Disk != want.Disk || !equal(g.Titles, want.Titles) || !equal(g.Manifests, want.Manifests) {
			t.Errorf("%s: %+v, want %+v", c.Name, g, want)
		}
	}
	for _, r := range access.Reasons {
		if !seen[r] && r != access.OtherTitle && r != access.OtherManifest && r != access.OtherSubject { // of a join and of a renewal, not of a token
			t.Errorf("no vector is refused as %s", r)
		}
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
