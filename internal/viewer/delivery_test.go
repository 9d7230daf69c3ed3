package viewer

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestDeliveryThatTheEngineTurnedOffStaysOff(t *testing.T) {
	var told []schedule.Reason
	var notices []string
	d := delivery{notice: func(code, _ string) { notices = append(notices, code) }, told: func(r schedule.Reason) { told = append(told, r) }}
	if d.role() != "off" {
		t.Errorf("%q before the welcome", d.role())
	}
	d.welcomed = &signal.Welcome{Policy: signal.Policy{Role: "full", Prefetch: true}}
	d.leaveOut(schedule.UDPBlocked, "links-blocked", "")
	d.leaveOut(schedule.UDPBlocked, "links-blocked", "")
	d.setOff("")
	if d.role() != "full" || d.off != "" || !d.prefetch().Allowed {
		t.Errorf("role %q, off %q", d.role(), d.off)
	}
	d.turnedOff(schedule.ByPolicy)
	d.setOff("")
	if d.off != schedule.ByPolicy || !slices.Equal(notices, []string{"links-blocked", "title-off"}) {
		t.Errorf("off %q, %q", d.off, notices)
	}
	if want := []schedule.Reason{schedule.UDPBlocked, schedule.UDPBlocked, "", schedule.ByPolicy}; !slices.Equal(told, want) {
		t.Errorf("the engine heard %q", told)
	}
	d.welcomed.Policy.ControlGroup = true
	if d.role() != "off" {
		t.Errorf("%q in the control group", d.role())
	}
}

func TestALineThatBecomesMeteredEndsUploads(t *testing.T) {
	for _, role := range []string{"full", "relay-only"} {
		d := delivery{welcomed: &signal.Welcome{Policy: signal.Policy{Role: role}}}
		if !d.uploads() {
			t.Errorf("%s does not upload", role)
		}
		if d.device.Line.Metered = true; d.uploads() {
			t.Errorf("%s uploads over a metered line", role)
		}
	}
}
