package netstat

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// close says whether a result is a vector's number; the number of no result is nil.
func near(t *testing.T, what string, got float64, ok bool, want *float64, within float64) {
	t.Helper()
	if within == 0 {
		within = 1e-9
	}
	switch {
	case want == nil:
		if ok {
			t.Errorf("%s: %v, where there is none", what, got)
		}
	case !ok || math.Abs(got-*want) > within*math.Abs(*want):
		t.Errorf("%s: %v (%v), want %v", what, got, ok, *want)
	}
}

type recordVector struct {
	Name       string
	Sent       int64
	Arrivals   [][3]int64
	Lost       int64
	Duplicates int64
	Foreign    int64
	Distances  []int64
	Periods    []Period
	Reordered  []Late
	Jitter     *float64
	Delays     []int64
	DelayRange *int64 `json:"delay_range"`
	Worked     string
}

// UnmarshalJSON reads [first, length].
func (p *Period) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.First, &p.Length})
}

// UnmarshalJSON reads [sequence, extent, time, before].
func (l *Late) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&l.Sequence, &l.Extent, &l.Time, &l.Before})
}

// UnmarshalJSON reads [sent, received, echoed, returned].
func (e *Exchange) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&e.Sent, &e.Received, &e.Echoed, &e.Returned})
}

// UnmarshalJSON reads [points, class].
func (s *Score) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.Points, &s.Class})
}

// UnmarshalJSON reads [elapsed, bytes].
func (c *Count) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&c.Elapsed, &c.Bytes})
}

type vectors struct {
	About         string
	MaxThroughput []struct {
		Rate                 float64
		MTU                  int64
		V6, VLAN, Timestamps bool
		BPS                  *float64
		Within               float64
		Worked               string
	} `json:"max_throughput"`
	Windows []struct {
		Name      string
		Direction Direction
		Looks     []TCPInfo
		Bytes     *float64
	}
	Efficiency []struct {
		Sent, Retransmitted int64
		Percent             *float64
		Within              float64
		Worked              string
	}
	BufferDelay []struct {
		Average  float64
		Baseline int64
		Percent  *float64
		Worked   string
	} `json:"buffer_delay"`
	Transfer []struct {
		Bytes, Elapsed, MTU int64
		Rate                float64
		Timestamps          bool
		Ideal               *float64
		TimeRatio           *float64 `json:"time_ratio"`
		ThroughputRatio     *float64 `json:"throughput_ratio"`
		Worked              string
	}
	PathMTU []struct {
		SndMSS  int64 `json:"snd_mss"`
		Options int64
		V6      bool
		MTU     int64
		Worked  string
	} `json:"path_mtu"`
	Records []recordVector
	Clocks  []struct {
		Exchanges   []Exchange
		Offset      *int64
		Delay, At   int64
		Uncertainty [][2]int64
	}
	OneWay []struct {
		Delay, Uncertainty int64
		Reported           bool
	} `json:"one_way"`
	Percentiles []struct {
		Values   []int64
		P, Value int64
	}
	TrimmedMeans []struct {
		Values []int64
		Mean   *float64
	} `json:"trimmed_means"`
	RPM []struct {
		TCP, TLS, HTTP, Loaded []int64
		RPM                    *float64
	}
	Stable []struct {
		Values []float64
		Stable bool
	}
	AIM []struct {
		Loss, Latency, Loaded, Jitter, Download, Upload float64
		Scores                                          map[string]Score
	}
	TCPTests []struct {
		Name      string
		Direction Direction
		V6        bool
		RampUp    int64   `json:"ramp_up"`
		LinkRate  float64 `json:"link_rate"`
		Received  []Count
		Looks     [][]TCPInfo
		Figures   map[string]float64
	} `json:"tcp_tests"`
}

