package viewer

import (
	"strings"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// delivery says whether peers deliver a title, as its policy and its own experience have it.
type delivery struct {
	device Device
	notice func(code, text string)
	told   func(schedule.Reason) // the engine, if there is one

	welcomed *signal.Welcome
	off      schedule.Reason // empty: it is on
	broken   schedule.Reason // the engine's own judgment, for the life of the title
	barred   bool            // nothing comes of it with this welcome, whatever the policy says
}

// role is what this viewer is in its swarm.
func (d *delivery) role() string {
	if d.welcomed == nil {
		return role(nil, d.device.Line)
	}
	return role(&d.welcomed.Policy, d.device.Line)
}

// uploads says whether this viewer sends to others. A line that becomes metered ends that, also for a role that it makes off.
func (d *delivery) uploads() bool {
	role := d.role()
	return role == site.RoleFull || role == site.RoleRelayOnly
}

// terms are what the policy says about links.
func (d *delivery) terms() linkTerms {
	m := d.welcomed
	terms := linkTerms{self: m.Session, role: d.role(), most: min(m.Policy.MaxLinks, m.Limits.Links)}
	for _, s := range m.ICEServers {
		urls := s.URLs[:0:0]
		for _, u := range s.URLs {
			if m.Policy.Relay == site.RelayAllow || !strings.HasPrefix(u, "turn") {
				urls = append(urls, u)
			}
		}
		if len(urls) > 0 {
			terms.servers = append(terms.servers, ICEServer{URLs: urls, Username: s.Username, Credential: s.Credential})
		}
	}
	return terms
}

func (d *delivery) setOff(reason schedule.Reason) {
	if reason == "" {
		reason = d.broken
	}
	d.off = reason
	d.told(reason)
}

// leaveOut says that peer delivery does not come, as things stand. Without a code it has been said.
func (d *delivery) leaveOut(reason schedule.Reason, code, text string) {
	if d.off != reason && code != "" {
		d.notice(code, text)
	}
	d.setOff(reason)
}

// turnedOff ends it for good: the engine saw something in the title.
func (d *delivery) turnedOff(reason schedule.Reason) {
	d.off, d.broken = reason, reason
	d.notice("title-off", "peer delivery of this title is off ("+string(reason)+"): the origin contradicts the certificates")
}

// prefetch is what the site and the device say of fetching ahead.
func (d *delivery) prefetch() schedule.Ahead {
	return schedule.Ahead{
		Allowed: d.welcomed.Policy.Prefetch && !d.device.NoPrefetch, WasteBytes: d.welcomed.Policy.WasteBytes, Role: d.role(), Off: d.off != "",
		Battery: d.device.Battery,
	}
}
