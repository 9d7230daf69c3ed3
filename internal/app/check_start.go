package app

import (
	"fmt"
	"slices"

	"github.com/leeway-video/leeway/internal/site"
)

// allServices are those that start from a configuration.
var allServices = []string{"tracker", "seed", "turn", "probe", "origin", "up"}

// servicesOf guesses for which services a file is, by the sections that it has. One for `leeway up` may tune the others too, and up has
// a site of its own. A relay's secrets are often not in the file but in LEEWAY_TURN_SECRETS, so that a relay has to be asked for.
func servicesOf(lines map[string]int) (list []string) {
	has := func(section string) bool { _, there := lines[section]; return there }
	if has("up") {
		return []string{"up"}
	}
	for _, name := range allServices {
		if name != "turn" && has(name) || name == "tracker" && has("sites") && !has("seed") {
			list = append(list, name)
		}
	}
	return list
}

// starting checks what these services would refuse at their start although each value by itself is one.
func (k *checker) starting(c *Config, services []string) {
	for _, name := range services {
		switch name {
		case "tracker":
			k.someSite(c, name)
			k.admission(c)
		case "seed":
			k.someSite(c, name)
			for i, s := range c.Sites {
				if _, err := fetchAuth(s.FetchAuth); err != nil {
					k.complain(fmt.Sprintf("sites[%d].fetch_auth", i), "%v", err)
				}
			}
		case "turn":
			if len(c.Turn.Secrets) == 0 {
				k.complain("turn.secrets", "no secret is configured: the relay would refuse every viewer (make one: leeway secret)")
			}
		case "probe":
			k.tested(c)
		}
	}
	if err := c.NATS.bus("").Check(); err != nil {
		k.complain("nats", "%v", err)
	}
}

// someSite is of services that serve nothing without one.
func (k *checker) someSite(c *Config, name string) {
	const text = "no site is configured, and a %s does not start without one (list them in the file's section sites, and name the file by --config)"
	if len(c.Sites) == 0 && !slices.ContainsFunc(k.found, func(p keyProblem) bool { return p.key == "sites" }) {
		k.complain("sites", text, name)
	}
}

// admission says which sites leave open, or unsaid, which viewers may join.
func (k *checker) admission(c *Config) {
	for i, s := range c.Sites {
		switch {
		case s.Access == site.AccessToken && s.TokenKeys == "":
			k.complain(fmt.Sprintf("sites[%d].token_keys", i), "access is token, and token_keys names no file of keys to check tokens with (leeway token keygen makes one)")
		case s.Access == "" && s.TokenKeys == "" && !loopback(c.Tracker.Listen):
			k.complain(fmt.Sprintf("sites[%d].access", i), "%s can be reached from other machines, and site %q does not say which viewers may join (access: token with token_keys, which leeway token keygen makes; or access: public if anyone may)", c.Tracker.Listen, s.Name)
		}
	}
}

// tested says whether a probe that others reach asks clients for a token.
func (k *checker) tested(c *Config) {
	p := c.Probe
	asks := slices.ContainsFunc(c.Sites, func(s site.Config) bool { return s.Access == site.AccessToken || s.TokenKeys != "" })
	if !p.Open && !asks && (p.Listen == "" || !loopback(p.Listen)) {
		k.complain("probe.open", "the probe can be reached from other machines and nothing asks clients for a token (open: true, or --open, if any client may test, listen on 127.0.0.1, or a site with access: token)")
	}
}
