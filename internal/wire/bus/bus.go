// Package bus is the codec of the messages between replicas: trackers among themselves and trackers with seeds
// (spec/cluster.md). Bodies are JSON of at most 128 KiB; IDs are 22 characters of base64url in
// bodies, as on the WebSocket, and 32 hexadecimal digits in subjects. Unknown fields are skipped.
//
// Subjects and bodies are those of the specification, the fields of the Go types in its order. A seed is a peer whose ID is the
// seed's: what it signals carries from = its ID, role = "seed", and goes to the tracker named in the signal that it answers.
package bus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// MaxMessage is the size limit of a body in bytes.
const MaxMessage = 128 << 10

// The fixed subjects.
const (
	SubjectTrackerBeat = "leeway.v1.beat.tracker"
	SubjectSeedBeat    = "leeway.v1.beat.seed"
	SubjectRevoke      = "leeway.v1.revoke"
	SubjectRevokeList  = "leeway.v1.revoke.list"
	SubjectRevokeKept  = "leeway.v1.revoke.kept" // of seeds, for trackers that have just started
	SubjectExperiment  = "leeway.v1.trial"
)

// SubjectHome is where a tracker takes requests as the home of swarms.
func SubjectHome(tracker signal.ID) string { return "leeway.v1.tracker." + tracker.Hex() + ".home" }

// SubjectDeliver is where a tracker takes what is for the sessions that it holds.
func SubjectDeliver(tracker signal.ID) string {
	return "leeway.v1.tracker." + tracker.Hex() + ".deliver"
}

// SubjectSeedSignal is where a tracker takes signals of seeds. What comes on SubjectDeliver can be an introduction; a seed may not
// publish there.
func SubjectSeedSignal(tracker signal.ID) string {
	return "leeway.v1.tracker." + tracker.Hex() + ".signal"
}

// SubjectSeedAck is where a tracker hears from seeds which of its deliveries have arrived.
func SubjectSeedAck(tracker signal.ID) string { return "leeway.v1.tracker." + tracker.Hex() + ".ack" }

// SubjectAck is where a tracker or a seed hears from trackers which of its deliveries have arrived.
func SubjectAck(replica signal.ID) string { return "leeway.v1.ack." + replica.Hex() }

// SubjectSeedDeliver is where a seed takes titles and signals.
func SubjectSeedDeliver(seed signal.ID) string { return "leeway.v1.seed." + seed.Hex() + ".deliver" }

// SubjectKinds is the closed set of values that Kind returns, for metrics.
var SubjectKinds = []string{"beat-tracker", "beat-seed", "home", "tracker-deliver", "seed-deliver", "seed-signal", "ack", "probe", "revoke", "revoke-list", "revoke-kept", "trial", "answer", "other"}

// Kind maps a subject to its kind. Inboxes of requests are "answer", anything unknown is "other".
func Kind(subject string) string {
	switch subject {
	case SubjectTrackerBeat:
		return "beat-tracker"
	case SubjectSeedBeat:
		return "beat-seed"
	case SubjectRevoke:
		return "revoke"
	case SubjectRevokeList:
		return "revoke-list"
	case SubjectRevokeKept:
		return "revoke-kept"
	case SubjectExperiment:
		return "trial"
	}
	switch tracker := strings.HasPrefix(subject, "leeway.v1.tracker."); {
	case tracker && strings.HasSuffix(subject, ".home"):
		return "home"
	case tracker && strings.HasSuffix(subject, ".deliver"):
		return "tracker-deliver"
	case tracker && strings.HasSuffix(subject, ".probe"):
		return "probe"
	case tracker && strings.HasSuffix(subject, ".signal"):
		return "seed-signal"
	case strings.HasPrefix(subject, "leeway.v1.ack."), tracker && strings.HasSuffix(subject, ".ack"):
		return "ack"
	case strings.HasPrefix(subject, "leeway.v1.seed.") && strings.HasSuffix(subject, ".deliver"):
		return "seed-deliver"
	case strings.HasPrefix(subject, "_INBOX."):
		return "answer"
	}
	return "other"
}

// Message is one of the bodies of this package.
type Message interface {
	// Validate returns the first thing that is wrong with the body, or nil.
	Validate() error
}

// Encode writes a body and checks its limits.
func Encode(m Message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("bus: encode %T: %w", m, err)
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // a viewer's text would become six times as long, and be more than a message has
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("bus: encode %T: %w", m, err)
	}
	b := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("bus: encode %T: %d bytes; a message has at most %d", m, len(b), MaxMessage)
	}
	return b, nil
}

// Decode reads a body into m, a pointer to a body of this package, and checks its limits.
func Decode(b []byte, m Message) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("bus: decode %T: %d bytes; a message has at most %d", m, len(b), MaxMessage)
	}
	if err := json.Unmarshal(b, m); err != nil {
		return fmt.Errorf("bus: decode %T: %w", m, err)
	}
	if err := m.Validate(); err != nil {
		return fmt.Errorf("bus: decode %T: %w", m, err)
	}
	return nil
}
