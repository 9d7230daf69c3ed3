package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
)

// Limits of a recorded input: far above what a viewer has, low enough to decide at once.
const (
	maxRecord   = 4 << 20 // bytes
	maxPieces   = 512
	maxSegments = 256
	maxPeers    = 256
	maxRequests = 4096
	maxValue    = 1 << 40 // µs or bytes: products stay below 2^63, and below 2^53 for what really occurs
	// maxMoment is for moments that stand for never: a piece that is being checked, a peer whose case is open.
	maxMoment = 1<<53 - 1
)

// ParseInput reads a recorded input and refuses what no viewer records.
func ParseInput(b []byte) (schedule.Input, error) {
	var in schedule.Input
	if len(b) > maxRecord {
		return in, fmt.Errorf("recorded input: %d bytes; at most %d", len(b), maxRecord)
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return schedule.Input{}, fmt.Errorf("recorded input: %w", err)
	}
	if err := check(&in); err != nil {
		return schedule.Input{}, fmt.Errorf("recorded input: %w", err)
	}
	return in, nil
}

func check(in *schedule.Input) error {
	if len(in.Segments) > maxSegments || len(in.Peers) > maxPeers || len(in.Requests) > maxRequests {
		return errors.New("more segments, peers or requests than any viewer has")
	}
	p := in.Policy
	bounded := func(vs ...int64) bool {
		return !slices.ContainsFunc(vs, func(v int64) bool { return v < -1 || v > maxValue })
	}
	moment := func(v int64) bool { return v >= -1 && v <= maxMoment }
	ok := bounded(in.NowUs, in.CreditUs, in.SlowCreditUs, p.PatienceUs, p.CertPatienceUs, p.LinkPatienceUs, p.MaxWaitUs, p.PeerCap, p.SeedCap) &&
		p.UrgentPermille >= 0 && p.UrgentPermille <= 1_000_000
	for i := range in.Segments {
		s := &in.Segments[i]
		ok = ok && bounded(s.DeadlineUs, s.DurationUs, s.AskedUs, s.CertAskedUs, s.CertHeldUs, s.OriginUs) && s.Pieces >= 0 && s.Pieces <= maxPieces &&
			slices.IsSorted(s.Have)
	}
	for i := range in.Peers {
		q := &in.Peers[i]
		ok = ok && bounded(q.Rate, q.RTTUs, q.Queued) && moment(q.StalledUntilUs) && moment(q.BehindUntilUs) && q.Queued <= 1<<32 && (i == 0 || in.Peers[i-1].ID < q.ID)
		for _, h := range q.Holds {
			ok = ok && slices.IsSorted(h.Pieces)
		}
	}
	for i := range in.Requests {
		ok = ok && moment(in.Requests[i].ProgressUs)
	}
	if !ok {
		return errors.New("a value is out of range, or pieces or peers are not sorted")
	}
	return nil
}
