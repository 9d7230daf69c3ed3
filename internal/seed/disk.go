package seed

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
)

// A file of the store: magic, length of the certificate u32, certificate, bytes of the segment, SHA-256 of all before. Its
// name is the segment ID and the beginning of the certificate's hash, so that a file never changes its content. The checksum is
// for people that look at files: what is loaded is verified by the certificate's signature and digests, and hashing it twice
// would take from uploads.
const (
	fileMagic  = "LWS1"
	fileSuffix = ".segment"
	headBytes  = 4 + 4
	// readsAtOnce is how many files are read and verified at a time, of up to 8 MiB each.
	readsAtOnce = 8
	// piecesATurn are hashed before others may have the processor: a quarter of a millisecond or less.
	piecesATurn = 16
)

// disk is the lower tier of the store: bounded, and there after a restart.
type disk struct {
	dir    string
	limit  int64
	sink   metric.Sink
	log    *slog.Logger
	accept func(*certificate.Certificate) keeping
	reads  chan struct{} // bounds what is read at a time, and with it the memory

	mu    sync.Mutex
	bytes int64                        // guarded by mu
	byID  map[segment.ID]*list.Element // guarded by mu; values are *diskFile
	order *list.List                   // guarded by mu; front is the most recent
}

// keeping is what becomes of a file by its certificate.
type keeping int

const (
	bad     keeping = iota // withdrawn, or badly signed: the file is dropped
	unknown                // of a key that is not known, perhaps not yet: siblings say theirs when they beat
	good
)

// errUnknown is what a file is whose certificate cannot be verified now.
var errUnknown = errors.New("certificate is of an unknown key")

type diskFile struct {
	id   segment.ID
	name string
	size int64
}

// openDisk indexes what an earlier run left; content is verified when it is loaded.
func openDisk(dir string, limit int64, accept func(*certificate.Certificate) keeping, sink metric.Sink, log *slog.Logger) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("seed: store: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("seed: store: %w", err)
	}
	d := &disk{dir: dir, limit: limit, accept: accept, sink: sink, log: log, reads: make(chan struct{}, readsAtOnce), byID: map[segment.ID]*list.Element{}, order: list.New()}
	type found struct {
		diskFile
		used int64
	}
	var files []found
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		hexID, _, ok := strings.Cut(e.Name(), "-")
		id, err := segment.ParseID(hexID)
		if !ok || err != nil || !strings.HasSuffix(e.Name(), fileSuffix) {
			if strings.HasPrefix(e.Name(), ".new-") { // a write that a crash cut off
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
			continue
		}
		files = append(files, found{diskFile{id, e.Name(), info.Size()}, info.ModTime().UnixNano()})
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Compare(a.used, b.used) })
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range files {
		d.insert(&files[i].diskFile)
	}
	d.trim()
	return d, nil
}

// insert makes f the most recent file of its ID. Under mu.
func (d *disk) insert(f *diskFile) {
	if e := d.byID[f.id]; e != nil {
		if old := e.Value.(*diskFile); old.name != f.name {
			d.remove(old)
		} else {
			d.order.Remove(e)
			d.bytes -= old.size
		}
	}
	d.byID[f.id] = d.order.PushFront(f)
	d.bytes += f.size
}

// remove deletes a file. Under mu.
func (d *disk) remove(f *diskFile) {
	if e := d.byID[f.id]; e != nil && e.Value.(*diskFile) == f {
		d.order.Remove(e)
		delete(d.byID, f.id)
		d.bytes -= f.size
	}
	_ = os.Remove(filepath.Join(d.dir, f.name))
}

// trim makes room. Under mu.
func (d *disk) trim() {
	for d.bytes > d.limit && d.order.Len() > 0 {
		d.remove(d.order.Back().Value.(*diskFile))
		d.sink.Add(mEvictions, 1, "disk")
	}
	d.sink.Set(mStoreBytes, float64(d.bytes), "disk")
}

