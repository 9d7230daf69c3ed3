package load

import "github.com/leeway-video/leeway/internal/metric"

var (
	states = []string{"connected", "opened", "failed", "lost"}
	sides  = []string{"arms", "peer"}

	metricClients = &metric.Def{
		Name: "leeway_load_clients", Kind: metric.Gauge, Labels: []metric.Label{{Name: "state", Values: states}},
		Help: "Clients of the run: connected now; opened, failed and lost since its beginning.",
	}
	metricArms = &metric.Def{Name: "leeway_load_arms", Kind: metric.Gauge, Help: "Arms that are there."}
	metricCPU  = &metric.Def{
		Name: "leeway_load_processors", Kind: metric.Gauge, Labels: []metric.Label{{Name: "side", Values: sides}}, Help: "Processors in use over the last second.",
	}
	metricMemory = &metric.Def{
		Name: "leeway_load_resident_bytes", Kind: metric.Gauge, Labels: []metric.Label{{Name: "side", Values: sides}}, Help: "Memory of all arms together, and of the peer.",
	}
	metricReceived = &metric.Def{Name: "leeway_load_received_bits_per_second", Kind: metric.Gauge, Help: "Payload that arms and peer received in the last second."}
	metricJoin     = &metric.Def{Name: "leeway_load_join_p99_seconds", Kind: metric.Gauge, Help: "Time to connect of the clients of the last second, 99th percentile."}
	metricChunk    = &metric.Def{Name: "leeway_load_chunk_p99_seconds", Kind: metric.Gauge, Help: "Delay of the chunks of the last second, 99th percentile."}
	metricNACKs    = &metric.Def{Name: "leeway_load_nacks", Kind: metric.Gauge, Help: "Packets asked for again in the last second."}
	metricLag      = &metric.Def{Name: "leeway_load_lag_p99_seconds", Kind: metric.Gauge, Help: "How late the clock ticks of the latest arm came, 99th percentile."}
	metricSpoiled  = &metric.Def{Name: "leeway_load_spoiled_seconds_total", Kind: metric.Counter, Help: "Seconds from which nothing is claimed, since the arms were themselves the bottleneck."}
)

// Metrics lists what a run counts.
func Metrics() []*metric.Def {
	return []*metric.Def{metricClients, metricArms, metricCPU, metricMemory, metricReceived, metricJoin, metricChunk, metricNACKs, metricLag, metricSpoiled}
}

// Count tells a sink of a sample.
func (s Sample) Count(to metric.Sink) {
	for state, n := range map[string]int64{"connected": s.Up, "opened": s.Opened, "failed": s.Failed, "lost": s.Lost} {
		to.Set(metricClients, float64(n), state)
	}
	to.Set(metricArms, float64(s.Arms))
	to.Set(metricCPU, s.ArmCPU, "arms")
	to.Set(metricCPU, s.PeerCPU, "peer")
	to.Set(metricMemory, float64(s.ArmRSS), "arms")
	to.Set(metricMemory, float64(s.PeerRSS), "peer")
	to.Set(metricReceived, s.Received)
	to.Set(metricJoin, s.Join)
	to.Set(metricChunk, s.Chunk)
	to.Set(metricNACKs, float64(s.NACKs))
	to.Set(metricLag, s.Lag)
	if len(s.Spoiled) > 0 {
		to.Add(metricSpoiled, 1)
	}
}
