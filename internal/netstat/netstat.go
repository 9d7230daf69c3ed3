// Package netstat computes what the network check reports (spec/probe.md, Figures): throughput figures of RFC 6349 from the
// kernel's TCP_INFO, loss patterns of RFC 3357, reordering of RFC 4737, jitter of RFC 3550, delays and their uncertainty,
// responsiveness under load, and AIM scores.
//
// Times are microseconds and sizes are bytes, as integers; rates are bit/s. The TypeScript twin is
// web/packages/netcheck/src/netstat; both read spec/vectors/netstat.json.
package netstat

// Direction says which way a figure is about.
type Direction string

// The directions. Up is from the client to the server.
const (
	Up        Direction = "up"
	Down      Direction = "down"
	RoundTrip Direction = "round-trip"
)

// Source says where a figure comes from.
type Source string

// The sources.
const (
	FromReceiver Source = "receiver" // bytes and times that the receiving end counted
	FromTCPInfo  Source = "tcp-info" // the kernel of the server
	FromChannel  Source = "channel"  // messages of a data channel
	FromHTTP     Source = "http"     // requests and responses
	FromLane     Source = "lane"     // a load that gives way
)

// Kind is what is known of a figure by its name.
type Kind struct {
	Name   string
	Unit   string
	Source Source
}

// The kinds of figures, a closed set (spec/probe.md has their meanings).
var (
	Throughput           = Kind{"throughput", "bit/s", FromReceiver}
	BaselineRTT          = Kind{"baseline_rtt", "s", FromTCPInfo}
	LoadedRTT            = Kind{"loaded_rtt", "s", FromTCPInfo}
	RTTRange             = Kind{"rtt_range", "s", FromTCPInfo}
	TransferTimeRatio    = Kind{"transfer_time_ratio", "ratio", FromReceiver}
	ThroughputRatio      = Kind{"throughput_ratio", "ratio", FromReceiver}
	TCPEfficiency        = Kind{"tcp_efficiency", "percent", FromTCPInfo}
	BufferDelay          = Kind{"buffer_delay", "percent", FromTCPInfo}
	Window               = Kind{"window", "B", FromTCPInfo}
	AchievableThroughput = Kind{"achievable_throughput", "bit/s", FromTCPInfo}
	PathMTU              = Kind{"path_mtu", "B", FromTCPInfo}
	Loss                 = Kind{"loss", "ratio", FromChannel}
	LossDistance         = Kind{"loss_distance", "messages", FromChannel}
	LossPeriod           = Kind{"loss_period", "messages", FromChannel}
	Duplicates           = Kind{"duplicates", "ratio", FromChannel}
	Reordered            = Kind{"reordered", "ratio", FromChannel}
	ReorderExtent        = Kind{"reorder_extent", "messages", FromChannel}
	Jitter               = Kind{"jitter", "s", FromChannel}
	DelayRange           = Kind{"delay_range", "s", FromChannel}
	OneWayDelay          = Kind{"one_way_delay", "s", FromChannel}
	RoundTripTime        = Kind{"round_trip", "s", FromChannel}
	Responsiveness       = Kind{"responsiveness", "round trips/min", FromHTTP}
	// RequestResponsiveness has requests on the loaded connections where Responsiveness has their round-trip times.
	RequestResponsiveness = Kind{"request_responsiveness", "round trips/min", FromHTTP}
	FreeCapacity          = Kind{"free_capacity", "bit/s", FromLane}
)

// Kinds lists them in the order of the specification.
var Kinds = []Kind{
	Throughput, BaselineRTT, LoadedRTT, RTTRange, TransferTimeRatio, ThroughputRatio, TCPEfficiency, BufferDelay, Window, AchievableThroughput, PathMTU,
	Loss, LossDistance, LossPeriod, Duplicates, Reordered, ReorderExtent, Jitter, DelayRange, OneWayDelay, RoundTripTime, Responsiveness,
	RequestResponsiveness, FreeCapacity,
}

// Figure is one result of a check.
type Figure struct {
	Name      string    `json:"name"`
	Direction Direction `json:"direction"`
	Value     float64   `json:"value"`
	Unit      string    `json:"unit"`
	Source    Source    `json:"source"`
}

// Of makes a figure of a kind.
func (k Kind) Of(d Direction, value float64) Figure {
	return Figure{Name: k.Name, Direction: d, Value: value, Unit: k.Unit, Source: k.Source}
}

// seconds of microseconds.
func seconds(us int64) float64 { return float64(us) / 1e6 }
