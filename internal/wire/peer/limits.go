package peer

// Limit names what a side of a link said too much of (spec/peer-protocol.md, "Rates").
type Limit string

// The limits.
const (
	LimitMessages     Limit = "messages"     // have, certificate-request, ping, promote, follow, place, part, enough and hold: each costs the other side a decision
	LimitRequests     Limit = "requests"     // pieces that were asked for and not sent, and subscriptions
	LimitHave         Limit = "have"         // entries of have
	LimitCertificates Limit = "certificates" // segments whose certificates were asked for
	LimitPings        Limit = "pings"
	LimitStrays       Limit = "strays" // answers to what was not asked, and what takes back or promotes that
	LimitData         Limit = "data"   // data that was not asked for, or that came in crumbs
)

// Limits lists the closed set.
var Limits = []Limit{LimitMessages, LimitRequests, LimitHave, LimitCertificates, LimitPings, LimitStrays, LimitData}

// Rate is how much of something a side may say: Burst at once, and PerSecond more each second.
type Rate struct{ Burst, PerSecond int64 }

// Rates of the buckets of a link.
var Rates = map[Limit]Rate{
	LimitMessages:     {1000, 200},
	LimitRequests:     {16384, 2048},
	LimitHave:         {8192, 512},
	LimitCertificates: {4096, 128},
	LimitPings:        {64, 4},
}

// Bounds beside the rates.
const (
	MaxStrays        = 256  // of answers and the like that a link survives
	MaxAsked         = 4096 // segments whose certificates one side waits for at a time
	MaxPieceMessages = 64   // data messages of one piece
	leastUnsolicited = 1024 // bytes that a message of unsolicited data counts as
)

// Unsolicited is what n bytes of unsolicited data in one message count as.
func Unsolicited(n int) int { return max(n, leastUnsolicited) }

// Entries is how many things a message names: what it costs of its bucket.
func Entries(m Message) int {
	switch m := m.(type) {
	case Have:
		return len(m.Entries)
	case CertificateRequest:
		return len(m.Segments)
	case Request:
		return len(m.Requests)
	case Cancel:
		return len(m.IDs)
	case Reject:
		return len(m.IDs)
	case Promote:
		return len(m.IDs)
	}
	return 1
}
