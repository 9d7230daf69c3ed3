package transfer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

var typesByName = map[string]peer.Type{
	"have": peer.TypeHave, "certificate-request": peer.TypeCertificateRequest, "certificate": peer.TypeCertificate,
	"certificate-none": peer.TypeCertificateNone, "request": peer.TypeRequest, "cancel": peer.TypeCancel,
	"reject": peer.TypeReject, "promote": peer.TypePromote, "ping": peer.TypePing, "pong": peer.TypePong,
	"follow": peer.TypeFollow, "place": peer.TypePlace, "subscribe": peer.TypeSubscribe, "unsubscribe": peer.TypeUnsubscribe,
	"end": peer.TypeEnd, "part": peer.TypePart, "enough": peer.TypeEnough, "hold": peer.TypeHold,
}

// TestVectorsOfRates reads spec/vectors/peer.json.
func TestVectorsOfRates(t *testing.T) {
	type rate struct {
		Name  string
		Limit peer.Limit
		Steps []struct {
			Do, Type                string
			Count, Times, At, Every int
		}
	}
	vectors := spec.Vectors[struct {
		Rates      []rate
		PartsRates []rate `json:"parts_rates"`
	}](t, "peer.json")
	for _, c := range append(vectors.Rates, vectors.PartsRates...) {
		var a allowance
		var over peer.Limit
		for _, s := range c.Steps {
			kind, known := typesByName[s.Type]
			for n := range s.Times {
				if over != "" {
					t.Fatalf("%s: beyond %s before the end", c.Name, over)
				}
				now := time.UnixMilli(int64(1_000_000 + s.At + n*s.Every))
				switch {
				case s.Do == "served":
					a.served()
				case !known:
					t.Fatalf("%s: type %q", c.Name, s.Type)
				case s.Do == "said":
					a.said(kind, s.Count)
				default:
					over = a.heard(kind, s.Count, now)
				}
			}
		}
		if over != c.Limit {
			t.Errorf("%s: beyond %q, want %q", c.Name, over, c.Limit)
		}
	}
}

// TestSessionsEndForMoreThanARate: of each kind a peer says as much as it may, and then one more.
func TestSessionsEndForMoreThanARate(t *testing.T) {
	for name, c := range map[string]struct {
		limit peer.Limit
		times int // that do not end it
		say   func(s *Session, n int)
	}{
		"20,000 requests for many pieces": {peer.LimitRequests, 16384 / 255, func(s *Session, n int) {
			m := peer.Request{}
			for i := range 255 {
				m.Requests = append(m.Requests, peer.PieceRequest{ID: uint32(255*n + i)})
			}
			s.Control(encode(m))
		}},
		"20,000 cancels of many": {peer.LimitStrays, 1, func(s *Session, _ int) { s.Control(encode(peer.Cancel{IDs: make([]uint32, 255)})) }},
		"rejects of nothing":     {peer.LimitStrays, 1, func(s *Session, _ int) { s.Control(encode(peer.Reject{IDs: make([]uint32, 255)})) }},
		"pongs without end":      {peer.LimitStrays, 256, func(s *Session, _ int) { s.Control(encode(peer.Pong{})) }},
		"certificates unasked":   {peer.LimitStrays, 256, func(s *Session, _ int) { s.Control(encode(peer.Certificate{Raw: []byte{1}})) }},
		"pings without end":      {peer.LimitPings, 64, func(s *Session, _ int) { s.Control(encode(peer.Ping{})) }},
		"announcements":          {peer.LimitHave, 8192 / 255, func(s *Session, _ int) { s.Control(encode(peer.Have{Entries: make([]peer.HaveEntry, 255)})) }},
		"talk":                   {peer.LimitMessages, 1000, func(s *Session, _ int) { s.Control(encode(peer.Have{Entries: make([]peer.HaveEntry, 1)})) }},
		"questions":              {peer.LimitCertificates, 4096 / 255, func(s *Session, _ int) { s.Control(encode(peer.CertificateRequest{Segments: make([]segment.ID, 255)})) }},
	} {
		now := time.Unix(100, 0)
		s, link, _ := newSession(&now)
		var over []peer.Limit
		s.Overrun = func(l peer.Limit) { over = append(over, l) }
		s.Control(encode(theirHello))
		for n := range c.times {
			c.say(s, n)
		}
		if link.ended != "" {
			t.Errorf("%s: ended %q within the rate", name, link.ended)
		}
		c.say(s, c.times)
		if bye, _ := link.bye.(peer.Bye); link.ended != peer.CloseLimit || bye.Reason != peer.ByeOverLimit || len(over) != 1 || over[0] != c.limit {
			t.Errorf("%s: ended %q, said %v, for %v", name, link.ended, link.bye, over)
		}
	}
}

