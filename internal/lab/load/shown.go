package load

import (
	"encoding/json"
	"regexp"
)

// address is one in a text: what may be shown of it, around what may be a secret. User and password stand before the host; query and
// fragment may have a token.
var address = regexp.MustCompile(`([a-z]+://)(?:[^\s/?#"]*@)?([^\s?#"]*)([?#][^\s"]*)?`)

// shown is a text whose addresses have no secrets: results and errors are shown around.
func shown(text string) string {
	return address.ReplaceAllStringFunc(text, func(one string) string {
		m := address.FindStringSubmatch(one)
		if m[3] != "" {
			m[3] = m[3][:1] + "…"
		}
		return m[1] + m[2] + m[3]
	})
}

// MarshalJSON leaves the secrets out of a group's addresses.
func (g Group) MarshalJSON() ([]byte, error) {
	type plain Group
	g.Manifest, g.Tracker, g.Endpoint = shown(g.Manifest), shown(g.Tracker), shown(g.Endpoint)
	return json.Marshal(plain(g))
}
