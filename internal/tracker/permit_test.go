package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// keyring holds the key of all tokens, or does not.
type keyring struct {
	noKeys
	holds bool
}

func (k *keyring) Holds(string, string) bool { return k.holds }

// TestATokenThatIsGoodAgainHasItsWholeGrace: its key is taken out of the file and put back at once. When the token runs out, an hour later, its
// viewer is told, and has the grace to show another. So it is with a clock that is put forward and back.
func TestATokenThatIsGoodAgainHasItsWholeGrace(t *testing.T) {
	const grace = 10 * time.Second
	began := time.Unix(1_790_000_000, 0)
	expires := began.Add(time.Hour)
	keys := &keyring{holds: true}
	p := permit{cfg: &Config{Tokens: keys, TokenGrace: grace}, grant: &access.Grant{Expires: expires}}
	for _, c := range []struct {
		name       string
		at         time.Time
		holds      bool
		tell, over bool
	}{
		{"good", began, true, false, false},
		{"without its key", began.Add(2 * time.Second), false, true, false},
		{"good again", began.Add(4 * time.Second), true, false, false},
		{"by a clock that is put forward", expires.Add(time.Minute), true, true, false},
		{"by one that is put back", began.Add(6 * time.Second), true, false, false},
		{"run out", expires, true, true, false},
		{"in the grace", expires.Add(grace - 1), true, false, false},
		{"after the grace", expires.Add(grace), true, true, true},
	} {
		keys.holds = c.holds
		if tell, over := p.lapse("demo", c.at); tell != c.tell || over != c.over {
			t.Errorf("%s: told %v, over %v", c.name, tell, over)
		}
	}
}
