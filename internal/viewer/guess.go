package viewer

import (
	"net/url"
	"strings"

	"github.com/leeway-video/leeway/internal/site"
)

// linksAhead is how many links a viewer takes before its site's policy is known: the policy's default.
const linksAhead = 8

// greeted implements sessionEvents. The first join follows the hello at once, where the picture need not be waited for and
// the title can be told without the site's rules. The tracker keeps back what its policy does not allow.
func (t *title) greeted() {
	if t.cfg.ReadyOffers == 0 || t.joins > 0 || t.welcomed != nil || t.joinBy.After(t.loop.Now()) || !t.guess() {
		return
	}
	t.ahead = true
	t.links.terms.role, t.links.terms.most = "full", linksAhead
	t.links.begin()
	t.join()
}

// guess names the manifest as a site does that has no rules of its own. Queries and credentials are what rules are for.
func (t *title) guess() bool {
	u, err := url.Parse(t.cfg.URL)
	if err != nil || u.RawQuery != "" || site.HasCredential(t.cfg.URL) {
		return false
	}
	plain, err := site.New(site.Config{Name: "plain", Hosts: []string{strings.ToLower(u.Host)}})
	if err == nil {
		t.key, err = plain.Key(t.cfg.URL)
	}
	if err == nil {
		t.name, err = plain.Title(t.key, t.cfg.Title)
	}
	return err == nil
}
