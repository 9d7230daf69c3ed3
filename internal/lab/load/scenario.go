package load

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// Behavior is what the clients of a group do.
type Behavior string

// The behaviors. All but Viewer, WHIP, WHEP and Join need the peer under test to be an arm, which the controller starts.
const (
	Idle       Behavior = "idle"        // a data channel that carries nothing
	Active     Behavior = "active"      // chunks at a rate
	Echo       Behavior = "echo"        // chunks that come back
	OneToMany  Behavior = "one-to-many" // publishers, whose media the peer forwards to every other client
	Conference Behavior = "conference"  // the same, and publishers receive each other, too
	Mesh       Behavior = "mesh"        // a connection of every client to every client before it, with chunks both ways
	Viewer     Behavior = "viewer"      // a headless viewer of Leeway that plays a title
	WHIP       Behavior = "whip"        // a publisher of video to a media server of another program
	WHEP       Behavior = "whep"        // a viewer of one
	Join       Behavior = "join"        // a session with a tracker of Leeway that joins a swarm and says no more; held by the controller
)

var behaviors = []Behavior{Idle, Active, Echo, OneToMany, Conference, Mesh, Viewer, WHIP, WHEP, Join}

// Scenario is what a run does. Its tags name the keys of a file.
type Scenario struct {
	Name       string   `yaml:"name"`
	About      string   `yaml:"about"`
	Arms       Arms     `yaml:"arms"`
	Peer       Peer     `yaml:"peer"`
	Groups     []Group  `yaml:"groups"`
	Thresholds []string `yaml:"thresholds"`
}

// Arms are those of a run.
type Arms struct {
	Local   int `yaml:"local"`   // processes that the controller starts; 1 if there are no remote ones either
	Remote  int `yaml:"remote"`  // that dial in
	Sockets int `yaml:"sockets"` // of each local arm; 0: the arm's default
}

// Peer is the peer under test, where the controller starts it.
type Peer struct {
	Processors int `yaml:"processors"` // that it uses at most; 0: all of the machine
}

// Group is clients that do the same. Clients come evenly over RampUp and leave evenly over RampDown, in an open loop: a client comes when
// it is due, whether or not those before it are connected.
type Group struct {
	Name       string        `yaml:"name"`
	Behavior   Behavior      `yaml:"behavior"`
	Clients    int           `yaml:"clients"`
	After      time.Duration `yaml:"after"` // when the first client comes, from the beginning of the run
	RampUp     time.Duration `yaml:"ramp_up"`
	Hold       time.Duration `yaml:"hold"` // after RampUp
	RampDown   time.Duration `yaml:"ramp_down"`
	Life       time.Duration `yaml:"life"`  // churn: a client leaves after it, and another comes in its place; 0: none
	Stack      armwire.Stack `yaml:"stack"` // of data sessions; empty: link
	Rate       int           `yaml:"rate"`  // of chunks, bit/s
	Chunk      int           `yaml:"chunk"` // bytes; 1,000
	Publishers int           `yaml:"publishers"`
	Bitrate    int           `yaml:"bitrate"` // of each publisher's video, bit/s
	Manifest   string        `yaml:"manifest"`
	Tracker    string        `yaml:"tracker"`
	Site       string        `yaml:"site"`
	Token      string        `yaml:"token" json:"-"` // a result is shown around
	Endpoint   string        `yaml:"endpoint"`       // of WHIP or WHEP; {client} in it is the number of the client
	Swarms     int           `yaml:"swarms"`         // that sessions of behavior join are spread over; 1
}

// whole is the time of a run in which the clients of all groups are there: from when the last has come until the first leaves. There is
// none where from is not before to.
func (s *Scenario) whole() (from, to time.Duration) {
	to = math.MaxInt64
	for _, g := range s.Groups {
		from, to = max(from, g.After+g.RampUp), min(to, g.After+g.RampUp+g.Hold)
	}
	return from, to
}

