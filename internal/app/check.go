package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// keyProblem is something wrong with the value of one key.
type keyProblem struct{ key, text string }

// checker collects what is wrong with the values of a configuration.
type checker struct{ found []keyProblem }

func (k *checker) complain(key, format string, args ...any) {
	k.found = append(k.found, keyProblem{key, fmt.Sprintf(format, args...)})
}

// check returns everything wrong with the values of a configuration, by key, and what these services would refuse at their start.
func check(c *Config, services []string) []keyProblem {
	k := &checker{}
	k.sites(c)
	k.places(c)
	k.choices(c)
	k.numbers(c)
	k.pictures(c)
	k.budgets(c)
	k.fleet(c.Seed.Fleet)
	k.relays(c)
	k.probe(c.Probe)
	k.starting(c, services)
	sort.SliceStable(k.found, func(i, j int) bool { return k.found[i].key < k.found[j].key })
	return k.found
}

func (k *checker) sites(c *Config) {
	names := map[string]int{}
	for i, s := range c.Sites {
		key := fmt.Sprintf("sites[%d]", i)
		var wrong *site.FieldError
		if _, err := site.New(s); errors.As(err, &wrong) {
			k.complain(key+"."+wrong.Path, "%s (%s)", wrong.Problem, wrong.Hint)
		} else if err != nil {
			k.complain(key, "%v", err)
		}
		if first, twice := names[s.Name]; twice {
			k.complain(key+".name", "%q is already the name of sites[%d]; every site needs a name of its own", s.Name, first)
		} else {
			names[s.Name] = i
		}
	}
}

// places checks addresses and ranges of them.
func (k *checker) places(c *Config) {
	for _, a := range c.addresses() {
		if text := addressProblem(a.value); text != "" && (a.value != "" || !a.optional) {
			k.complain(a.key, "%s", text)
		}
	}
	for key, list := range map[string][]string{
		"tracker.trusted_proxies": c.Tracker.TrustedProxies, "tracker.proxy_protocol": c.Tracker.ProxyProtocol,
		"turn.proxy_protocol": c.Turn.ProxyProtocol, "probe.proxy_protocol": c.Probe.ProxyProtocol, "seed.private": c.Seed.Private,
		"seed.fleet.allow": c.Seed.Fleet.Allow,
	} {
		for i, p := range list {
			if _, err := netip.ParsePrefix(p); err != nil {
				k.complain(fmt.Sprintf("%s[%d]", key, i), "%q is no range of addresses (write CIDR, such as 10.0.0.0/8)", p)
			}
		}
	}
	if c.Tracker.RegionHeader != "" && len(c.Tracker.TrustedProxies) == 0 {
		k.complain("tracker.region_header", "is believed of trusted proxies alone (name them: tracker.trusted_proxies)")
	}
	for i, h := range c.Tracker.WebTorrent.InfoHashes {
		if _, err := infoHashes([]string{h}); err != nil {
			k.complain(fmt.Sprintf("tracker.webtorrent.info_hashes[%d]", i), "%q is no info_hash (write 40 digits of hex)", h)
		}
	}
	for i, a := range c.Seed.Announce {
		if problem := announceProblem(a, c.Seed.Node); problem != "" {
			k.complain(fmt.Sprintf("seed.announce[%d]", i), "%s", problem)
		}
	}
	for i, r := range c.Seed.Redirects {
		if _, err := originhttp.ParseBase(r); err != nil {
			k.complain(fmt.Sprintf("seed.redirects[%d]", i), "%v", err)
		}
	}
	for section, files := range map[string][2]string{"tracker": {c.Tracker.CertFile, c.Tracker.KeyFile}, "origin": {c.Origin.CertFile, c.Origin.KeyFile}, "probe": {c.Probe.CertFile, c.Probe.KeyFile}, "turn": {c.Turn.CertFile, c.Turn.KeyFile}} {
		if (files[0] == "") != (files[1] == "") {
			k.complain(section+".cert_file", "and %s.key_file belong together: give both or none", section)
		}
	}
	if t := c.Origin.Tracker; t != "" && !strings.HasPrefix(t, "ws://") && !strings.HasPrefix(t, "wss://") {
		k.complain("origin.tracker", "%q is no tracker's address (such as wss://tracker.example.com)", t)
	}
	if c.NATS.URL != "" && c.NATS.Listen != "" {
		k.complain("nats.listen", "is of the embedded server, which nats.url replaces (leave one of them out)")
	}
}

// choice is a key with a closed set of values.
type choice struct {
	key, value string
	of         []string
}

