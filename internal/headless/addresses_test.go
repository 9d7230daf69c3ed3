package headless

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAnAddressThatIsGoneIsAMove(t *testing.T) {
	for name, c := range map[string]struct {
		looks []string // what the machine has at each
		moves string   // after which of them it is told
	}{
		"nothing changes":           {[]string{"a b", "b a", "a b"}, "---"},
		"one more":                  {[]string{"a", "a b", "a b"}, "---"},
		"another instead":           {[]string{"a", "b", "b"}, "-m-"},
		"one of two, by then":       {[]string{"a", "a b", "b", "b"}, "--m-"},
		"nothing for a while":       {[]string{"a", "", "", "b", "b"}, "---m-"},
		"away and back":             {[]string{"a", "", "a", "a"}, "----"},
		"from nothing to something": {[]string{"", "", "a"}, "---"},
		"twice":                     {[]string{"a", "b", "c", "c"}, "-mm-"},
	} {
		t.Run(name, func(t *testing.T) {
			at, told := -1, []byte(strings.Repeat("-", len(c.looks)))
			list := func() (all []netip.Addr) {
				at++
				for _, f := range strings.Fields(c.looks[at]) {
					all = append(all, netip.AddrFrom4([4]byte{198, 18, 0, f[0]}))
				}
				return all
			}
			ctx, cancel := context.WithCancel(t.Context())
			ticks, over := make(chan time.Time), make(chan struct{})
			go func() {
				defer close(over)
				watchAddresses(ctx, ticks, list, func() { told[at] = 'm' })
			}()
			for range len(c.looks) - 1 {
				ticks <- time.Time{}
			}
			cancel()
			<-over
			if string(told) != c.moves {
				t.Errorf("told %q, want %q", told, c.moves)
			}
		})
	}
}
