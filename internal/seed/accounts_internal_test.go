package seed

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAccountsAreBounded: sessions cost an outsider nothing, and what they had is remembered after they have gone.
func TestAccountsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &Service{cfg: Config{SessionFactor: 1.5, Now: func() time.Time { return now }}, accounts: map[accountID]*account{}}
	s.catalog = newCatalog(s, 1<<20, 10)
	demo := &siteState{name: "demo", service: s}
	var crowd *account
	for n := range maxAccounts + 100 {
		v := &viewer{service: s, title: s.newTitle(demo, peer.ID{1}, "/film/master.m3u8")}
		binary.BigEndian.PutUint32(v.peer[:], uint32(n+1))
		a := s.openAccount(v)
		a.sent.quota.AllowN(now, peer.PieceSize)
		if n == maxAccounts {
			crowd = a
		} else if n > maxAccounts && a != crowd {
			t.Fatal("two beyond the bound have accounts of their own")
		}
		if n == 7 && s.accountOf(v, 0) != a {
			t.Error("a session that is known has another account")
		}
	}
	if n := len(s.accounts); n != maxAccounts+1 || crowd.links != 100 {
		t.Errorf("%d accounts, %d links beyond", n, crowd.links)
	}
	for _, a := range s.accounts {
		a.links = 0
	}
	now = now.Add(time.Hour)
	if s.forgetAccounts(now); len(s.accounts) > 0 {
		t.Errorf("%d accounts are remembered that owe nothing", len(s.accounts))
	}
}
