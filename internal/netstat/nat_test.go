package netstat

import (
	"encoding/json"
	"os"
	"testing"
)

func TestMappingVectors(t *testing.T) {
	var v struct {
		Cases []struct {
			Name       string
			Answered   []string
			Mappings   int
			Translated *bool
			Mapping    string
		}
	}
	b, err := os.ReadFile("../../spec/vectors/nat.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil || len(v.Cases) == 0 {
		t.Fatal("no vectors", err)
	}
	for _, c := range v.Cases {
		if got := Mapping(c.Answered, c.Mappings, c.Translated); got != c.Mapping {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Mapping)
		}
	}
}
