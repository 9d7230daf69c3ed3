package sibling

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Types of frames.
const (
	frameWorking = 0
	frameSegment = 1
	frameNone    = 2
)

// Answer is what comes of a question.
type Answer struct {
	Certificate []byte // nil: there is none
	Data        []byte // empty where the asking seed has the bytes
	None        peer.NoneReason
	Object      int64 // bytes of an object that is too large
}

// ErrMalformed is what Read returns for what no sibling says.
var ErrMalformed = errors.New("sibling: malformed answer")

// Working is the frame that says that the answer is being worked on.
func Working() []byte { return []byte{frameWorking} }

// Head is what the last frame begins with: all of it but the bytes of the segment, which are written behind it as they are.
func (a *Answer) Head() []byte {
	if a.Certificate == nil {
		return binary.BigEndian.AppendUint64([]byte{frameNone, byte(a.None)}, uint64(a.Object))
	}
	b := binary.BigEndian.AppendUint32([]byte{frameSegment}, uint32(len(a.Certificate)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.Data)))
	return append(b, a.Certificate...)
}

// Read reads the frames of an answer. accept judges the certificate, and how many bytes are announced, before memory is taken
// for them. An answer that breaks off is io.ErrUnexpectedEOF.
func Read(r io.Reader, accept func(certificate []byte, length int) error) (*Answer, error) {
	var kind [1]byte
	for {
		if err := full(r, kind[:]); err != nil {
			return nil, err
		}
		switch kind[0] {
		case frameWorking:
		case frameNone:
			return readNone(r)
		case frameSegment:
			return readSegment(r, accept)
		default:
			return nil, fmt.Errorf("%w: frame of type %d", ErrMalformed, kind[0])
		}
	}
}

func readNone(r io.Reader) (*Answer, error) {
	var b [9]byte
	if err := full(r, b[:]); err != nil {
		return nil, err
	}
	a := &Answer{None: peer.NoneReason(b[0])}
	object := binary.BigEndian.Uint64(b[1:])
	if a.None > peer.NoneTooFewViewers || (object > segment.MaxLength && object <= segment.MaxObject) != (a.None == peer.NoneTooLarge) ||
		a.None != peer.NoneTooLarge && object != 0 {
		return nil, fmt.Errorf("%w: none for reason %d, of %d bytes", ErrMalformed, b[0], object)
	}
	a.Object = int64(object)
	return a, nil
}

func readSegment(r io.Reader, accept func([]byte, int) error) (*Answer, error) {
	var b [8]byte
	if err := full(r, b[:]); err != nil {
		return nil, err
	}
	certificateLength, length := binary.BigEndian.Uint32(b[:4]), binary.BigEndian.Uint32(b[4:])
	if certificateLength == 0 || certificateLength > certificate.MaxSize || length > segment.MaxLength {
		return nil, fmt.Errorf("%w: a certificate of %d bytes, a segment of %d", ErrMalformed, certificateLength, length)
	}
	a := &Answer{Certificate: make([]byte, certificateLength)}
	if err := full(r, a.Certificate); err != nil {
		return nil, err
	}
	if err := accept(a.Certificate, int(length)); err != nil {
		return nil, err
	}
	if length > 0 {
		a.Data = make([]byte, length)
	}
	return a, full(r, a.Data)
}

// full fills b. An answer may not end before its last frame has.
func full(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) && len(b) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
