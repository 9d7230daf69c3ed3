// Package ingest takes the files that a packager pushes by HTTP into a folder, as DASH-IF Live Media Ingest does (interface 2): PUT
// writes one, DELETE removes one. A playlist is signed before it can be read there (spec/packaging.md, "Writing").
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Bounds of what a packager may push.
const (
	maxObject  = 1 << 30          // bytes of one file; a file of media longer than this is no segment
	maxUploads = 64               // at a time
	patience   = 30 * time.Second // without a byte
	overtaking = time.Second      // by which a playlist may come before a segment that it names; 2 ms were seen
)

// Receiver is the handler. The zero value is of no use; New makes one.
type Receiver struct {
	packager *packaging.Packager
	report   func(file string, plan *packaging.Plan, err error)
	places   chan struct{}

	mu         sync.Mutex
	coming     map[string]chan struct{}   // guarded by mu: media on its way, by file; closed when it is there, or will not be
	news       chan struct{}              // guarded by mu; closed when media is on its way, or has come
	publishing map[string]*turn           // guarded by mu: by playlist
	lacking    map[string]map[string]bool // guarded by mu: by playlist, what it names and was waited for in vain
}

// turn has the versions of one playlist published one after the other, as they came.
type turn struct {
	sync.Mutex
	waiting int // guarded by Receiver.mu
}

// New makes a receiver for the packager's folder. report hears of each playlist that was signed, and of each that could not be.
func New(p *packaging.Packager, report func(file string, plan *packaging.Plan, err error)) *Receiver {
	return &Receiver{
		packager: p, report: report, places: make(chan struct{}, maxUploads),
		coming: map[string]chan struct{}{}, news: make(chan struct{}), publishing: map[string]*turn{},
		lacking: map[string]map[string]bool{},
	}
}

// refusal is a request that is answered with a status and a reason.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// ServeHTTP answers 201 for a file that is new, 204 for one that was replaced or removed.
func (v *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, err := v.answer(w, r)
	var refused *refusal
	switch {
	case err == nil:
		w.WriteHeader(status)
	case errors.As(err, &refused):
		http.Error(w, refused.reason, refused.status)
	default:
		v.report(r.URL.Path, nil, err)
		http.Error(w, "the file could not be written: see what leeway certify says", http.StatusInternalServerError)
	}
}

func (v *Receiver) answer(w http.ResponseWriter, r *http.Request) (status int, err error) {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return 0, &refusal{http.StatusForbidden, "this takes files of a packager; a browser's page may not write here"}
	}
	file, err := fileOf(r.URL.Path)
	if err != nil {
		return 0, err
	}
	switch r.Method {
	case http.MethodDelete:
		return http.StatusNoContent, v.remove(file)
	case http.MethodPut:
	default:
		w.Header().Set("Allow", "PUT, DELETE")
		return 0, &refusal{http.StatusMethodNotAllowed, "PUT writes a file and DELETE removes it; the folder's web server reads"}
	}
	select {
	case v.places <- struct{}{}:
		defer func() { <-v.places }()
	default:
		w.Header().Set("Retry-After", "1")
		return 0, &refusal{http.StatusServiceUnavailable, fmt.Sprintf("%d files are on their way already", maxUploads)}
	}
	status = http.StatusCreated
	if v.there(file) {
		status = http.StatusNoContent
	}
	body := &upload{from: r.Body, control: http.NewResponseController(w)}
	if packaging.IsPlaylist(file) {
		return status, v.publish(context.WithoutCancel(r.Context()), file, body) // a packager may not wait for the answer
	}
	defer v.announce(file)()
	return status, v.store(file, body, maxObject)
}

// announce notes that a file of media is on its way, until done is called.
func (v *Receiver) announce(file string) (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ended := make(chan struct{})
	v.coming[file] = ended
	v.tell()
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		close(ended)
		v.tell()
		if v.coming[file] == ended {
			delete(v.coming, file)
		}
	}
}

// tell wakes what waits for media. The caller holds mu.
func (v *Receiver) tell() {
	close(v.news)
	v.news = make(chan struct{})
}

