package viewer

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/leeway-video/leeway/internal/site"
)

// naming is how a title is called on its site.
type naming struct {
	url   string // of the manifest
	title string // explicit; empty: by the title rule
	rules *site.Site
	key   string
	name  string
}

// by names the manifest by a site's rules. The rules stay also where they have no name for it.
func (n *naming) by(rules *site.Site) (err error) {
	n.rules = rules
	if n.key, err = rules.Key(n.url); err == nil {
		n.name, err = rules.Title(n.key, n.title)
	}
	return err
}

// read names the manifest by the rules that the tracker sent.
func (n *naming) read(raw []byte) error {
	var c site.Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	rules, err := site.New(c)
	if err != nil {
		return err
	}
	return n.by(rules)
}

// guess names the manifest as a site does that has no rules of its own. Queries and credentials are what rules are for.
func (n *naming) guess() bool {
	u, err := url.Parse(n.url)
	if err != nil || u.RawQuery != "" || site.HasCredential(n.url) {
		return false
	}
	plain, err := site.New(site.Config{Name: "plain", Hosts: []string{strings.ToLower(u.Host)}})
	if err != nil {
		return false
	}
	guessed := naming{url: n.url, title: n.title}
	if guessed.by(plain) != nil {
		return false
	}
	n.key, n.name = guessed.key, guessed.name
	return true
}

// path is the manifest's key without its query.
func (n *naming) path() string {
	path, _, _ := strings.Cut(n.key, "?")
	return path
}
