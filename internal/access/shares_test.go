package access_test

import (
	"net/netip"
	"testing"

	"github.com/leeway-video/leeway/internal/access"
)

func TestShares(t *testing.T) {
	s := access.Shares{Most: 10, One: 4}
	one, two, three := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32"), netip.MustParsePrefix("2001:db8::/64")
	if !s.Take(one, 4) || s.Take(one, 1) || !s.Take(two, 4) || s.Take(three, 3) || !s.Take(three, 2) {
		t.Errorf("%+v", s)
	}
	if forAll, forOne := s.Full(three, 1); !forAll || forOne {
		t.Errorf("full for all: %v, for one: %v", forAll, forOne)
	}
	s.Give(one, 4)
	if forAll, forOne := s.Full(two, 1); forAll || !forOne {
		t.Errorf("full for all: %v, for one: %v", forAll, forOne)
	}
	s.Give(two, 4)
	s.Give(three, 2)
	if all, networks := s.Taken(); all != 0 || networks != 0 {
		t.Errorf("%d are taken by %d networks", all, networks)
	}
	if (&access.Shares{}).Take(one, 1) {
		t.Error("the zero value lends something")
	}
}
