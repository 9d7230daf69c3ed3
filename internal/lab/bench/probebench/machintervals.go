package probebench

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/leeway-video/leeway/internal/netstat"
)

// machInterval is what mach says at the end of an interval: its moving average of the goodput, and the RPM of the last four.
type machInterval struct{ goodput, rpm float64 }

var (
	machColors = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	machBegins = regexp.MustCompile(`running (download|upload) test`)
	machEnds   = regexp.MustCompile(`interval finished interval=\d+ loads=\d+ throughput="([0-9.]+) ([kMG]?)bits?" rpm=([0-9.]+)`)
	machUnits  = map[string]float64{"": 1, "k": 1e3, "M": mbit, "G": 1e9}
	machWays   = map[string]netstat.Direction{"download": netstat.Down, "upload": netstat.Up}
)

// machIntervals reads what mach says of its intervals, by direction.
func machIntervals(said []byte) (map[netstat.Direction][]machInterval, error) {
	all := map[netstat.Direction][]machInterval{}
	var way netstat.Direction
	lines := bufio.NewScanner(bytes.NewReader(machColors.ReplaceAll(said, nil)))
	for lines.Scan() {
		if m := machBegins.FindSubmatch(lines.Bytes()); m != nil {
			way = machWays[string(m[1])]
		}
		m := machEnds.FindSubmatch(lines.Bytes())
		if m == nil {
			continue
		}
		goodput, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("an interval of mach: %w", err)
		}
		rpm, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("an interval of mach: %w", err)
		}
		all[way] = append(all[way], machInterval{goodput * machUnits[string(m[2])], rpm})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("what mach says: %w", err)
	}
	for _, d := range twoWays {
		if n := len(all[d]); n <= netstat.MovingAverage || all[d][n-1].rpm <= 0 {
			return nil, fmt.Errorf("mach says of %d intervals %s, without a figure at the end", n, d)
		}
	}
	return all, nil
}

// byDraft is the figure of a test that ends as the draft has it: once the goodput rests, as soon as the figures from then on do; else
// the last one.
func byDraft(list []machInterval) float64 {
	var goodputs, figures []float64
	rests := false
	for _, one := range list {
		goodputs = append(goodputs, one.goodput)
		if rests = rests || netstat.Stable(goodputs); !rests {
			continue
		}
		if figures = append(figures, one.rpm); netstat.Stable(figures) {
			return one.rpm
		}
	}
	return list[len(list)-1].rpm
}

// byMach is the figure of a test that ends as mach has it: as soon as the goodput and the figures have each come to rest once, those of
// intervals in which the goodput still grew included. It looks at one interval more than the draft.
func byMach(list []machInterval) float64 {
	const span = netstat.MovingAverage + 1
	rests, found := false, 0.0
	for i, one := range list {
		last := list[max(0, i+1-span) : i+1]
		goodputs, figures := make([]float64, len(last)), make([]float64, len(last))
		for k, v := range last {
			goodputs[k], figures[k] = v.goodput, v.rpm
		}
		rests = rests || netstat.Spread(goodputs) < netstat.Tolerance*one.goodput
		if netstat.Spread(figures) < netstat.Tolerance*one.rpm {
			found = one.rpm
		}
		if rests && found > 0 {
			return found
		}
	}
	if found > 0 {
		return found
	}
	n := len(list)
	return (list[n-1].rpm + list[n-2].rpm) / 2
}