// choices are those outside of sites, which check their own.
func choices(c *Config) []choice {
	return []choice{
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"auto", "text", "json"}},
		{"tracker.proxy_header", c.Tracker.ProxyHeader, []string{headerXForwardedFor, headerForwarded}},
		{"up.role", c.Up.Role, []string{site.RoleFull, site.RoleLeech, site.RoleRelayOnly, site.RoleOff}},
		{"up.origin_fault", c.Up.OriginFault, origin.Faults},
	}
}

func (k *checker) choices(c *Config) {
	for _, choice := range choices(c) {
		if !slices.Contains(choice.of, choice.value) {
			k.complain(choice.key, "%q is no choice (one of %s)", choice.value, strings.Join(choice.of, ", "))
		}
	}
	if t := c.Admin.Token; t != "" && len(t) < minAdminToken {
		k.complain("admin.token", "has fewer than %d characters (make one: leeway secret)", minAdminToken)
	}
	for i, name := range c.Admin.Hosts {
		if name == "" || strings.ContainsAny(name, ":/*, ") {
			k.complain(fmt.Sprintf("admin.hosts[%d]", i), "%q is no name of a host, without its port (such as seed-0.seed.leeway.svc)", name)
		}
	}
	if c.Tracker.Secret != "" {
		if _, err := decodeSecret(c.Tracker.Secret, "tracker.secret"); err != nil {
			k.complain("tracker.secret", "has fewer than %d bytes or is not base64url (make one: leeway secret)", secretBytes)
		}
	}
}

// pictures checks what an origin is to show.
func (k *checker) pictures(c *Config) {
	for section, p := range map[string]PictureConfig{"up": c.Up.PictureConfig, "origin": c.Origin.PictureConfig} {
		if s := p.Segment; s != 0 && !slices.Contains(segmentLengths, s) {
			k.complain(section+".segment", "%s is no choice (one of %v)", s, segmentLengths)
		}
		if d := p.Part; d != 0 && (d < leastPart || d > mostPart) {
			k.complain(section+".part", "%s is not between %s and %s", d, leastPart, mostPart)
		}
		if w := p.Window; w != 0 && (w < leastWindow || w > mostWindow) {
			k.complain(section+".window", "%s is not between %s and %s", w, leastWindow, mostWindow)
		}
	}
}

// bound is one of a number, from below.
type bound struct {
	key          string
	value, least int64
	meaning      string
}

func (k *checker) bounds(all []bound) {
	for _, b := range all {
		if b.value < b.least {
			k.complain(b.key, "%d is below %d (%s)", b.value, b.least, b.meaning)
		}
	}
}

func (k *checker) numbers(c *Config) {
	for _, d := range []struct {
		key          string
		value, least time.Duration
	}{
		{"tracker.update_interval", c.Tracker.UpdateInterval, time.Second},
		{"tracker.stats_interval", c.Tracker.StatsInterval, time.Second},
		{"tracker.ticket_life", c.Tracker.TicketLife, time.Second},
		{"tracker.webtorrent.interval", c.Tracker.WebTorrent.Interval, time.Second},
		{"tracker.token_grace", c.Tracker.TokenGrace, time.Second},
		{"tracker.drain_spread", c.Tracker.DrainSpread, time.Millisecond},
		{"tracker.harm_pause", c.Tracker.HarmPause, time.Minute},
	} {
		if d.value < d.least {
			k.complain(d.key, "%s is below %s", d.value, d.least)
		}
	}
	for key, d := range map[string]time.Duration{"tracker.update_interval": c.Tracker.UpdateInterval, "tracker.stats_interval": c.Tracker.StatsInterval} {
		if d > signal.MaxInterval*time.Millisecond {
			k.complain(key, "%s is above an hour, which no viewer takes", d)
		}
	}
	k.bounds([]bound{
		{"up.origin_rate", int64(c.Up.OriginRate), 0, "bytes per second; 0 is unshaped"},
		{"up.control_group_permille", int64(c.Up.Control), 0, "of a thousand viewers"},
		{"tracker.max_sessions", int64(c.Tracker.MaxSessions), 1, "sessions"},
		{"tracker.max_swarms", int64(c.Tracker.MaxSwarms), 1, "swarms"},
		{"tracker.max_members", int64(c.Tracker.MaxMembers), 2, "members"},
		{"tracker.webtorrent.max_swarms", int64(c.Tracker.WebTorrent.MaxSwarms), 1, "swarms"},
		{"tracker.messages_per_second", int64(c.Tracker.MessagesPerSecond), 1, "messages"},
		{"tracker.max_per_address", int64(c.Tracker.MaxPerAddress), 1, "sockets"},
		{"tracker.max_per_subject", int64(c.Tracker.MaxPerSubject), 1, "sessions"},
		{"tracker.connects_per_second", int64(c.Tracker.ConnectsPerSecond), 1, "connections"},
		{"tracker.peers_per_hour", int64(c.Tracker.PeersPerHour), 1, "viewers"},
		{"seed.memory_bytes", c.Seed.MemoryBytes, 16 << 20, "bytes; 16 MiB hold two segments of the largest size"},
		{"seed.disk_bytes", c.Seed.DiskBytes, 16 << 20, "bytes; 16 MiB hold two segments of the largest size"},
		{"seed.max_links", int64(c.Seed.MaxLinks), 1, "links"},
		{"seed.max_titles", int64(c.Seed.MaxTitles), 1, "titles"},
		{"seed.index_bytes", c.Seed.IndexBytes, 1 << 20, "bytes; 1 MiB holds some 4,000 segments of playlists"},
		{"seed.rate", c.Seed.Rate, 0, "bytes per second; 0 is unlimited"},
		{"seed.daily_bytes", c.Seed.DailyBytes, 0, "bytes; 0 is unlimited"},
		{"seed.look_ahead", int64(c.Seed.LookAhead), 0, "segments"},
	})
	if c.Seed.SessionFactor < 1 {
		k.complain("seed.session_factor", "%g is below 1, less than a viewer needs to play", c.Seed.SessionFactor)
	}
}

