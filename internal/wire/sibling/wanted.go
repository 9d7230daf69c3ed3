package sibling

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// WantedTarget is what a seed that joins a fleet asks for: what its siblings' viewers have asked for of late.
const WantedTarget = "/leeway/v1/wanted"

// Limits of an answer to it.
const (
	MaxWanted       = 128 << 10 // bytes
	MaxWantedTitles = 64
	MaxWantedIDs    = 1024 // segments, of all titles
)

// Wanted is what a seed's viewers asked for of late, the most wanted first.
type Wanted struct {
	Titles []WantedTitle `json:"titles"`
}

// WantedTitle is a title with what is wanted of it.
type WantedTitle struct {
	Title    bus.Title       `json:"title"`
	Segments []WantedSegment `json:"segments"`
}

// WantedSegment is a segment, and how often it was asked for.
type WantedSegment struct {
	ID signal.ID `json:"id"`
	N  int       `json:"n"`
}

// EncodeWanted writes an answer.
func EncodeWanted(w Wanted) ([]byte, error) {
	if err := w.validate(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(w)
	if err == nil && len(b) > MaxWanted {
		err = fmt.Errorf("sibling: %d bytes of what is wanted; at most %d", len(b), MaxWanted)
	}
	return b, err
}

// DecodeWanted reads an answer and checks its limits.
func DecodeWanted(b []byte) (w Wanted, err error) {
	if len(b) > MaxWanted {
		return w, fmt.Errorf("sibling: %d bytes of what is wanted; at most %d", len(b), MaxWanted)
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return Wanted{}, fmt.Errorf("sibling: what is wanted: %w", err)
	}
	if err := w.validate(); err != nil {
		return Wanted{}, err
	}
	return w, nil
}

func (w Wanted) validate() error {
	segments := 0
	for _, t := range w.Titles {
		if err := (&bus.SeedDelivery{Kind: bus.KindTitle, Title: &t.Title}).Validate(); err != nil {
			return fmt.Errorf("sibling: what is wanted: %w", err)
		}
		for _, s := range t.Segments {
			if s.ID.IsZero() || s.N <= 0 {
				return errors.New("sibling: what is wanted: a segment lacks its id or its count")
			}
		}
		segments += len(t.Segments)
	}
	if len(w.Titles) > MaxWantedTitles || segments > MaxWantedIDs {
		return fmt.Errorf("sibling: %d titles and %d segments are wanted; at most %d and %d", len(w.Titles), segments, MaxWantedTitles, MaxWantedIDs)
	}
	return nil
}
