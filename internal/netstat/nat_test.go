package netstat

import (
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

func TestMappingVectors(t *testing.T) {
	v := spec.Vectors[struct {
		Cases []struct {
			Name       string
			Answered   []string
			Mappings   int
			Translated *bool
			Mapping    string
		}
	}](t, "nat.json")
	for _, c := range v.Cases {
		if got := Mapping(c.Answered, c.Mappings, c.Translated); got != c.Mapping {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Mapping)
		}
	}
}
