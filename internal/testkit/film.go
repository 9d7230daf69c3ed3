package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TinyFilm is a folder that looks like HLS; nothing in it plays.
func TinyFilm(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"master.m3u8":       "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n240p/index.m3u8\n",
		"240p/index.m3u8":   "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nseg-00000.ts\n#EXTINF:4,\nseg-00001.ts\n#EXT-X-ENDLIST\n",
		"240p/seg-00000.ts": strings.Repeat("0", 40_000),
		"240p/seg-00001.ts": strings.Repeat("1", 40_000),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
