package viewer

import (
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
)

func TestACertificateIsAskedForAgainWhereAPeerHasNoneOrIsGone(t *testing.T) {
	c := newSeg(Reference{}, 0).certification
	c.asked("a", 5)
	c.asked("b", 9)
	if c.none("a"); c.state != schedule.CertAsked || c.certAsked != 5 {
		t.Errorf("%s since %d, though b was asked later", c.state, c.certAsked)
	}
	if c.gone("b"); c.state != schedule.CertAsked {
		t.Errorf("%s, though a may answer", c.state)
	}
	if c.gone("a"); c.state != schedule.CertNone || len(c.certPeers) > 0 {
		t.Errorf("%s, asked %v", c.state, c.certPeers)
	}
	c.asked("c", 11)
	if c.none("c"); c.state != schedule.CertNone {
		t.Error("the last that was asked has none, and it is waited for")
	}
	if c.reset(schedule.CertRefused); c.certAsked != -1 || c.state != schedule.CertRefused {
		t.Errorf("%+v", c)
	}
}
