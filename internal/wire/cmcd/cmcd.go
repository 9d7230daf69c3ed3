// Package cmcd reads reports of players: event mode of Common Media Client Data, version 2 (spec/cmcd.md; CTA-5004-B).
package cmcd

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dunglas/httpsfv"
)

// Bounds of a report.
const (
	MaxReport = 16384 // bytes
	MaxEvents = 64
)

// MediaType is the content type of reports.
const MediaType = "application/cmcd"

// Unknown stands for types of events that CTA-5004-B does not have.
const Unknown = "unknown"

// Types are the types of events, with what stands for all others. Treat as constant.
var Types = []string{"abe", "abs", "ae", "as", "b", "bc", "c", "ce", "e", "m", "pc", "pe", "pr", "ps", "rr", "sk", "t", "um", Unknown}

// Types of which more is read than that they came.
const (
	PlayState        = "ps"
	ResponseReceived = "rr"
)

// states by their tokens.
var states = map[string]string{
	"s": "starting", "p": "playing", "k": "seeking", "r": "rebuffering", "a": "paused", "w": "waiting",
	"e": "ended", "f": "fatal-error", "q": "quit", "d": "preloading",
}

// States are the states of a player. Treat as constant.
var States = []string{"starting", "playing", "seeking", "rebuffering", "paused", "waiting", "ended", "fatal-error", "quit", "preloading"}

// none stands for a number that an event does not say.
const none = -1

const (
	version   = 2
	maxStatus = 999
)

// Event is what is read of one event.
type Event struct {
	Type    string // one of Types
	State   string // one of States; empty: it says none
	Status  int64  // of a response, 0: there was none; -1: it says none
	StartMS int64  // from the wish to play to the first picture; -1: it says nothing
}

var errMalformed = errors.New("cmcd: malformed event")

// Parse reads a report of at most MaxReport bytes: its events, and how many were malformed and dropped.
func Parse(report []byte) (events []Event, malformed int) {
	if len(report) > MaxReport {
		return nil, 1
	}
	seen := 0
	for line := range bytes.SplitSeq(report, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if seen++; seen > MaxEvents {
			return events, malformed + 1
		}
		event, err := parseEvent(string(line))
		if err != nil {
			malformed++
			continue
		}
		events = append(events, event)
	}
	return events, malformed
}

func parseEvent(line string) (e Event, err error) {
	keys, err := httpsfv.UnmarshalDictionary([]string{line})
	if err != nil {
		return e, err
	}
	kind, err := token(keys, "e")
	if err != nil || kind == "" {
		return e, errMalformed
	}
	state, err := token(keys, "sta")
	if err != nil {
		return e, err
	}
	e.Type, e.State = kind, states[state]
	if !slices.Contains(Types, kind) {
		e.Type = Unknown
	}
	var of, at int64
	for _, n := range []struct {
		key      string
		into     *int64
		required bool
	}{{"v", &of, true}, {"ts", &at, true}, {"rc", &e.Status, false}, {"msd", &e.StartMS, false}} {
		if *n.into, err = number(keys, n.key); err != nil || n.required && *n.into == none {
			return e, errMalformed
		}
	}
	if of != version || e.Status > maxStatus {
		return e, errMalformed
	}
	return e, nil
}

// item is a member's value; nil: there is none.
func item(keys *httpsfv.Dictionary, key string) (any, error) {
	member, ok := keys.Get(key)
	if !ok {
		return nil, nil
	}
	one, ok := member.(httpsfv.Item)
	if !ok {
		return nil, errMalformed
	}
	return one.Value, nil
}

// token is a member that is a token; empty: there is none.
func token(keys *httpsfv.Dictionary, key string) (string, error) {
	value, err := item(keys, key)
	if value == nil || err != nil {
		return "", err
	}
	text, ok := value.(httpsfv.Token)
	if !ok {
		return "", errMalformed
	}
	return string(text), nil
}

// number is a member that is an integer of 0 or more; none: there is none.
func number(keys *httpsfv.Dictionary, key string) (int64, error) {
	value, err := item(keys, key)
	if value == nil || err != nil {
		return none, err
	}
	n, ok := value.(int64)
	if !ok || n < 0 {
		return none, errMalformed
	}
	return n, nil
}
