package sibling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func someWanted() Wanted {
	return Wanted{Titles: []WantedTitle{
		{
			Title:    bus.Title{Site: "demo", Title: "/film", Manifest: "/film/master.m3u8", Swarm: signal.ID{4}, Viewers: 31, Seeds: []signal.ID{from, to}},
			Segments: []WantedSegment{{signal.ID{3}, 12}, {signal.ID{255, 15: 1}, 1}},
		},
		{Title: bus.Title{Site: "demo", Title: "/other", Manifest: "/other/master.m3u8", Swarm: signal.ID{5}, Viewers: 1}, Segments: []WantedSegment{{signal.ID{6}, 2}}},
	}}
}

func TestWhatIsWantedIsReadAsItWasWritten(t *testing.T) {
	for _, w := range []Wanted{someWanted(), {}} {
		b, err := EncodeWanted(w)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeWanted(b); err != nil || !reflect.DeepEqual(back, w) {
			t.Errorf("%s was read as %+v, %v", b, back, err)
		}
	}
}

// TestWhatIsWantedFits: the most that may be wanted, with the longest names, fits into an answer or is refused by the writer.
func TestWhatIsWantedFits(t *testing.T) {
	full := Wanted{}
	for i := range MaxWantedTitles {
		title := WantedTitle{Title: bus.Title{Site: "demo", Title: fmt.Sprintf("/film/%d", i), Manifest: fmt.Sprintf("/film/%d/master.m3u8", i), Swarm: signal.ID{1, byte(i)}}}
		for range 16 {
			title.Title.Seeds = append(title.Title.Seeds, signal.ID{1})
			title.Segments = append(title.Segments, WantedSegment{signal.ID{1}, 1_000_000})
		}
		full.Titles = append(full.Titles, title)
	}
	if b, err := EncodeWanted(full); err != nil {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	full.Titles[0].Segments = append(full.Titles[0].Segments, WantedSegment{signal.ID{1}, 1})
	if _, err := EncodeWanted(full); err == nil {
		t.Error("one segment more is taken")
	}
	long := Wanted{}
	for i := range MaxWantedTitles {
		long.Titles = append(long.Titles, WantedTitle{Title: bus.Title{Site: "demo", Title: "/t", Manifest: "/" + strings.Repeat("m", signal.MaxManifest-1), Swarm: signal.ID{byte(i), 1}}})
	}
	if b, err := EncodeWanted(long); err == nil && len(b) > MaxWanted {
		t.Errorf("%d bytes were written", len(b))
	}
}

func TestMalformedWantedMessages(t *testing.T) {
	good, err := EncodeWanted(someWanted())
	if err != nil {
		t.Fatal(err)
	}
	many, err := json.Marshal(Wanted{Titles: slices.Repeat(someWanted().Titles, MaxWantedTitles/2+1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"no object":      []byte("[]"),
		"no site":        bytes.ReplaceAll(good, []byte(`"site":"demo"`), []byte(`"site":""`)),
		"no count":       bytes.ReplaceAll(good, []byte(`"n":12`), []byte(`"n":0`)),
		"less than none": bytes.ReplaceAll(good, []byte(`"n":12`), []byte(`"n":-1`)),
		"no ID":          bytes.ReplaceAll(good, []byte(`"id":`), []byte(`"di":`)),
		"cut":            good[:len(good)-1],
		"too many":       many,
		"too long":       append(bytes.Repeat([]byte(" "), MaxWanted), good...),
	} {
		if w, err := DecodeWanted(b); err == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func FuzzDecodeWanted(f *testing.F) {
	good, err := EncodeWanted(someWanted())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"titles":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := DecodeWanted(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeWanted(again); len(again) <= MaxWanted && (err != nil || !reflect.DeepEqual(back, w)) {
			t.Errorf("%s was read as %+v, and then as %+v, %v", b, w, back, err)
		}
	})
}
