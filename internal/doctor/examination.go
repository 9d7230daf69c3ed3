package doctor

import (
	"net/http"

	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// examination is what the checks leave to those after them. A field is written by one check, before those that read it begin.
type examination struct {
	cfg  Config
	http *http.Client

	manifest  *manifest    // by manifest; nil: it could not be read
	segment   *answer      // by segments; nil: none came
	conn      *wsconn.Conn // by tracker, and welcome where it asks again; nil: there is none
	welcome   *welcome     // by welcome; nil: there was none
	rules     *site.Site   // by site; nil: the manifest is not known to be the site's
	named     naming       // likewise
	unshared  bool         // by site: the policy has this viewer share nothing
	seeded    bool         // by seed: a seed was introduced
	signedURL bool         // by signed: names change from request to request
}

// welcome is the tracker's, and how far its clock is ahead of this one's.
type welcome struct {
	*signal.Welcome
	ahead int64 // ms
}

// naming is how the manifest is called on its site.
type naming struct{ key, title string }

func newExamination(c Config) *examination { return &examination{cfg: c, http: newClient(c)} }

func (e *examination) close() {
	e.hangUp()
	e.http.CloseIdleConnections()
}
