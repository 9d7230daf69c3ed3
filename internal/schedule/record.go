package schedule

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Recorded is one decision on the way: what the schedule saw and what came of it. A recording is one JSON object a
// line, in the form of the cases of spec/vectors/schedule.json, the same from both languages.
type Recorded struct {
	Input   Input    `json:"input"`
	Actions []Action `json:"actions"`
}

// Record writes one line of a recording.
func Record(w io.Writer, in Input, actions []Action) error {
	if actions == nil {
		actions = []Action{}
	}
	b, err := json.Marshal(Recorded{in, actions})
	if err != nil {
		return fmt.Errorf("record the schedule: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("record the schedule: %w", err)
	}
	return nil
}

// MarshalJSON writes an input as both languages read it: lists are never null, and off is null unless there is a reason.
func (in Input) MarshalJSON() ([]byte, error) {
	type plain Input
	out := struct {
		plain
		Off *Reason `json:"off"`
	}{plain: plain(in)}
	if in.Off != "" {
		out.Off = &in.Off
	}
	out.Segments, out.Peers, out.Requests = slices.Clone(in.Segments), slices.Clone(in.Peers), in.Requests
	for i := range out.Segments {
		s := &out.Segments[i]
		s.CertPeers, s.Have = orEmpty(s.CertPeers), orEmpty(s.Have)
	}
	for i := range out.Peers {
		p := &out.Peers[i]
		if p.Holds == nil {
			p.Holds = map[string]Holding{}
		}
		if p.Heard == nil {
			p.Heard = map[string]int64{}
		}
	}
	out.Segments, out.Peers, out.Requests = orEmpty(out.Segments), orEmpty(out.Peers), orEmpty(out.Requests)
	return json.Marshal(out)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// MarshalJSON writes the fields that the action's type has, in the order of spec/schedule.md.
func (a Action) MarshalJSON() ([]byte, error) {
	out := struct {
		Type    ActionType `json:"type"`
		Segment string     `json:"segment,omitempty"`
		Piece   *int       `json:"piece,omitempty"`
		Peer    string     `json:"peer,omitempty"`
		Lane    *Lane      `json:"lane,omitempty"`
		Why     string     `json:"reason,omitempty"`
		AtUs    *int64     `json:"at_us,omitempty"`
	}{Type: a.Type, Segment: a.Segment, Peer: a.Peer, Why: a.Why}
	switch a.Type {
	case DoCertificate, DoOrigin, DoStopOrigin, DoFail:
	case DoRequest:
		out.Piece, out.Lane = &a.Piece, &a.Lane
	case DoCancel, DoPromote:
		out.Piece = &a.Piece
	case DoWake:
		out.AtUs = &a.AtUs
	default:
		return nil, fmt.Errorf("an action of type %q", a.Type)
	}
	return json.Marshal(out)
}
