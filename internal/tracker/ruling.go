package tracker

import (
	"sync"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// ruling is a session's policy, and how far it follows the switches of its site.
type ruling struct {
	saying sync.Mutex // held while a policy is made and said: the last one said is the one that holds

	mu       sync.Mutex
	policy   signal.Policy // guarded by mu
	switched int64         // guarded by mu: switches.changes as the policy knows them
	welcomed bool          // guarded by mu: what is pushed is heard
}

// allowed is the policy.
func (r *ruling) allowed() signal.Policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policy
}

// decide makes the policy of what site, token, roll-out and switches say now.
func (r *ruling) decide(site *configured.Site, session signal.ID, grant *access.Grant, heldBack bool, by *switches) signal.Policy {
	changes := by.changes.Load() // first: what changes meanwhile is looked at once more
	policy := policyOf(site, session, grant)
	if heldBack || by.off(site.Name()) {
		policy.Role = configured.RoleOff
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy, r.switched = policy, changes
	return policy
}

// welcome notes that the viewer has been told the policy.
func (r *ruling) welcome() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.welcomed = true
}

// stale says whether switches have changed since the policy was made.
func (r *ruling) stale(by *switches) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.welcomed && r.switched != by.changes.Load()
}

// roleOf is the role that a viewer has for others if it asks for one, where a policy holds.
func roleOf(policy signal.Policy, asked string) string {
	if policy.ControlGroup {
		return configured.RoleOff // counted, never introduced: the origin alone serves it
	}
	return configured.NarrowRole(policy.Role, asked)
}