// oneWay says whether chunks are timed at the other end than the one that sends them.
func (s *Scenario) oneWay() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return g.Behavior == Active || g.Behavior == Mesh })
}

// Problem is one thing that is wrong with a scenario. Path names the key, as "groups[0].ramp_up".
type Problem struct{ Path, Text string }

const (
	mostClients     = 1_000_000
	mostConnections = 100_000 // of a group that multiplies
	mostArms        = 256
	mostProcessors  = 1024
	longestRun      = 24 * time.Hour
	// steepest is how many clients a second a group may have come: above it the controller's own clock decides when they do.
	steepest = 2000
)

var scenarioName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Check fills defaults in and says everything that is wrong.
func (s *Scenario) Check() (all []Problem) {
	bad := func(path, format string, a ...any) { all = append(all, Problem{path, fmt.Sprintf(format, a...)}) }
	if !scenarioName.MatchString(s.Name) {
		bad("name", "%q; give 1 to 32 of a-z 0-9 -", s.Name)
	}
	if s.Arms.Local < 0 || s.Arms.Remote < 0 || max(s.Arms.Local, s.Arms.Remote) > mostArms || s.Arms.Local+s.Arms.Remote > mostArms {
		bad("arms", "%d local and %d remote; give 0 or more, at most %d together", s.Arms.Local, s.Arms.Remote, mostArms)
	}
	if s.Arms.Local+s.Arms.Remote == 0 {
		s.Arms.Local = 1
	}
	if s.Arms.Sockets < 0 || s.Arms.Sockets > 20_000 {
		bad("arms.sockets", "%d; give 0 to 20000", s.Arms.Sockets)
	}
	if s.Peer.Processors < 0 || s.Peer.Processors > mostProcessors {
		bad("peer.processors", "%d; give 0 to %d", s.Peer.Processors, mostProcessors)
	}
	if len(s.Groups) == 0 {
		bad("groups", "there is none")
	}
	names := map[string]bool{}
	for i := range s.Groups {
		g := &s.Groups[i]
		at := fmt.Sprintf("groups[%d]", i)
		if names[g.Name] {
			bad(at+".name", "%q is the name of another group, too", g.Name)
		}
		names[g.Name] = true
		for _, p := range g.check() {
			bad(at+"."+p.Path, "%s", p.Text)
		}
	}
	for i, text := range s.Thresholds {
		if _, err := ParseThreshold(text); err != nil {
			bad(fmt.Sprintf("thresholds[%d]", i), "%v", err)
		}
	}
	return all
}

func (g *Group) check() (all []Problem) {
	bad := func(path, format string, a ...any) { all = append(all, Problem{path, fmt.Sprintf(format, a...)}) }
	if !scenarioName.MatchString(g.Name) {
		bad("name", "%q; give 1 to 32 of a-z 0-9 -", g.Name)
	}
	if g.Clients < 1 || g.Clients > mostClients {
		bad("clients", "%d; give 1 to %d", g.Clients, mostClients)
	}
	for path, d := range map[string]time.Duration{"after": g.After, "ramp_up": g.RampUp, "hold": g.Hold, "ramp_down": g.RampDown, "life": g.Life} {
		if d < 0 || d > longestRun {
			bad(path, "%s; give 0 to %s", d, longestRun)
		}
	}
	if g.Hold == 0 {
		bad("hold", "a group that is not held measures nothing; give 5s or more")
	}
	if perSecond := float64(g.Clients) / max(g.RampUp.Seconds(), 1e-3); g.Clients > 1 && perSecond > steepest {
		bad("ramp_up", "%d clients in %s are %.0f a second; a controller has at most %d come (give %s or more)",
			g.Clients, g.RampUp, perSecond, steepest, (time.Duration(g.Clients) * time.Second / steepest).Round(time.Millisecond))
	}
	if g.Life > 0 && g.Life > g.Hold+g.RampUp {
		bad("life", "%s is longer than the group is there: no client would ever leave", g.Life)
	}
	return append(all, g.checkBehavior()...)
}