func (d *disk) save(h *held) error {
	raw := h.cert.Bytes()
	if int64(len(raw)+len(h.data)) > d.limit/2 {
		return nil // one segment must not push out everything
	}
	head := binary.BigEndian.AppendUint32([]byte(fileMagic), uint32(len(raw)))
	sum := sha256.New()
	for _, part := range [][]byte{head, raw, h.data} {
		sum.Write(part)
	}
	of := sha256.Sum256(raw)
	f := &diskFile{id: h.id, name: h.id.String() + "-" + hex.EncodeToString(of[:8]) + fileSuffix}
	f.size = int64(headBytes + len(raw) + len(h.data) + sha256.Size)
	if err := writeAtomic(filepath.Join(d.dir, f.name), false, head, raw, h.data, sum.Sum(nil)); err != nil {
		return fmt.Errorf("seed: store: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.insert(f)
	d.trim()
	return nil
}

// size is the length of a segment's file, 0 without one.
func (d *disk) size(id segment.ID) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byID[id]; e != nil {
		return e.Value.(*diskFile).size
	}
	return 0
}

// load reads and verifies a segment; what does not verify is deleted and counted.
func (d *disk) load(id segment.ID) *held {
	d.mu.Lock()
	e := d.byID[id]
	if e == nil {
		d.mu.Unlock()
		return nil
	}
	d.order.MoveToFront(e)
	f := e.Value.(*diskFile)
	d.mu.Unlock()
	d.reads <- struct{}{}
	defer func() { <-d.reads }()
	b, err := os.ReadFile(filepath.Join(d.dir, f.name))
	var h *held
	switch {
	case err == nil:
		h, err = d.verify(id, b)
	case !errors.Is(err, fs.ErrNotExist):
		d.log.Warn("a file of the store could not be read", "error", err)
		return nil // it may be sound: what is missing may be a file descriptor
	}
	if errors.Is(err, errUnknown) {
		return nil
	}
	if err != nil {
		d.log.Warn("a file of the store was dropped", "file", f.name, "error", err)
		d.sink.Add(mCorrupt, 1)
		d.mu.Lock()
		d.remove(f)
		d.trim()
		d.mu.Unlock()
		return nil
	}
	return h
}

// drop deletes a segment's file.
func (d *disk) drop(id segment.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byID[id]; e != nil {
		d.remove(e.Value.(*diskFile))
		d.trim()
	}
}

func (d *disk) verify(id segment.ID, b []byte) (*held, error) {
	if len(b) < headBytes+sha256.Size || string(b[:4]) != fileMagic {
		return nil, errors.New("not a file of this store")
	}
	body := b[:len(b)-sha256.Size]
	n := int64(binary.BigEndian.Uint32(b[4:]))
	if n > int64(len(body)-headBytes) {
		return nil, errors.New("certificate is longer than the file")
	}
	cert, err := certificate.Parse(body[headBytes : headBytes+n])
	if err != nil {
		return nil, err
	}
	data := body[headBytes+n:]
	switch {
	case segment.NewID(cert.Site, cert.Name) != id || int64(len(data)) != cert.Length:
		return nil, errors.New("certificate is of another segment")
	case !matches(cert, data):
		return nil, errors.New("pieces do not match the certificate")
	}
	switch d.accept(cert) {
	case good:
		return newHeld(id, cert, data), nil
	case unknown:
		return nil, errUnknown
	}
	return nil, errors.New("certificate is withdrawn or badly signed")
}

// matches compares a segment, of the length that its certificate has, with it. It lets others have the processor in between: uploads
// wait for nothing but that.
func matches(cert *certificate.Certificate, data []byte) bool {
	n := 0
	for piece := range slices.Chunk(data, segment.PieceSize) {
		if !cert.CheckPiece(n, piece) {
			return false
		}
		if n++; n%piecesATurn == 0 {
			runtime.Gosched()
		}
	}
	return n == len(cert.Digests)
}

// withdraw deletes files whose certificate is revoked; only their heads are read.
func (d *disk) withdraw(revoked func(*certificate.Certificate) bool) []segment.ID {
	d.mu.Lock()
	files := make([]*diskFile, 0, len(d.byID))
	for _, e := range d.byID {
		files = append(files, e.Value.(*diskFile))
	}
	d.mu.Unlock()
	var gone []segment.ID
	for _, f := range files {
		if cert := readCertificate(filepath.Join(d.dir, f.name)); cert != nil && !revoked(cert) {
			continue
		}
		d.mu.Lock()
		d.remove(f)
		d.trim()
		d.mu.Unlock()
		gone = append(gone, f.id)
	}
	return gone
}

func readCertificate(path string) *certificate.Certificate {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	b := make([]byte, headBytes+certificate.MaxSize)
	n, _ := f.ReadAt(b, 0)
	if n < headBytes {
		return nil
	}
	if size := int64(binary.BigEndian.Uint32(b[4:])); size <= int64(n-headBytes) {
		if c, err := certificate.Parse(b[headBytes : headBytes+size]); err == nil {
			return c
		}
	}
	return nil
}
