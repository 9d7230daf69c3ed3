package armwire

// ErrorBody is the body of an error reply.
type ErrorBody struct{ Error }

func (b *ErrorBody) check() *Error {
	if b.Code == "" || len(b.Code) > MaxName || len(b.Reason) > 4*MaxText || len(b.Field) > MaxText {
		return badField("code", "a code of 1 to %d bytes and a reason", MaxName)
	}
	return nil
}

// ICEStateBody is of ice-state: new, checking, connected, completed, disconnected, failed, closed.
type ICEStateBody struct {
	State string `json:"state"`
}

func (b *ICEStateBody) check() *Error { return shortText("state", b.State) }

// PairBody is of selected-pair: addresses and ports.
type PairBody struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
}

func (b *PairBody) check() *Error {
	if err := shortText("local", b.Local); err != nil {
		return err
	}
	return shortText("remote", b.Remote)
}

// UpBody is of webrtcup.
type UpBody struct {
	Took int64 `json:"took_us"` // since the peer's description was handed in
}

func (b *UpBody) check() *Error {
	if b.Took < 0 {
		return badField("took_us", "below 0")
	}
	return nil
}

// MediaBody is of media: audio, video or data begins to come, or has stopped.
type MediaBody struct {
	Kind      string `json:"kind"`
	Receiving bool   `json:"receiving"`
}

func (b *MediaBody) check() *Error { return shortText("kind", b.Kind) }

// RecordingBody is of recording.
type RecordingBody struct {
	State string `json:"state"` // started, completed, failed
	File  string `json:"file,omitempty"`
}

func (b *RecordingBody) check() *Error { return shortText("state", b.State) }

// HangupBody is of the event hangup.
type HangupBody struct {
	Reason string `json:"reason"` // hangup, destroyed, failed, timeout, closed, ending
}

func (b *HangupBody) check() *Error { return shortText("reason", b.Reason) }

func shortText(field, s string) *Error {
	if s == "" || len(s) > MaxText {
		return badField(field, "1 to %d bytes", MaxText)
	}
	return nil
}

// StateBody is the reply to get-state of one session.
type StateBody struct {
	Phase    string        `json:"phase"` // created, offering, answering, connecting, up, down
	Stack    Stack         `json:"stack"`
	Source   string        `json:"source,omitempty"`
	Sent     int64         `json:"sent_bytes"` // of chunks or RTP payload
	Received int64         `json:"received_bytes"`
	Chunks   int64         `json:"chunks,omitempty"` // received
	NACKs    int64         `json:"nacks,omitempty"`  // packets asked for again, by this side and by the peer
	Lost     int64         `json:"lost,omitempty"`   // RTP packets
	Viewer   *ViewerReport `json:"viewer,omitempty"`
}

func (b *StateBody) check() *Error { return shortText("phase", b.Phase) }

// ViewerReport is of a session that is a viewer.
type ViewerReport struct {
	Ended   string `json:"ended,omitempty"`
	Error   string `json:"error,omitempty"`
	Startup int64  `json:"startup_ms"`
	Played  int64  `json:"played_ms"`
	Stalled int64  `json:"stalled_ms"`
	Origin  int64  `json:"origin_bytes"`
	Peers   int64  `json:"peer_bytes"` // from viewers and seeds
}

// StatisticsBody is of statistics, and the reply to get-state without a session. Counts are since the arm registered.
type StatisticsBody struct {
	At       int64          `json:"at_us"` // Unix
	Sessions SessionCounts  `json:"sessions"`
	Traffic  TrafficCounts  `json:"traffic"`
	Delays   Delays         `json:"delays"`
	Viewers  *ViewerCounts  `json:"viewers,omitempty"`
	Machine  MachineFigures `json:"machine"`
}

func (b *StatisticsBody) check() *Error {
	if b.At <= 0 {
		return badField("at_us", "not a time")
	}
	if len(b.Delays.Setup)+len(b.Delays.Chunk)+len(b.Delays.Start) > MaxMessage/2 {
		return badField("delays", "too large")
	}
	return nil
}

// SessionCounts are of an arm's sessions.
type SessionCounts struct {
	Now    int   `json:"now"` // created and not destroyed
	Up     int   `json:"up"`  // with a connection
	Opened int64 `json:"opened"`
	Failed int64 `json:"failed"` // connections that did not come up
	Lost   int64 `json:"lost"`   // that went down by themselves
}

// TrafficCounts are of chunks and of media.
type TrafficCounts struct {
	SentBytes       int64 `json:"sent_bytes"`
	ReceivedBytes   int64 `json:"received_bytes"`
	SentChunks      int64 `json:"sent_chunks"`
	ReceivedChunks  int64 `json:"received_chunks"`
	HeldChunks      int64 `json:"held_chunks"`      // due, and not taken by the connection: it was full
	ReceivedPackets int64 `json:"received_packets"` // RTP
	NACKs           int64 `json:"nacks"`            // packets asked for again, by this side and by its peers
	LostPackets     int64 `json:"lost_packets"`
}

// Delays are HDR histograms of µs (V2, compressed, base64), of what came since the last statistics; empty: nothing came.
type Delays struct {
	Setup string `json:"setup,omitempty"` // from the peer's description to webrtcup
	Chunk string `json:"chunk,omitempty"` // from when a chunk was due to be sent until it came: at the receiver, or at the sender if it was echoed
	Start string `json:"start,omitempty"` // startup delay of viewers; of one that left without a picture, how long it was there
}

// ViewerCounts are of sessions that are viewers.
type ViewerCounts struct {
	Playing int   `json:"playing"`
	Ended   int64 `json:"ended"`
	Errors  int64 `json:"errors"`
	Played  int64 `json:"played_ms"`
	Stalled int64 `json:"stalled_ms"`
	Origin  int64 `json:"origin_bytes"`
	Peers   int64 `json:"peer_bytes"`
}

// MachineFigures are what the arm costs, and whether it is itself the bottleneck.
type MachineFigures struct {
	CPU         int64 `json:"cpu_us"` // processor time of the process
	RSS         int64 `json:"rss_bytes"`
	Goroutines  int   `json:"goroutines"`
	Lag         int64 `json:"lag_p99_us"`    // how late the arm's clock ticks came since the last statistics
	GC          int64 `json:"gc_us"`         // processor time of the garbage collector
	Drops       int64 `json:"rcvbuf_errors"` // of UDP sockets of the arm's network namespace
	Processors  int   `json:"processors"`    // that the arm may use
	MachineBusy int64 `json:"busy_permille"` // of all processors of the machine, since the last statistics
}