// checkBehavior looks at the keys of the group's behavior.
func (g *Group) checkBehavior() (all []Problem) {
	bad := func(path, format string, a ...any) { all = append(all, Problem{path, fmt.Sprintf(format, a...)}) }
	g.Stack = cmp.Or(g.Stack, armwire.Link)
	if g.Stack != armwire.Link && g.Stack != armwire.PeerConnection {
		bad("stack", "%q; give link or peer-connection", g.Stack)
	}
	g.Chunk = cmp.Or(g.Chunk, 1000)
	switch g.Behavior {
	case Idle:
	case Active, Echo, Mesh:
		if g.Rate < 8 || float64(g.Rate) > armwire.MaxRate {
			bad("rate", "%d; give 8 to %.0f bit/s", g.Rate, armwire.MaxRate)
		}
		if g.Chunk < armwire.MinChunk || g.Chunk > armwire.MaxChunk {
			bad("chunk", "%d; give %d to %d bytes", g.Chunk, armwire.MinChunk, armwire.MaxChunk)
		}
		if n := g.Clients * (g.Clients - 1) / 2; g.Behavior == Mesh && (g.Clients < 2 || n > mostConnections) {
			bad("clients", "a mesh of %d has %d connections; give 2 clients or more, and at most %d connections", g.Clients, n, mostConnections)
		}
	case OneToMany, Conference:
		if g.Publishers < 1 || g.Publishers > 50 || g.Publishers >= g.Clients {
			bad("publishers", "%d of %d clients; give 1 to 50, and fewer than clients", g.Publishers, g.Clients)
		}
		if n := g.Publishers * g.Clients; n > mostConnections {
			bad("clients", "%d publishers for %d clients are %d connections; at most %d", g.Publishers, g.Clients, n, mostConnections)
		}
		if g.Life > 0 {
			bad("life", "a client of behavior %s stays", g.Behavior)
		}
		all = append(all, g.checkBitrate()...)
	case Viewer:
		if u, err := url.Parse(g.Manifest); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad("manifest", "%q is no http or https address", shown(g.Manifest))
		}
		if u, err := url.Parse(g.Tracker); g.Tracker != "" && (err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss") {
			bad("tracker", "%q is no ws or wss address", shown(g.Tracker))
		}
	case WHIP, WHEP:
		if u, err := url.Parse(strings.ReplaceAll(g.Endpoint, clientMark, "0")); err != nil || !isHTTP(u) {
			bad("endpoint", "%q is no http or https address", shown(g.Endpoint))
		}
		all = append(all, g.checkBitrate()...)
	case Join:
		if u, err := url.Parse(g.Tracker); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
			bad("tracker", "%q is no ws or wss address", shown(g.Tracker))
		}
		if g.Swarms == 0 {
			g.Swarms = 1
		}
		if g.Swarms < 1 || g.Swarms > mostClients {
			bad("swarms", "%d; give 1 to %d", g.Swarms, mostClients)
		}
	default:
		bad("behavior", "%q; give one of %v", g.Behavior, behaviors)
	}
	return all
}

// checkBitrate looks at that of video.
func (g *Group) checkBitrate() (all []Problem) {
	g.Bitrate = cmp.Or(g.Bitrate, 300_000)
	if g.Bitrate < 8000 || float64(g.Bitrate) > armwire.MaxRate {
		all = append(all, Problem{"bitrate", fmt.Sprintf("%d; give 8000 to %.0f bit/s", g.Bitrate, armwire.MaxRate)})
	}
	return all
}

// HasPeer says whether the peer under test is an arm, which the controller starts.
func (s *Scenario) HasPeer() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return g.needsPeer() })
}

// needsPeer says whether the clients connect to the arm that is the peer under test.
func (g *Group) needsPeer() bool {
	switch g.Behavior {
	case Viewer, WHIP, WHEP, Join:
		return false
	}
	return true
}
