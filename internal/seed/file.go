package seed

import (
	"context"
	"fmt"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// loadFile lists a file that is shared without a manifest, whole or by its virtual segments (spec/site.md, "Files"). One byte of it
// tells its length, and costs what a playlist does.
func (ix *index) loadFile(ctx context.Context) error {
	var length int64
	err := ix.paid(ctx, Fetch{Path: ix.manifest, Ranged: true, MaxBytes: 1}, fetchTimeout, func(got *Fetched) error {
		length = got.ObjectLength
		return nil
	})
	if err != nil {
		return fmt.Errorf("the length of the file is not known: %w", err)
	}
	name := segment.WholeName(ix.manifest)
	err = ix.takeIn(ix.manifest, &playlist.Listed{Segments: []playlist.Entry{{Name: name, Path: ix.manifest}}})
	if err == nil && length > segment.MaxLength {
		ix.tooLarge(ix.lookup(segment.NewID(ix.site.name, name)), length)
	}
	return err
}
