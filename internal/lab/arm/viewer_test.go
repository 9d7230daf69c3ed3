package arm_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestAViewerThatLeavesWithoutAPictureHasWaited: its origin takes the request for the manifest and answers nothing, which is neither an error
// nor a stall. It has to be among the startup delays.
func TestAViewerThatLeavesWithoutAPictureHasWaited(t *testing.T) {
	asked := make(chan struct{}, 1)
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default: // once more
		}
		<-r.Context().Done()
	}))
	defer origin.Close()
	r := newRig(t)
	a, _ := r.arm(arm.Config{Name: "one"})
	delays, told := load.NewDelays(), make(chan struct{}, 1)
	a.Listen(func(a *load.Arm, m armwire.Message) {
		delays.Hear(a, m)
		if m.Kind != armwire.Statistics || a.Statistics().Viewers == nil || a.Statistics().Viewers.Ended == 0 {
			return
		}
		select {
		case told <- struct{}{}:
		default: // told already
		}
	})
	s := r.session(a, "v", armwire.SessionBody{Viewer: &armwire.ViewerBody{Manifest: origin.URL + "/film/master.m3u8"}})
	<-asked
	if err := s.Destroy(r.ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-r.ctx.Done():
		t.Fatal("the arm does not tell of the viewer")
	}
	if v := a.Statistics().Viewers; v.Errors != 0 || v.Stalled != 0 || delays.Start(99) == 0 {
		t.Errorf("%+v, a startup delay of %v", v, delays.Start(99))
	}
}
