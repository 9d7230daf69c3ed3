package viewer

import (
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestRoleVectors(t *testing.T) {
	v := spec.Vectors[struct {
		Cases []struct {
			Name, Why string
			Policy    *struct {
				Role         string
				ControlGroup bool   `json:"control_group"`
				UnknownLine  string `json:"unknown_line"`
			}
			Line Line
			Role string
		}
	}](t, "role.json")
	for _, c := range v.Cases {
		var policy *signal.Policy
		if c.Policy != nil {
			policy = &signal.Policy{Role: c.Policy.Role, ControlGroup: c.Policy.ControlGroup, UnknownLine: c.Policy.UnknownLine}
		}
		if got := role(policy, c.Line); got != c.Role {
			t.Errorf("%s: %s, want %s (%s)", c.Name, got, c.Role, c.Why)
		}
	}
}
