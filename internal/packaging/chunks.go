package packaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/cmaf"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	// growing is behind the name of a file that ffmpeg has not written to its end.
	growing = ".tmp"
	// mostChunks of a segment are signed: its end has the last turn (spec/parts.md, "Chunks").
	mostChunks = 255
	// shortChunk is how long chunks play that are not signed: each would be a request in which viewers have no time for it.
	shortChunk = 100 * time.Millisecond
)

// growth is what is known of a segment of a stream of chunks while it is written.
type growth struct {
	playlist.Growing
	file         string // below the folder, once all of it is there
	temporary    bool   // it has been seen under the name of one that is not
	cut          cmaf.Cutter
	read         int64 // bytes that were cut
	from         int64 // where the next chunk begins
	chunks       int   // that have ended
	gap          bool  // one of them is not signed, and viewers can use none of those behind it
	done         bool
	certificates []string // files
}

// stream is a stream of chunks that an MPD lists.
type stream struct {
	packager *Packager
	of       *playlist.Chunked
	segments map[segment.Name]*growth
	unfit    bool // the last segment had short chunks, or was too long to be shared
}

// streams are those of chunks, by MPD and by the name of their list.
type streams struct {
	mu  sync.Mutex
	all map[string]map[string]*stream // guarded by mu
}

// note says what streams of chunks an MPD lists now.
func (s *streams) note(p *Packager, file string, of map[string]*playlist.Chunked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.all[file]
	now := make(map[string]*stream, len(of))
	for name, chunked := range of {
		one := was[name]
		if one == nil {
			one = &stream{packager: p, segments: map[segment.Name]*growth{}}
		}
		one.of, now[name] = chunked, one
	}
	if s.all[file] = now; len(now) == 0 {
		delete(s.all, file)
	}
}

// grow signs the chunks of segments that are being written, and removes the certificates of those that are long over. It is told of each
// stream that fails, by the name of its list.
func (s *streams) grow(ctx context.Context, report func(string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.all {
		for name, one := range all {
			report(name, one.follow(ctx))
		}
	}
}

// follow looks at the segments of a stream that may be written now.
func (s *stream) follow(ctx context.Context) error {
	now, lasts := s.packager.Now(), s.of.Duration()
	var errs []error
	for name, g := range s.segments {
		if now.Sub(g.Asked) > 4*lasts || g.Asked.Sub(now) > 4*lasts { // or the clock was set
			delete(s.segments, name)
			errs = append(errs, g.drop(&s.packager.folder))
		}
	}
	for next, ok := s.of.Next(now.Add(-3 * lasts)); ok && !next.Asked.After(now.Add(lasts)) && ctx.Err() == nil; next, ok = s.of.Next(next.Asked) {
		g := s.segments[next.Name]
		if g == nil {
			file, mine := s.packager.file(next.Path)
			g = &growth{Growing: next, file: file, done: !mine}
			s.segments[next.Name] = g
		}
		if g.done {
			continue
		}
		if err := s.look(ctx, g); err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.done = true
			errs = append(errs, fmt.Errorf("certify chunks of %s: %w", g.file, err))
		}
	}
	return errors.Join(errs...)
}

// look signs what a segment has more than before.
func (s *stream) look(ctx context.Context, g *growth) error {
	root, file, over := s.packager.Root, g.file+growing, false
	info, err := root.Stat(file)
	switch {
	case err == nil:
		g.temporary = true
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default: // it has its name, or is written under it
		file = g.file
		over = g.temporary || s.begun(g)
		if info, err = root.Stat(file); err != nil {
			return err
		}
	}
	// A packager that was started again has left files of these names.
	if !info.Mode().IsRegular() || info.ModTime().Before(g.Asked.Add(-2*g.Duration)) || info.Size() == g.read && !over {
		return nil
	}
	if err := s.cutMore(ctx, g, file, info.Size()); err != nil || !over {
		return err
	}
	g.done = true
	s.unfit = time.Duration(g.chunks)*shortChunk > g.Duration || g.read > segment.MaxLength
	if s.unfit || !g.cut.Whole() {
		return nil
	}
	return s.sign(ctx, g, span{name: g.Name, file: file, length: info.Size(), object: info.Size(), modified: info.ModTime()}, certificate.ListSuffix)
}

// begun says whether the segment behind one is being written: a packager writes one after the other.
func (s *stream) begun(g *growth) bool {
	next, ok := s.of.Next(g.Asked)
	if !ok {
		return false
	}
	file, ok := s.packager.file(next.Path)
	if !ok {
		return false
	}
	info, err := s.packager.Root.Stat(file)
	if err != nil {
		info, err = s.packager.Root.Stat(file + growing)
	}
	return err == nil && info.ModTime().After(g.Asked.Add(-g.Duration))
}

// cutMore reads what a file has up to a size, and signs the chunks that end there.
func (s *stream) cutMore(ctx context.Context, g *growth, file string, size int64) error {
	f, err := s.packager.Root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, min(max(size-g.read, 0), partRead))
	for g.read < min(size, segment.MaxLength) && ctx.Err() == nil {
		n, err := f.ReadAt(buffer[:min(int64(len(buffer)), size-g.read)], g.read)
		if err != nil && !(errors.Is(err, io.EOF) && n > 0) {
			return err
		}
		g.read += int64(n)
		ends, broken := g.cut.Add(buffer[:n])
		for _, end := range ends {
			first, number := g.from, g.chunks
			g.from, g.chunks = end, number+1
			g.gap = g.gap || s.unfit || number >= mostChunks || end-first > maxPart || end > segment.MaxLength
			if g.gap {
				continue
			}
			one := span{name: segment.RangeName(g.Name.Key(), first, end-1), file: file, first: first, length: end - first, object: end, grows: true}
			if err := s.sign(ctx, g, one, certificate.PartSuffix(true, first, end-1)); err != nil {
				return err
			}
		}
		if broken != nil {
			return broken
		}
	}
	if size > segment.MaxLength {
		g.read = size
	}
	return nil
}

// sign writes the certificate of a chunk, or of the whole segment.
func (s *stream) sign(ctx context.Context, g *growth, of span, suffix string) error {
	buffer := make([]byte, partRead)
	c, err := s.packager.issue(ctx, of, certificate.PartLife, buffer)
	if errors.Is(err, fs.ErrNotExist) && of.file != g.file { // it has got its name meanwhile
		of.file = g.file
		c, err = s.packager.issue(ctx, of, certificate.PartLife, buffer)
	}
	if err != nil {
		return err
	}
	g.certificates = append(g.certificates, g.file+suffix)
	return s.packager.folder.replace(g.file+suffix, c.Bytes(), false)
}

// drop removes the certificates of a segment.
func (g *growth) drop(f *folder) error {
	var errs []error
	for _, file := range g.certificates {
		errs = append(errs, f.remove(file))
	}
	return errors.Join(errs...)
}

// drop removes the certificates of an MPD that is gone.
func (s *streams) drop(file string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, one := range s.all[file] {
		for _, g := range one.segments {
			errs = append(errs, g.drop(&one.packager.folder))
		}
	}
	delete(s.all, file)
	return errors.Join(errs...)
}
