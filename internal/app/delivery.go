package app

import (
	"encoding/json"
	"net/http"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/tracker"
)

// deliveryPath is where the admin port of a tracker says what its viewers receive.
const deliveryPath = "/api/v1/delivery"

// deliveryAnswer is the figures of one tracker since its start.
type deliveryAnswer struct {
	Names bool           `json:"names"` // the token was shown: titles have their names beside their labels
	Sites []siteDelivery `json:"sites"`
}

type siteDelivery struct {
	Site string `json:"site"`
	received
	Resting int             `json:"resting"` // titles that seeds let rest
	Titles  []titleDelivery `json:"titles"`
	Reasons []reasonRow     `json:"reasons"`
}

// titleDelivery is of one of the busiest titles, or of all others.
type titleDelivery struct {
	Title string `json:"title"` // label in metrics
	Name  string `json:"name,omitempty"`
	received
	Resting bool `json:"resting,omitempty"`
}

// received is what viewers have, by their own reports.
type received struct {
	Viewers int              `json:"viewers"`
	Bytes   map[string]int64 `json:"bytes"`             // origin, seed, seed_relay, peer, peer_relay
	Offload *float64         `json:"offload,omitempty"` // peer ÷ all; missing while there are no bytes
}

// reasonRow is why segments were not from peers, and what can be done.
type reasonRow struct {
	Reason   string `json:"reason"`
	Segments int64  `json:"segments"`
	Meaning  string `json:"meaning"`
	Do       string `json:"do"`
}

func receivedOf(viewers int, bytes map[string]int64) received {
	r, all := received{Viewers: viewers, Bytes: bytes}, int64(0)
	for _, n := range bytes {
		all += n
	}
	if all > 0 {
		share := float64(bytes["peer"]) / float64(all)
		r.Offload = &share
	}
	return r
}

func answerOf(sites []tracker.Delivery, names bool) deliveryAnswer {
	answer := deliveryAnswer{Names: names, Sites: []siteDelivery{}}
	for _, d := range sites {
		s := siteDelivery{Site: d.Site, received: receivedOf(d.Viewers, d.Bytes), Resting: d.Resting}
		for _, title := range d.Titles {
			one := titleDelivery{Title: title.Label, received: receivedOf(title.Viewers, title.Bytes), Resting: title.Rests}
			if names {
				one.Name = title.Title
			}
			s.Titles = append(s.Titles, one)
		}
		for _, r := range metric.AllReasons() {
			s.Reasons = append(s.Reasons, reasonRow{r.Name, d.Reasons[r.Name], r.Meaning, r.Do})
		}
		answer.Sites = append(answer.Sites, s)
	}
	return answer
}

// serveDelivery answers all that reach the port, as metrics do; names of titles are for those that show the token.
func (a *admin) serveDelivery(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answerOf(a.delivery(), a.gate.opens(r))) // the client may be gone
}
