package site

import (
	"fmt"
	"strings"
)

// IsFile says whether viewers may share what is at a key as it is, without a manifest that lists it (spec/site.md, "Files").
func (s *Site) IsFile(key string) bool {
	lower := strings.ToLower(key)
	if strings.Contains(key, "?") || strings.HasSuffix(lower, ".m3u8") || strings.HasSuffix(lower, ".mpd") {
		return false
	}
	for _, pattern := range s.config.Files {
		prefix, rest := strings.CutSuffix(pattern, "*")
		if key == prefix || rest && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (c *Config) checkFiles() *FieldError {
	if len(c.Files) > maxFiles {
		return wrong("files", "at most 64; a * at the end is any rest", "has %d entries", len(c.Files))
	}
	for i, pattern := range c.Files {
		path, literal := fmt.Sprintf("files[%d]", i), strings.TrimSuffix(pattern, "*")
		switch {
		case len(pattern) > MaxKey || !strings.HasPrefix(pattern, "/"):
			return wrong(path, "write the file's path, such as /downloads/image.iso, or /downloads/* for all below a folder", "%q is no path of 1–1024 bytes", pattern)
		case strings.ContainsAny(literal, `?#\*`):
			return wrong(path, "leave out query and fragment; a * stands at the end alone", "%q is more than a path", pattern)
		case removeDots(percentForm(literal, false)) != literal:
			return wrong(path, "write it as the key rule does: in percent form, without . and .. elements", "%q is not in the form in which paths are compared", pattern)
		}
	}
	return nil
}
