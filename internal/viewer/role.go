package viewer

import (
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Line is what a viewer knows of its line and clock as it joins. What is not known is false.
type Line struct {
	Metered bool `json:"metered"` // the viewer asked to save data, or the line is cellular
	Unknown bool `json:"unknown"` // a phone or tablet whose browser does not say how it is connected
	Coarse  bool `json:"coarse"`  // the clock is too coarse to give way by
}

// role is what a viewer is to its swarm (spec/tracker-protocol.md, "Role"). A nil policy is that before the welcome.
func role(policy *signal.Policy, line Line) string {
	if policy == nil || policy.ControlGroup {
		return site.RoleOff
	}
	allowed := site.RoleFull
	if line.Metered || line.Coarse || line.Unknown && policy.UnknownLine != site.UnknownLineFull {
		allowed = site.RoleLeech
	}
	return site.NarrowRole(policy.Role, allowed)
}
