package viewer

import "testing"

// TestOneNameForAllReloadsOfAPlaylist: what a player adds to a reload is its own, and neither names a list nor a stream.
func TestOneNameForAllReloadsOfAPlaylist(t *testing.T) {
	for from, want := range map[string]string{
		"https://cdn/a.m3u8?_HLS_msn=7&_HLS_part=2":     "https://cdn/a.m3u8",
		"https://cdn/a.m3u8?CMCD=sid%3D%22a%22":         "https://cdn/a.m3u8",
		"https://cdn/a.m3u8?t=1&CMCD=a&_HLS_skip=YES":   "https://cdn/a.m3u8?t=1",
		"https://cdn/a.m3u8?z=1&a=%7E&_HLS_primary_id=": "https://cdn/a.m3u8?z=1&a=%7E&_HLS_primary_id=",
	} {
		if got := reloaded(from); got != want {
			t.Errorf("%s is %s, want %s", from, got, want)
		}
	}
}
