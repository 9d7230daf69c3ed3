package swarm

import "time"

// The times of a Balance (spec/cluster.md, "What peers save").
const (
	balanceSettles  = 20 * time.Second // after a trial began, in which nothing counts: viewers report later than seeds fetch
	balanceWindow   = time.Minute
	balanceLosses   = 2 // windows in a row that cost more than they save, until a title rests
	balanceRest     = 10 * time.Minute
	balanceMostRest = 80 * time.Minute
	balanceRevives  = 2 // times the viewers that a title had when it began to rest, for which it is tried again at once
)

// Flows are what a title has cost and saved an operator's servers: counters, bytes.
type Flows struct {
	Cost  int64 // what a seed fetched for its viewers, and sent to them by relays
	Saved int64 // what viewers had from each other without a relay, by the word of both
}

// Balance decides whether peers save a title more than they cost. The zero value is of a title whose peers have not been tried.
type Balance struct {
	from    Flows         // counters when the window began
	began   time.Time     // of the window, or when it will begin; zero: at the next look
	lost    int           // windows in a row that cost more than they saved
	rest    time.Duration // that the title rests, or rested last; 0 once peers have saved more than they cost
	until   time.Time     // of the rest; zero: the title does not rest
	viewers int           // when the rest began
}

// Rests says whether the title rests.
func (b *Balance) Rests() bool { return !b.until.IsZero() }

// Look takes in how the counters stand, and says whether the title has begun to rest, or has ended to.
func (b *Balance) Look(f Flows, viewers int, now time.Time) (changed bool) {
	switch {
	case b.Rests():
		if now.Before(b.until) && viewers < balanceRevives*b.viewers {
			return false
		}
		b.until, b.lost = time.Time{}, balanceLosses-1
		b.settle(f, now)
		return true
	case b.began.IsZero():
		b.settle(f, now)
		return false
	case now.Before(b.began):
		b.from = f
		return false
	}
	cost, saved := f.Cost-b.from.Cost, f.Saved-b.from.Saved
	switch {
	case cost < 0 || saved < 0: // a counter began anew
		b.began, b.from = now, f
		return false
	case now.Sub(b.began) < balanceWindow:
		return false
	case cost > saved:
		b.lost++
	default:
		b.lost, b.rest = 0, 0
	}
	b.began, b.from = now, f
	if b.lost < balanceLosses {
		return false
	}
	b.rest = min(max(balanceRest, 2*b.rest), balanceMostRest)
	b.until, b.viewers = now.Add(b.rest), viewers
	return true
}

// settle has the next window begin in a while.
func (b *Balance) settle(f Flows, now time.Time) {
	b.began, b.from = now.Add(balanceSettles), f
}