func load(t *testing.T) (v vectors) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(spec.Bytes(t, "netstat.json")))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectorsOfTCP(t *testing.T) {
	v := load(t)
	for _, c := range v.MaxThroughput {
		l := Link{Rate: c.Rate, MTU: c.MTU, V6: c.V6, VLAN: c.VLAN, Timestamps: c.Timestamps}
		near(t, "largest throughput", l.MaxThroughput(), true, c.BPS, c.Within)
	}
	for _, c := range v.Windows {
		near(t, "window: "+c.Name, InFlight(c.Direction, c.Looks), true, c.Bytes, 0)
	}
	for _, c := range v.Efficiency {
		p, ok := Efficiency(c.Sent, c.Retransmitted)
		near(t, "efficiency", p, ok, c.Percent, c.Within)
	}
	for _, c := range v.BufferDelay {
		p, ok := Delay(c.Average, c.Baseline)
		near(t, "buffer delay", p, ok, c.Percent, 0)
	}
	for _, c := range v.Transfer {
		x := Transfer{Bytes: c.Bytes, Elapsed: c.Elapsed, Link: Link{Rate: c.Rate, MTU: c.MTU, Timestamps: c.Timestamps}}
		near(t, "ideal time", x.Ideal(), true, c.Ideal, 0)
		r, ok := x.TimeRatio()
		near(t, "transfer time ratio", r, ok, c.TimeRatio, 0)
		r, ok = x.ThroughputRatio()
		near(t, "throughput ratio", r, ok, c.ThroughputRatio, 0)
	}
	for _, c := range v.PathMTU {
		if got := (TCPInfo{SndMSS: c.SndMSS, Options: c.Options}).MTU(c.V6); got != c.MTU {
			t.Errorf("MTU of %+v is %d", c, got)
		}
	}
	for _, c := range v.TCPTests {
		figures := TCPTest{Direction: c.Direction, V6: c.V6, RampUp: c.RampUp, LinkRate: c.LinkRate, Received: c.Received, Looks: c.Looks}.Figures()
		if len(figures) != len(c.Figures) {
			t.Errorf("%s: %d figures, want %d: %+v", c.Name, len(figures), len(c.Figures), figures)
		}
		for _, f := range figures {
			want, ok := c.Figures[f.Name]
			if !ok || f.Direction != c.Direction {
				t.Errorf("%s: %+v", c.Name, f)
				continue
			}
			near(t, c.Name+": "+f.Name, f.Value, true, &want, 0)
		}
	}
}

func TestVectorsOfRecords(t *testing.T) {
	for _, c := range load(t).Records {
		r := Record{Sent: c.Sent}
		for _, a := range c.Arrivals {
			r.Arrivals = append(r.Arrivals, Arrival{a[0], a[1], a[2]})
		}
		p := r.Pattern()
		if p.Lost != c.Lost || p.Duplicates != c.Duplicates || p.Foreign != c.Foreign ||
			!slices.Equal(p.Distances, c.Distances) || !slices.Equal(p.Periods, c.Periods) || !slices.Equal(p.Reordered, c.Reordered) {
			t.Errorf("%s: %+v", c.Name, p)
		}
		if c.Jitter != nil {
			near(t, c.Name+": jitter", p.Jitter(), true, c.Jitter, 0)
		}
		if c.Delays != nil && !slices.Equal(p.Delays(0), c.Delays) {
			t.Errorf("%s: delays %v", c.Name, p.Delays(0))
		}
		if c.DelayRange != nil && p.DelayRange() != *c.DelayRange {
			t.Errorf("%s: delay range %d", c.Name, p.DelayRange())
		}
	}
}

func TestVectorsOfClocks(t *testing.T) {
	v := load(t)
	for i, c := range v.Clocks {
		o, ok := Clocks(c.Exchanges)
		if ok != (c.Offset != nil) || ok && o != (Offset{*c.Offset, c.Delay, c.At}) {
			t.Errorf("clocks %d: %+v", i, o)
		}
		for _, u := range c.Uncertainty {
			if got := o.Uncertainty(u[0]); got != u[1] {
				t.Errorf("clocks %d: uncertainty at %d is %d, want %d", i, u[0], got, u[1])
			}
		}
	}
	for _, c := range v.OneWay {
		if OneWay(c.Delay, c.Uncertainty) != c.Reported {
			t.Errorf("one way: %+v", c)
		}
	}
	for _, c := range v.Percentiles {
		if got := Percentile(c.Values, c.P); got != c.Value {
			t.Errorf("percentile: %+v is %d", c, got)
		}
	}
}

func TestVectorsOfResponsiveness(t *testing.T) {
	v := load(t)
	for _, c := range v.TrimmedMeans {
		m, ok := TrimmedMean(c.Values)
		near(t, "trimmed mean", m, ok, c.Mean, 0)
	}
	for _, c := range v.RPM {
		r, ok := Probes{c.TCP, c.TLS, c.HTTP, c.Loaded}.RPM()
		near(t, "RPM", r, ok, c.RPM, 0)
	}
	for _, c := range v.Stable {
		if got := Stable(c.Values); got != c.Stable {
			t.Errorf("%v are stable: %v", c.Values, got)
		}
	}
	for _, c := range v.AIM {
		got := Experience{c.Loss, c.Latency, c.Loaded, c.Jitter, c.Download, c.Upload}.Scores()
		if !reflect.DeepEqual(got, c.Scores) {
			t.Errorf("scores of %+v are %+v", c, got)
		}
	}
}
