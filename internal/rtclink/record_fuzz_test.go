package rtclink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"
)

// datagramList is a path: what is written is kept, and what is to be read is given.
type datagramList struct {
	datagrams
	in, out [][]byte
}

func (d *datagramList) Read(p []byte) (int, error) {
	if len(d.in) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, d.in[0])
	d.in = d.in[1:]
	return n, nil
}

func (d *datagramList) Write(p []byte) (int, error) {
	d.out = append(d.out, bytes.Clone(p))
	return len(p), nil
}

func (d *datagramList) SetReadDeadline(time.Time) error { return nil }

// fuzzRecords are records over d under a key that a test knows.
func fuzzRecords(t testing.TB, d *datagramList) *records {
	gcm, err := newGCM(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	k := &keys{read: gcm, write: gcm, readIV: [4]byte{1, 2, 3, 4}, writeIV: [4]byte{1, 2, 3, 4}}
	return newRecords(d, k, func() ([][]byte, error) { return nil, nil }, func() {}, func() {})
}

// FuzzRecordsRead: whatever a path does to records, what is read was written, and once.
func FuzzRecordsRead(f *testing.F) {
	const many = 80 // more than the replay window
	sent := &datagramList{}
	w := fuzzRecords(f, sent)
	for i := range many {
		if _, err := w.Write([]byte{byte(i), 'x'}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte{0, 1, 0, 2, 0, 3})
	f.Add([]byte{0, 1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 0, 79, 0, 5, 0, 15})
	f.Add([]byte{5, 23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 24, 1, 2, 3})
	f.Add(append([]byte{5}, bytes.Repeat([]byte{22}, 100)...))
	f.Fuzz(func(t *testing.T, program []byte) {
		d := &datagramList{}
		for len(program) >= 2 && len(d.in) < 400 {
			op, arg := program[0], program[1]
			program = program[2:]
			p := bytes.Clone(sent.out[int(arg)%many])
			switch op % 6 {
			case 0: // in any order, and again
			case 1:
				p[int(op/6)%len(p)] ^= 1 << (arg % 8)
			case 2:
				p = p[:int(op/6)%len(p)]
			case 3:
				p = append(p, sent.out[int(op/6)%many]...)
			case 4: // under another number
				binary.BigEndian.PutUint16(p[9:], uint16(op)<<8|uint16(arg))
			case 5:
				p, program = append([]byte{arg}, program...), nil
			}
			d.in = append(d.in, p)
		}
		r, buf := fuzzRecords(t, d), make([]byte, maxDatagram)
		var read [many]bool
		for {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			if n != 2 || buf[1] != 'x' || buf[0] >= many || read[buf[0]] {
				t.Fatalf("%x was read; it was not written, or is there again", buf[:n])
			}
			read[buf[0]] = true
		}
	})
}

// FuzzRecordsWrite: what is written is DTLS, opens under the key with the nonce that it names, and no nonce is there twice.
func FuzzRecordsWrite(f *testing.F) {
	f.Add([]byte{0, 0, 1, 255, 7, 219, 7, 220, 255, 255})
	f.Fuzz(func(t *testing.T, sizes []byte) {
		d := &datagramList{}
		r := fuzzRecords(t, d)
		var want [][]byte
		for ; len(sizes) >= 2 && len(want) < 200; sizes = sizes[2:] {
			p := bytes.Repeat(sizes[:1], int(binary.BigEndian.Uint16(sizes)))
			_, err := r.Write(p)
			if fits := len(p) <= maxDatagram-recordCost; fits != (err == nil) {
				t.Fatalf("%d bytes: %v", len(p), err)
			} else if fits {
				want = append(want, p)
			}
		}
		_ = r.Close()
		if _, err := r.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("written after the end: %v", err)
		}
		want = append(want, []byte{1, alertCloseNotify})
		if len(d.out) != len(want) {
			t.Fatalf("%d records of %d", len(d.out), len(want))
		}
		for i, b := range d.out {
			content := byte(contentApplication)
			if i == len(want)-1 {
				content = contentAlert
			}
			number := 1<<48 | firstSequence + uint64(i)
			if b[0] != content || binary.BigEndian.Uint16(b[1:]) != dtls12 || binary.BigEndian.Uint64(b[3:]) != number ||
				int(binary.BigEndian.Uint16(b[11:])) != len(b)-recordHeader || binary.BigEndian.Uint64(b[recordHeader:]) != number {
				t.Fatalf("record %d begins with %x", i, b[:recordHeader+explicit])
			}
			nonce := append([]byte{1, 2, 3, 4}, b[recordHeader:recordHeader+explicit]...)
			aad := append(bytes.Clone(b[3:11]), content, 0xfe, 0xfd, byte(len(want[i])>>8), byte(len(want[i])))
			if plain, err := r.opener.key.Open(nil, nonce, b[recordHeader+explicit:], aad); err != nil || !bytes.Equal(plain, want[i]) {
				t.Fatalf("record %d carries %x, %v", i, plain, err)
			}
		}
	})
}

// TestRecordNumbersEnd: the number behind the last one would be of another epoch.
func TestRecordNumbersEnd(t *testing.T) {
	d := &datagramList{}
	r := fuzzRecords(t, d)
	r.sequence = lastSequence
	say(t, r, "the last")
	if _, err := r.Write([]byte("one more")); !errors.Is(err, errNumbers) {
		t.Errorf("%v", err)
	}
	_ = r.Close()
	if len(d.out) != 1 || binary.BigEndian.Uint64(d.out[0][3:]) != 1<<49-1 {
		t.Errorf("%x", d.out)
	}
}

// TestNoncesOfHandshakeAndDataNeverMeet: a server's last flight is asked for again and again while it sends data; of all that goes out
// under one key no nonce is there twice (docs/records.md).
func TestNoncesOfHandshakeAndDataNeverMeet(t *testing.T) {
	leakCheck(t)
	cw, sw := wires(t)
	c, s := shake(t, cw, sw)
	cw.mu.Lock()
	var last []byte // a record of the client's flight that the server answers with its last, which no key protects
	for _, b := range cw.sent {
		if b[0] == contentHandshake && binary.BigEndian.Uint16(b[3:]) == 0 {
			last = bytes.Clone(b[:recordHeader+int(binary.BigEndian.Uint16(b[recordHeader-2:]))])
		}
	}
	cw.mu.Unlock()
	number := uint64(1000)
	again := func(times int) {
		for range times {
			binary.BigEndian.PutUint64(last[3:], number)
			number++
			if _, err := cw.Conn.Write(last); err != nil {
				t.Fatal(err)
			}
		}
	}
	again(firstSequence + 8)
	for range 100 {
		say(t, s, "data")
		expect(t, c, "data")
	}
	again(8)
	say(t, c, "the handshake is over")
	expect(t, s, "the handshake is over")
	_ = s.Close()
	_ = c.Close()
	for _, w := range []*wire{cw, sw} {
		used, handshake, data := map[uint64][]byte{}, 0, 0
		w.mu.Lock()
		for _, b := range w.sent {
			for len(b) >= recordHeader {
				n := recordHeader + int(binary.BigEndian.Uint16(b[recordHeader-2:]))
				record := b[:n]
				b = b[n:]
				if binary.BigEndian.Uint16(record[3:]) == 0 {
					continue // under no key
				}
				nonce := binary.BigEndian.Uint64(record[recordHeader:])
				if nonce != binary.BigEndian.Uint64(record[3:]) {
					t.Errorf("number %x, nonce %x", record[3:11], nonce)
				}
				if before, twice := used[nonce]; twice && !bytes.Equal(before, record) {
					t.Errorf("nonce %x is there twice", nonce)
				}
				used[nonce] = record
				if record[0] == contentHandshake {
					handshake++
				} else {
					data++
				}
			}
		}
		w.mu.Unlock()
		if handshake == 0 || data == 0 || w == sw && handshake < 2 {
			t.Errorf("%d records of the handshake, %d of data", handshake, data)
		}
	}
}
