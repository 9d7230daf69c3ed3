package probe

import "github.com/leeway-video/leeway/internal/metric"

// The tests.
const (
	ndt7Download = "ndt7-download"
	ndt7Upload   = "ndt7-upload"
	httpDownload = "http-download"
	httpUpload   = "http-upload"
	qualityTest  = "quality"
)

// How a test ended.
const (
	endComplete = "complete" // its time or its bytes are over
	endClient   = "client"   // the client closed before, or is gone
	endBytes    = "bytes"    // the address has used up what it may have in a day
	endProtocol = "protocol" // the client sent what it must not
	endTimeout  = "timeout"  // it was cut after 13 seconds
	endDraining = "draining" // it was cut as the server ended
)

// Why a request was refused.
const (
	refusedTotal    = "total"
	refusedAddress  = "address"
	refusedBytes    = "bytes"
	refusedToken    = "token"
	refusedProtocol = "protocol"
	refusedDraining = "draining"
	refusedHalfOpen = "half-open"
)

var (
	tests   = []string{ndt7Download, ndt7Upload, httpDownload, httpUpload, qualityTest}
	byTest  = metric.Label{Name: "test", Values: tests}
	byNDT7  = metric.Label{Name: "test", Values: tests[:2]}
	endings = []string{endComplete, endClient, endBytes, endProtocol, endTimeout, endDraining}
	// refusals has those of the listener, too.
	refusals = []string{refusedTotal, refusedAddress, refusedBytes, refusedToken, refusedProtocol, refusedDraining, refusedHalfOpen, "rate", "proxy"}
)

// The metrics of a probe server (spec/metrics.md).
var (
	mRunning = &metric.Def{Name: "leeway_probe_running_tests", Help: "Tests under way", Kind: metric.Gauge, Labels: []metric.Label{byTest}}
	mTests   = &metric.Def{Name: "leeway_probe_tests_total", Help: "Tests that have ended, by how", Kind: metric.Counter,
		Labels: []metric.Label{byTest, {Name: "outcome", Values: endings}}}
	mRefused = &metric.Def{Name: "leeway_probe_refused_total", Help: "Requests and connections refused", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: refusals}}}
	mBytes = &metric.Def{Name: "leeway_probe_bytes_total", Help: "Bytes of tests", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "direction", Values: []string{"up", "down"}}}}
	mRetransmitted = &metric.Def{Name: "leeway_probe_retransmitted_bytes_total", Help: "Bytes of ndt7 downloads that the kernel sent again", Kind: metric.Counter}
	mReports       = &metric.Def{Name: "leeway_probe_client_reports_total", Help: "Text messages of clients", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{"taken", "malformed"}}}}
	mMinRTT = &metric.Def{Name: "leeway_probe_min_rtt_seconds", Help: "Smallest round-trip time of a test", Kind: metric.Histogram,
		Labels: []metric.Label{byNDT7}, Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}}
)

// Metrics lists what a probe server counts.
func Metrics() []*metric.Def {
	return []*metric.Def{mRunning, mTests, mRefused, mBytes, mRetransmitted, mReports, mMinRTT}
}
