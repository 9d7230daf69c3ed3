package bus

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// vectorFile is bodies by kind, just as they are encoded.
type vectorFile struct {
	About  string   `json:"about"`
	Bodies []vector `json:"bodies"`
}

type vector struct {
	Kind string          `json:"kind"` // the Go type
	Body json.RawMessage `json:"body"`
}

func TestVectors(t *testing.T) {
	if *spec.Update {
		writeVectors(t)
	}
	f := spec.Vectors[vectorFile](t, "bus.json")
	kinds := map[string]reflect.Type{}
	for _, m := range bodies() {
		kinds[reflect.TypeOf(m).Elem().Name()] = reflect.TypeOf(m).Elem()
	}
	seen := map[string]bool{}
	for i, v := range f.Bodies {
		if kinds[v.Kind] == nil {
			t.Errorf("vector %d: kind %q is unknown", i, v.Kind)
			continue
		}
		seen[v.Kind] = true
		var compact bytes.Buffer
		if err := json.Compact(&compact, v.Body); err != nil {
			t.Fatal(err)
		}
		m := reflect.New(kinds[v.Kind]).Interface().(Message)
		if err := Decode(v.Body, m); err != nil {
			t.Errorf("vector %d: %v", i, err)
			continue
		}
		if again, err := Encode(m); err != nil || !bytes.Equal(again, compact.Bytes()) {
			t.Errorf("vector %d: %v\n  read    %s\n  written %s", i, err, compact.Bytes(), again)
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("vectors of %d kinds, there are %d", len(seen), len(kinds))
	}
}

func writeVectors(t *testing.T) {
	f := vectorFile{About: "Bodies of spec/cluster.md, as a replica writes them."}
	for _, m := range bodies() {
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		f.Bodies = append(f.Bodies, vector{reflect.TypeOf(m).Elem().Name(), b})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		t.Fatal(err)
	}
	spec.Write(t, "bus.json", b.Bytes())
}