// await waits for media that a playlist names: until it is there where it is on its way, and otherwise for a moment, since ffmpeg pushes
// the playlist and its last segment at the same time, over two connections. What does not come is waited for once: parts come faster than
// the moment is over, and each playlist that names it would wait behind the one before. A file that is there and comes anew is waited for
// likewise, for the same moment at most: a packager that was started again pushes the names that it had before.
func (v *Receiver) await(playlist string, plan *packaging.Plan) {
	v.mu.Lock()
	before, lacking := v.lacking[playlist], map[string]bool{}
	coming := maps.Clone(v.coming)
	v.mu.Unlock()
	moment := time.NewTimer(overtaking)
	defer moment.Stop()
	for file, ended := range coming {
		if plan.Names(file) {
			select {
			case <-ended:
			case <-moment.C:
				moment.Reset(0) // for the others
			}
		}
	}
	for _, file := range plan.Missing {
		for late := before[file]; !v.there(file); {
			v.mu.Lock()
			ended, news := v.coming[file], v.news
			v.mu.Unlock()
			if ended != nil {
				<-ended
			}
			if ended != nil || late {
				if !v.there(file) {
					lacking[file] = true
				}
				break
			}
			select {
			case <-news:
			case <-moment.C:
				moment.Reset(0) // for the others
				late = true
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lacking[playlist] = lacking; len(lacking) == 0 {
		delete(v.lacking, playlist)
	}
}

func (v *Receiver) there(file string) bool {
	_, err := v.packager.Root.Stat(file)
	return err == nil
}

// take takes a playlist's turn.
func (v *Receiver) take(file string) (leave func()) {
	v.mu.Lock()
	t := v.publishing[file]
	if t == nil {
		t = &turn{}
		v.publishing[file] = t
	}
	t.waiting++
	v.mu.Unlock()
	t.Lock()
	return func() {
		t.Unlock()
		v.mu.Lock()
		defer v.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(v.publishing, file)
		}
	}
}

// fileOf is the file below the folder that a path names. Lists are the receiver's own, and a name that begins with a dot is of a file
// that is being written.
func fileOf(at string) (string, error) {
	file := strings.TrimPrefix(at, "/")
	switch {
	case !fs.ValidPath(file) || file == "." || strings.ContainsRune(file, 0):
		return "", &refusal{http.StatusBadRequest, "the path names no file of the folder"}
	case strings.HasPrefix(file, ".") || strings.Contains(file, "/."):
		return "", &refusal{http.StatusBadRequest, "a name may not begin with a dot"}
	case strings.HasSuffix(file, packaging.Suffix):
		return "", &refusal{http.StatusBadRequest, "lists are written here, and cannot be pushed"}
	}
	return file, nil
}

// publish signs a playlist and writes its list, and then the playlist. A playlist that cannot be signed is published all the same: it plays.
func (v *Receiver) publish(ctx context.Context, file string, body io.Reader) error {
	defer v.take(file)()
	text, err := io.ReadAll(io.LimitReader(body, playlist.MaxBytes+1))
	if err != nil {
		return broken(err)
	}
	if len(text) > playlist.MaxBytes {
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a playlist has at most %d bytes", playlist.MaxBytes)}
	}
	if plan, err := v.packager.PlanText(file, text); err == nil {
		v.await(file, plan)
	}
	plan, _, err := v.packager.CertifyText(ctx, file, text)
	if err := v.store(file, strings.NewReader(string(text)), playlist.MaxBytes); err != nil {
		return err
	}
	if !errors.Is(err, packaging.ErrMaster) {
		v.report(file, plan, err)
	}
	return nil
}

// store writes a file as a whole: a reader gets the old one or the new one.
func (v *Receiver) store(file string, body io.Reader, most int64) error {
	root, folder := v.packager.Root, path.Dir(file)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	temporary := packaging.Temporary(file)
	f, err := root.Create(temporary)
	if err != nil {
		return err
	}
	from := &source{Reader: io.LimitReader(body, most+1)}
	n, err := io.Copy(f, from)
	switch {
	case from.failed != nil:
		err = broken(from.failed)
	case err != nil: // the disk is full
	case n > most:
		err = &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a file has at most %d bytes", most)}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, file)
	}
	if err != nil {
		_ = root.Remove(temporary) // what stays is removed when the folder is walked
	}
	return err
}

// remove removes a file, and the lists of a playlist with it.
func (v *Receiver) remove(file string) error {
	root := v.packager.Root
	if packaging.IsPlaylist(file) { // behind the versions of it that are on their way
		defer v.take(file)()
	}
	if info, err := root.Stat(file); err == nil && !info.Mode().IsRegular() {
		return &refusal{http.StatusBadRequest, "the path names no file of the folder"}
	}
	err := root.Remove(file)
	if packaging.IsPlaylist(file) {
		v.mu.Lock()
		delete(v.lacking, file)
		v.mu.Unlock()
		if err := v.packager.Unlist(file); err != nil {
			return err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &refusal{http.StatusNotFound, "there is no such file"}
	}
	return err
}

// broken is an upload that ended before its end.
func broken(err error) error {
	return &refusal{http.StatusBadRequest, "the upload broke off: " + err.Error()}
}

// upload reads a body as long as bytes come.
type upload struct {
	from    io.Reader
	control *http.ResponseController
}

func (u *upload) Read(b []byte) (int, error) {
	if err := u.control.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return u.from.Read(b)
}

// source notes why it could not be read: copying returns one error, of reading or of writing.
type source struct {
	io.Reader
	failed error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}
