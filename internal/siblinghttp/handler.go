package siblinghttp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	workingEvery = 250 * time.Millisecond
	maxAnswers   = 64               // being worked on at a time
	writeWait    = 10 * time.Second // for the last frame to be taken
	refusalEvery = time.Minute      // between two words in the log about strangers
)

// Answerer is the seed that is asked.
type Answerer interface {
	Answer(ctx context.Context, q sibling.Question) *sibling.Answer
	Answered(bytes int)
	Wanted() sibling.Wanted
}

// Handler answers the questions of siblings.
type Handler struct {
	secret *sibling.Secret
	self   signal.ID
	seed   Answerer
	slots  chan struct{}
	every  time.Duration // between two frames that say that it works
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex
	refused time.Time // guarded by mu: when that was last logged
}

// NewHandler makes one for the seed with the ID self.
func NewHandler(secret *sibling.Secret, self signal.ID, seed Answerer, now func() time.Time, log *slog.Logger) *Handler {
	return &Handler{secret: secret, self: self, seed: seed, slots: make(chan struct{}, maxAnswers), every: workingEvery, now: now, log: log}
}

// ServeHTTP implements http.Handler. A client that is no sibling learns nothing, not even which paths there are.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.URL.RequestURI()
	if err := h.secret.Check(r.Header.Get("Authorization"), h.self, target, h.now()); err != nil || r.Method != http.MethodGet {
		h.stranger(err)
		http.Error(w, "For the seeds of this fleet alone.", http.StatusUnauthorized)
		return
	}
	q, err := sibling.ParseTarget(target)
	if err != nil && target != sibling.WantedTarget {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	select {
	case h.slots <- struct{}{}:
	default:
		http.Error(w, "Too many questions at a time.", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-h.slots }()
	w.Header().Set("Cache-Control", "no-store")
	if target == sibling.WantedTarget {
		h.wanted(w)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	h.answer(w, r.Context(), q)
}

// answer says that it works until there is an answer, and then the answer.
func (h *Handler) answer(w http.ResponseWriter, ctx context.Context, q sibling.Question) {
	answered := make(chan *sibling.Answer, 1)
	go func() { answered <- h.seed.Answer(ctx, q) }()
	ticks := time.NewTicker(h.every)
	defer ticks.Stop()
	out := http.NewResponseController(w)
	for {
		select {
		case a := <-answered:
			_ = out.SetWriteDeadline(time.Now().Add(writeWait))
			for _, part := range [][]byte{a.Head(), a.Data} {
				n, err := w.Write(part)
				h.seed.Answered(n)
				if err != nil {
					return // the sibling has gone on
				}
			}
			return
		case <-ticks.C:
			_ = out.SetWriteDeadline(time.Now().Add(writeWait))
			if _, err := w.Write(sibling.Working()); err == nil {
				_ = out.Flush()
			}
		}
	}
}

// wanted says what is wanted of this seed.
func (h *Handler) wanted(w http.ResponseWriter) {
	b, err := sibling.EncodeWanted(h.seed.Wanted())
	if err != nil {
		h.log.Warn("what is wanted of this seed cannot be told", "error", err)
		http.Error(w, "What is wanted cannot be told.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWait))
	_, _ = w.Write(b) // the sibling may have gone on
}

// stranger logs that a client was refused, now and then: the wrong secret, or a clock that is off.
func (h *Handler) stranger(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); now.Sub(h.refused) >= refusalEvery {
		h.refused = now
		h.log.Warn("a question to the fleet's port was refused", "error", err, "hint", "seeds of a fleet have the same seed.fleet.secret")
	}
}
