package tracker

import (
	"maps"
	"slices"
	"sync"
	"time"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// hintEvery is how often a site's log has a hint about its names.
const hintEvery = 10 * time.Minute

// What a hint is about: a label of the metric.
const (
	ofSegment = "segment"
	ofTitle   = "title"
)

// hints has an operator learn that viewers have names of their own. What viewers report is a claim, so it is counted and hinted at, and
// nothing is decided by it. Only sites of the configuration are remembered.
type hints struct {
	cfg *Config
	mu  sync.Mutex
	at  map[string]time.Time // of the last hint, by site and what it was about; guarded by mu
}

func newHints(cfg *Config) *hints { return &hints{cfg: cfg, at: map[string]time.Time{}} }

// due says whether a hint may be given now.
func (h *hints) due(key string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, given := h.at[key]; given && now.Sub(last) < hintEvery {
		return false
	}
	h.at[key] = now
	return true
}

// segments takes what a viewer reports of segments that seeds do not know.
func (h *hints) segments(site string, counts map[string]int64, c *clamp) {
	var most int64
	for _, n := range counts {
		most = max(most, n)
	}
	if most > 0 {
		h.hint(site, ofSegment, c.count(most), slices.Sorted(maps.Keys(counts)))
	}
}

// title looks for a credential in a title, which then is of one viewer.
func (h *hints) title(site, title string) {
	if !configured.HasCredential(title) {
		return
	}
	var told []string
	for _, name := range configured.Parameters(title) {
		if signal.IsParameter(name) && len(told) < signal.MaxParameters {
			told = append(told, name)
		}
	}
	h.hint(site, ofTitle, 1, told)
}

func (h *hints) hint(site, of string, n float64, parameters []string) {
	h.cfg.Metrics.Add(defUnshared, n, site, of)
	if h.due(site+" "+of, h.cfg.Now()) {
		h.cfg.Log.Warn("viewers probably have names of their own and share nothing: add these parameters to key.ignore_query of the site, or a preset to key.presets, if they do not select content",
			"site", site, "in_names_of", of+"s", "parameters", parameters, "presets", configured.PresetsOf(parameters), "read", "docs/operations/signed-urls.md")
	}
}
