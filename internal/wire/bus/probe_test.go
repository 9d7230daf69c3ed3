package bus

import (
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	key := strings.Repeat("aZ0+/9", 5)
	for _, m := range []*Probe{{one, "203.0.113.5:4600", key}, {one, "[2001:db8::5]:4600", key}} {
		b, err := Encode(m)
		var again Probe
		if err == nil {
			err = Decode(b, &again)
		}
		if err != nil || again != *m {
			t.Errorf("%s became %v, %v", b, again, err)
		}
	}
	for name, m := range map[string]*Probe{
		"no seed":             {Address: "203.0.113.5:4600", Key: key},
		"no address":          {Seed: one, Key: key},
		"a name":              {one, "example.com:4600", key},
		"no port":             {one, "203.0.113.5:0", key},
		"a zone":              {one, "[fe80::1%eth0]:4600", key},
		"a key that is short": {one, "203.0.113.5:4600", key[:MinProbeKey-1]},
		"a key that is long":  {one, "203.0.113.5:4600", strings.Repeat("a", MaxProbeKey+1)},
		"a key with a colon":  {one, "203.0.113.5:4600", key + ":"},
	} {
		if m.Validate() == nil {
			t.Errorf("%s passed", name)
		}
	}
}