// budgets checks those of sites. `leeway up` serves a site that the file does not list, so that with an empty list any
// name will do.
func (k *checker) budgets(c *Config) {
	seen := map[string]bool{}
	for i, b := range c.Seed.SiteBudgets {
		key := fmt.Sprintf("seed.site_budgets[%d]", i)
		if len(c.Sites) > 0 && !slices.ContainsFunc(c.Sites, func(s site.Config) bool { return s.Name == b.Site }) {
			k.complain(key+".site", "%q is no site of this file", b.Site)
		}
		if seen[b.Site] {
			k.complain(key+".site", "%q has a budget already", b.Site)
		}
		seen[b.Site] = true
		if b.Rate < 0 {
			k.complain(key+".rate", "%d is below 0 (bytes per second; 0 is unlimited)", b.Rate)
		}
		if b.DailyBytes < 0 {
			k.complain(key+".daily_bytes", "%d is below 0 (bytes; 0 is unlimited)", b.DailyBytes)
		}
	}
}

// valid is check for a service about to start. Sections of other services are theirs to check. What the file says is told with its line.
func (r *run) valid(c *Config) error {
	var services []string
	if r.env.service != "" {
		services = []string{r.env.service}
	}
	found := r.complaints(c, services)
	if len(found) == 0 {
		return nil
	}
	return cmdline.Usage(fmt.Errorf("configuration: %w", found))
}

// complaints is check as problems of the file, or of nothing where a flag or the environment set the value.
func (r *run) complaints(c *Config, services []string) (found problems) {
	for _, p := range check(c, services) {
		if r.env.foreign(p.key) {
			continue
		}
		one := problem{text: p.key + ": " + p.text}
		if r.filed != nil && same(r.filed, c, p.key) {
			one.file, one.line = r.file(), lineOfKey(r.lines, p.key)
		}
		found = append(found, one)
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].line < found[j].line })
	return found
}

// same says whether a key has one value in both.
func same(a, b *Config, key string) bool {
	key, _, _ = strings.Cut(key, "[")
	one, err1 := fieldOf(reflect.ValueOf(a).Elem(), key)
	other, err2 := fieldOf(reflect.ValueOf(b).Elem(), key)
	return err1 != nil || err2 != nil || reflect.DeepEqual(one.Interface(), other.Interface())
}

// lineOfKey is the line of a key, or of the nearest section around it that the file has.
func lineOfKey(lines map[string]int, key string) int {
	for lines[key] == 0 && key != "" {
		key = parent(key)
	}
	return lines[key]
}

// addressProblem says what is wrong with HOST:PORT, or nothing.
func addressProblem(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Sprintf("%q is no address (write HOST:PORT, such as 127.0.0.1:8080 or :8080)", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%q has no port from 0 to 65535 after the colon", addr)
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return fmt.Sprintf("%q is not the address of an interface (write an IP address, or nothing for all)", host)
	}
	return ""
}
