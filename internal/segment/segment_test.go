package segment

import (
	"strings"
	"testing"
)

func TestIDRoundTrip(t *testing.T) {
	id := NewID("demo", "/a")
	if got, err := ParseID(id.String()); err != nil || got != id {
		t.Errorf("got %s, %v", got, err)
	}
	for _, s := range []string{"", "zz", strings.Repeat("z", 32), strings.Repeat("0", 33)} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("%q is an ID", s)
		}
	}
}

func TestRangeNamesHaveOneForm(t *testing.T) {
	for _, n := range []Name{"/a#", "/a#1", "/a#1-", "/a#-1", "/a#01-2", "/a#1-02", "/a#2-1", "/a#+1-2", "/a#1-2 ", "/a#0-9007199254740992", "/a#0-99999999999999999999", "/a#1-2#3-4", "#1-2"} {
		if key, first, last, ok := n.Range(); ok || key != string(n) || first != 0 || last != 0 {
			t.Errorf("%q is the range %q %d %d", n, key, first, last)
		}
	}
	for _, r := range [][2]int64{{-1, 0}, {1, 0}, {0, 1 << 53}} {
		if n := RangeName("/a", r[0], r[1]); n != "" {
			t.Errorf("%v has name %q", r, n)
		}
	}
}

func TestVirtualCoversTheObject(t *testing.T) {
	for _, length := range []int64{MaxLength + 1, 3*VirtualLength - 1, 3 * VirtualLength, 123456789} {
		next := int64(0)
		for _, s := range Virtual(length) {
			if s.First != next || s.Len() < 1 || s.Len() > VirtualLength {
				t.Fatalf("%d: span %v after %d", length, s, next)
			}
			next = s.Last + 1
		}
		if next != length {
			t.Errorf("%d: covered to %d", length, next)
		}
	}
	if longest := 1024 + len(RangeName("", MaxObject-1, MaxObject-1)); longest > MaxName {
		t.Errorf("names reach %d bytes, certificates hold %d", longest, MaxName)
	}
}

func FuzzNameRange(f *testing.F) {
	for _, s := range []string{"/a", "/a#0-1", "/a#5-4", "/a#01-2", "#", "/a#9007199254740991-9007199254740991"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, first, last, ok := Name(s).Range()
		if ok && RangeName(key, first, last) != Name(s) {
			t.Fatalf("%q has another form: %q", s, RangeName(key, first, last))
		}
		if !ok && key != s {
			t.Fatalf("%q has key %q", s, key)
		}
	})
}
