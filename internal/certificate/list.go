package certificate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/leeway-video/leeway/internal/segment"
)

// Limits of a list (spec/packaging.md, "List").
const (
	MaxEntries  = 65536
	MaxListSize = 32 << 20  // bytes
	MaxTaken    = 2 << 20   // bytes of a list that a viewer takes
	ListSuffix  = ".leeway" // of a list, behind the path of its playlist
	ListHead    = 8         // magic and count, bytes
	magicList   = "LWL1"
)

// ErrList is why a list is refused; the text says what is wrong with it.
var ErrList = errors.New("malformed list of certificates")

// ListURL is the URL of the list of a playlist: the suffix is the path's, and the query stays.
func ListURL(playlist string) string { return behind(playlist, ListSuffix) }

// PartURL is the URL of a packager's certificate of a part (spec/packaging.md, "Parts"), which has a URL of its own or is a range of
// an object.
func PartURL(object string, ranged bool, first, last int64) string {
	return behind(object, PartSuffix(ranged, first, last))
}

// PartSuffix is what the path of a part has behind it in the path of its certificate.
func PartSuffix(ranged bool, first, last int64) string {
	if !ranged {
		return ListSuffix
	}
	return fmt.Sprintf(".%d-%d%s", first, last, ListSuffix)
}

// behind is a URL with more behind its path; the query stays.
func behind(url, more string) string {
	url, _, _ = strings.Cut(url, "#")
	path, query, has := strings.Cut(url, "?")
	if has {
		query = "?" + query
	}
	return path + more + query
}

// EntrySize is how many bytes of a list an entry takes.
func EntrySize(site string, name segment.Name) int {
	return 2 + headSize + 1 + len(site) + 2 + len(name) + 1 + digestSize + signatureSize
}

// EncodeList writes the short certificates of one playlist, in the playlist's order. They are what Short gave.
func EncodeList(entries [][]byte) ([]byte, error) {
	size := ListHead
	for _, e := range entries {
		size += 2 + len(e)
	}
	if len(entries) > MaxEntries || size > MaxListSize {
		return nil, fmt.Errorf("%d segments, %d bytes: a list has at most %d segments and %d bytes (shorten the playlist)",
			len(entries), size, MaxEntries, MaxListSize)
	}
	b := make([]byte, 0, size)
	b = append(b, magicList...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		b = binary.BigEndian.AppendUint16(b, uint16(len(e)))
		b = append(b, e...)
	}
	return b, nil
}

// ParseList reads a list. Entries of an algorithm that this version does not know are left out. It fails with ErrList; no
// signature is verified. Nothing is allocated for entries that are not there.
func ParseList(b []byte) ([]*Certificate, error) {
	if len(b) < ListHead || len(b) > MaxListSize || string(b[:4]) != magicList {
		return nil, fmt.Errorf("%w: %d bytes that are no list", ErrList, len(b))
	}
	count := int(binary.BigEndian.Uint32(b[4:]))
	if count > MaxEntries || count > len(b)/minSize {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrList, count, len(b))
	}
	list := make([]*Certificate, 0, count)
	seen := make(map[segment.Name]bool, count)
	rest := b[ListHead:]
	for i := range count {
		entry, after, ok := prefixed(rest, 2)
		if !ok {
			return nil, fmt.Errorf("%w: entry %d is cut off", ErrList, i)
		}
		rest = after
		c, err := ParseShort(entry)
		switch {
		case OutcomeOf(err) == UnknownAlg:
			continue
		case err != nil:
			return nil, fmt.Errorf("%w: entry %d: %w", ErrList, i, err)
		case seen[c.Name]:
			return nil, fmt.Errorf("%w: two entries for %q", ErrList, c.Name)
		}
		seen[c.Name] = true
		list = append(list, c)
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the last entry", ErrList, len(rest))
	}
	return list, nil
}