// TestDataInCrumbsEndsTheLink: every message costs as much as a large one.
func TestDataInCrumbsEndsTheLink(t *testing.T) {
	newDownloading := func() (*Download, uint32) {
		d := NewDownload(func(peer.Message) {}, time.Now, nowhere{})
		target := &Target{Segment: segment.ID{1}, Certificate: &certificate.Certificate{Length: peer.PieceSize, Digests: make([][32]byte, 1)}}
		return d, d.Request(target, peer.Foreground, "test", 0)[0]
	}
	crumbs := func(d *Download, id uint32) (n int) {
		for n < 1<<20 {
			if err := d.Data(peer.Data{Request: id, Offset: uint16(n % peer.PieceSize), Payload: []byte{1}}); err != nil {
				return n
			}
			n++
		}
		return n
	}
	d, id := newDownloading()
	if n := crumbs(d, id); n != peer.MaxPieceMessages {
		t.Errorf("%d messages of one byte of a piece", n)
	}
	if n := crumbs(d, id+1); n != 1024 {
		t.Errorf("%d messages of one byte of nothing that was asked for", n)
	}
	d, id = newDownloading()
	d.Cancel(func(Order) bool { return true })
	if n := crumbs(d, id); n != peer.MaxPieceMessages+1024 {
		t.Errorf("%d messages of one byte of what was canceled", n)
	}
}

// nowhere is DownloadEvents that hear of nothing.
type nowhere struct{}

func (nowhere) Arrived(Order, []byte, bool) {}
func (nowhere) Wasted(int)                  {}

// TestAcksOfNothingEndTheLink.
func TestAcksOfNothingEndTheLink(t *testing.T) {
	b := newBench(nil)
	ack := make([]byte, 25)
	ack[0] = byte(peer.TypeAck)
	for n := range peer.MaxStrays {
		if err := b.up.Ack(ack); err != nil {
			t.Fatalf("ack %d: %v", n, err)
		}
	}
	if err := b.up.Ack(ack); err == nil {
		t.Error("acks of nothing go on for ever")
	}
}

// TestADownloadWithoutEndStaysWithinItsRate: what is sent may be asked for without end, however quick the link.
func TestADownloadWithoutEndStaysWithinItsRate(t *testing.T) {
	now := time.Unix(100, 0)
	s, link, _ := newSession(&now)
	s.Control(encode(theirHello))
	b := newBench(func(c *UploadConfig) { c.Session, c.Send = s, nil })
	for n := range uint32(5_000) { // 40,000 pieces in no time
		m := request(peer.Foreground, 8*n, 8*n+1, 8*n+2, 8*n+3, 8*n+4, 8*n+5, 8*n+6, 8*n+7)
		s.Control(encode(m))
		if err := b.up.Request(m); err != nil {
			t.Fatal(err)
		}
		b.work(100)
		b.link.data = nil
	}
	if link.ended != "" || b.c.served != 40_000 {
		t.Errorf("ended %q after %d pieces", link.ended, b.c.served)
	}
}
