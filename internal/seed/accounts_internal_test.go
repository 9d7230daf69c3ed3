package seed

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAccountsAreBounded: sessions cost an outsider nothing, and what they had is remembered after they have gone.
func TestAccountsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBudgets(newScope("seed", 0, 0), 1.5, metric.Discard, func() time.Time { return now })
	var crowd *account
	for n := range maxAccounts + 100 {
		id := accountID{swarm: swarm.ID{1}}
		binary.BigEndian.PutUint32(id.session[:], uint32(n+1))
		a := b.account(id, 0, 1)
		a.sent.quota.AllowN(now, peer.PieceSize)
		if n == maxAccounts {
			crowd = a
		} else if n > maxAccounts && a != crowd {
			t.Fatal("two beyond the bound have accounts of their own")
		}
		if n == 7 && b.account(id, 0, 0) != a {
			t.Error("a session that is known has another account")
		}
	}
	if n := len(b.accounts); n != maxAccounts+1 || crowd.links != 100 {
		t.Errorf("%d accounts, %d links beyond", n, crowd.links)
	}
	for _, a := range b.accounts {
		for a.links > 0 {
			b.leave(a)
		}
	}
	now = now.Add(time.Hour)
	if b.forget(); len(b.accounts) > 0 {
		t.Errorf("%d accounts are remembered that owe nothing", len(b.accounts))
	}
}
