package netstat

// Experience is what AIM scores read. A negative value is not known.
type Experience struct {
	Loss     float64 // ratio
	Latency  float64 // ms
	Loaded   float64 // ms: the larger loaded latency of both directions
	Jitter   float64 // ms
	Download float64 // bit/s
	Upload   float64 // bit/s
}

// Score of one use of a line.
type Score struct {
	Points int    `json:"points"`
	Class  string `json:"class"` // bad, poor, average, good, great
}

// scale gives points by the first bound that a value is below.
type scale struct {
	bounds []float64
	points []int // one more than bounds
}

func (s scale) of(value float64) int {
	for i, b := range s.bounds {
		if value < b {
			return s.points[i]
		}
	}
	return s.points[len(s.bounds)]
}

var (
	lossScale    = scale{[]float64{0.01, 0.05, 0.25, 0.5}, []int{10, 5, 0, -10, -20}}
	latencyScale = scale{[]float64{10, 20, 50, 100, 500}, []int{20, 10, 5, 0, -10, -20}}
	jitterScale  = scale{[]float64{10, 20, 100, 500}, []int{10, 5, 0, -10, -20}}
	rateScale    = scale{[]float64{1e6, 1e7, 5e7, 1e8}, []int{0, 5, 10, 20, 30}}
)

var classes = []string{"bad", "poor", "average", "good", "great"}

// Scores are AIM's, of streaming, gaming and rtc. Uses that lack an input have none.
func (e Experience) Scores() map[string]Score {
	loss := 0
	if e.Loss >= 0 {
		loss = lossScale.of(e.Loss)
	}
	scores := map[string]Score{}
	if e.Latency < 0 || e.Loaded < 0 {
		return scores
	}
	base := loss + latencyScale.of(e.Latency) + latencyScale.of(e.Loaded-e.Latency)
	if e.Download >= 0 {
		scores["streaming"] = score(base+rateScale.of(e.Download), 15, 20, 40, 60)
	}
	scores["gaming"] = score(base, 5, 15, 25, 30)
	if e.Jitter >= 0 {
		scores["rtc"] = score(base+jitterScale.of(e.Jitter), 5, 15, 25, 40)
	}
	return scores
}

func score(points int, bounds ...int) Score {
	s := Score{Points: max(0, points)}
	class := 0
	for class < len(bounds) && s.Points >= bounds[class] {
		class++
	}
	s.Class = classes[class]
	return s
}
