package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"time"
)

// growth is the latest segment of a series that is published in parts. A segment that follows it has another one.
type growth struct {
	number   int64
	parts    int // that are there
	complete bool
}

// numbered is a segment, or a part of one, as internal/app/live names them: "low/live-7.m4s" has the part 2 in "low/live-7.2.m4s".
var numbered = regexp.MustCompile(`^(.*[^0-9.])([0-9]{1,18})(?:\.([0-9]{1,9}))?\.m4s$`)

// series splits the name of a segment or of a part. part is -1 of a segment.
func series(file string) (series string, number int64, part int, ok bool) {
	m := numbered.FindStringSubmatch(file)
	if m == nil {
		return "", 0, 0, false
	}
	number, _ = strconv.ParseInt(m[2], 10, 64) // it is digits, and short
	part = -1
	if m[3] != "" {
		part, _ = strconv.Atoi(m[3])
	}
	return m[1], number, part, true
}

// grew takes down that a part was published, or the segment that it was of. It says whether one was. The caller holds mu.
func (r *reloads) grew(file string) bool {
	of, number, part, ok := series(file)
	if !ok {
		return false
	}
	g := r.grows[of]
	switch {
	case part >= 0 && (g == nil || number > g.number):
		if r.grows == nil {
			r.grows = map[string]*growth{}
		}
		r.grows[of] = &growth{number: number, parts: part + 1}
	case g == nil || number != g.number:
		return false
	case part >= 0:
		g.parts = part + 1
	default:
		g.complete = true
	}
	return true
}

// follow calls send for each part of a segment that grows, without the lock, until it is complete or send fails. A segment that may
// begin while a request waits is waited for: players ask by the clock, encoders may be late, and Shaka asks when the first part of the
// segment before is due. done is false where the segment does not grow: it is a file, or there is none.
func (r *reloads) follow(ctx context.Context, client netip.Addr, file string, send func(part int) error) (done bool, err error) {
	of, number, part, ok := series(file)
	if !ok || part >= 0 {
		return false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g, target := r.grows[of], r.target(path.Dir(file))
	if g == nil || target == 0 || number < g.number || number > g.number+reloadTargets || number == g.number && g.complete {
		return false, nil
	}
	late := time.NewTimer(reloadTargets * target)
	defer late.Stop()
	if !r.wait(ctx, client, late.C, func() bool { g = r.grows[of]; return g.number >= number }) {
		return false, nil
	}
	if g.number > number {
		return false, nil // it was complete before this was woken
	}
	late.Reset(reloadTargets * target)
	for sent := 0; ; sent++ {
		if !r.wait(ctx, client, late.C, func() bool { return g.parts > sent || g.complete }) {
			return true, errNoMore
		}
		if sent == g.parts {
			return true, nil
		}
		r.mu.Unlock()
		err := send(sent)
		r.mu.Lock()
		if err != nil {
			return true, err
		}
	}
}

// errNoMore is a segment of which no further part comes, or too late.
var errNoMore = errors.New("origin: the segment is not complete, and its next part does not come")

// target is the target duration of a playlist in a folder; 0: there is none. The caller holds mu.
func (r *reloads) target(folder string) time.Duration {
	for file, next := range r.lists {
		if path.Dir(file) == folder {
			return next.target
		}
	}
	return 0
}

// grow answers a request for a segment that grows: with the parts that are there, at once, and each further one when it is published. The
// answer ends when the segment is complete, and breaks off if that does not come. Its length is not known, so a range of it is not
// answered as one. It returns false if the segment does not grow.
func (o *Server) grow(out *countedWriter, r *http.Request, client netip.Addr, file string) bool {
	control := http.NewResponseController(out.ResponseWriter)
	done, err := o.reloads.follow(r.Context(), client, file, func(part int) error {
		if part == 0 {
			describe(out.Header(), file)
		}
		if r.Method == http.MethodHead {
			return io.EOF
		}
		of, number, _, _ := series(file)
		f, err := o.Root.Open(fmt.Sprintf("%s%d.%d.m4s", of, number, part))
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		return control.Flush()
	})
	if err != nil && !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler) // what was sent is not all
	}
	return done
}
