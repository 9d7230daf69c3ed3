package app

import (
	"path/filepath"
	"time"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/judge"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/turnd"
	"github.com/leeway-video/leeway/internal/webtorrent"
)

// Config is the whole configuration: one file, a section a service. Fields tagged secret are never printed.
type Config struct {
	Log     LogConfig     `yaml:"log"`
	Admin   AdminConfig   `yaml:"admin"`
	Sites   []site.Config `yaml:"sites"`
	Tracker TrackerConfig `yaml:"tracker"`
	Seed    SeedConfig    `yaml:"seed"`
	Turn    TurnConfig    `yaml:"turn"`
	Probe   ProbeConfig   `yaml:"probe"`
	NATS    NATSConfig    `yaml:"nats"`
	Origin  OriginConfig  `yaml:"origin"`
	Up      UpConfig      `yaml:"up"`
}

// LogConfig says how logs are written, to standard error.
type LogConfig struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json, auto: text on a terminal
}

// AdminConfig is of the admin port of every service, and of the commands that ask it.
type AdminConfig struct {
	Token     string   `yaml:"token" secret:"true"` // 32 characters or more, which purge, switch and pprof need; empty: that of token_file
	TokenFile string   `yaml:"token_file"`          // made when it is missing; empty: admin-token in the service's data_dir, if it has one
	Hosts     []string `yaml:"hosts"`               // names by which the port is asked, beside IP addresses, localhost and the name listened on
}

// TrackerConfig is of `leeway tracker`; `leeway up` has addresses and folder of its own and takes the rest from here.
//
// Large: a key for each thing that an operator may set.
type TrackerConfig struct {
	Listen         string   `yaml:"listen"`               // HOST:PORT of WebSocket and script
	Admin          string   `yaml:"admin"`                // HOST:PORT of metrics, health, purge
	DataDir        string   `yaml:"data_dir"`             // the secret, when it is not given
	Secret         string   `yaml:"secret" secret:"true"` // base64url, 32 bytes or more; the same on all trackers
	TrustedProxies []string `yaml:"trusted_proxies"`      // CIDRs whose proxy_header is believed
	ProxyHeader    string   `yaml:"proxy_header"`         // x-forwarded-for, forwarded: where those name their client
	RegionHeader   string   `yaml:"region_header"`        // header in which trusted proxies say where a viewer is, such as cf-ipcountry; empty: viewers have no region
	ProxyProtocol  []string `yaml:"proxy_protocol"`       // CIDRs of balancers that begin each connection with a PROXY header, version 1 or 2
	CertFile       string   `yaml:"cert_file"`            // TLS certificate of listen, read again when it changes; empty: no TLS
	KeyFile        string   `yaml:"key_file"`             // and its key

	ICEServers      []ICEServer   `yaml:"ice_servers"`      // STUN and TURN servers told to viewers; none is public by default
	CredentialsLife time.Duration `yaml:"credentials_life"` // of those made with a secret of ice_servers

	TokenGrace        time.Duration `yaml:"token_grace"`         // in which a session whose token has run out may show another
	UpdateInterval    time.Duration `yaml:"update_interval"`     // between a viewer's updates
	StatsInterval     time.Duration `yaml:"stats_interval"`      // between a viewer's statistics
	TicketLife        time.Duration `yaml:"ticket_life"`         // in which a lost session can be resumed
	DrainSpread       time.Duration `yaml:"drain_spread"`        // in which a drain hands viewers over, or they come back
	HarmPause         time.Duration `yaml:"harm_pause"`          // for which peer delivery is off where it proved to hurt
	MaxSessions       int           `yaml:"max_sessions"`        // sockets of this tracker
	MaxSwarms         int           `yaml:"max_swarms"`          // of one session
	MaxMembers        int           `yaml:"max_members"`         // of one swarm; above it is parted
	MessagesPerSecond int           `yaml:"messages_per_second"` // of one session
	ConnectsPerSecond int           `yaml:"connects_per_second"` // of one address
	PeersPerHour      int           `yaml:"peers_per_hour"`      // viewers that a session learns of; its address and its subject 16 times that
	MaxPerAddress     int           `yaml:"max_per_address"`     // sockets of one address
	MaxPerSubject     int           `yaml:"max_per_subject"`     // sessions of one subject of join tokens, at all trackers

	TitleNames bool `yaml:"title_names"` // the ten busiest titles of a site have their names in metrics and on the admin port, where they have hashes otherwise

	WebTorrent WebTorrentConfig `yaml:"webtorrent"`
}

// WebTorrentConfig is of the WebTorrent protocol on /announce, which is off until one of the first two is set.
type WebTorrentConfig struct {
	InfoHashes []string      `yaml:"info_hashes"`         // hex: what may be announced
	Token      string        `yaml:"token" secret:"true"` // a client announces with it: /announce?token=…
	Interval   time.Duration `yaml:"interval"`            // between a client's announces
	MaxSwarms  int           `yaml:"max_swarms"`          // of one socket
}

// ICEServer is a STUN or TURN server. With a secret each session gets credentials of its own (spec/turn.md).
type ICEServer struct {
	URLs       []string `yaml:"urls"`                     // stun:, turn: or turns: with host, port and ?transport=udp or tcp
	Username   string   `yaml:"username"`                 // fixed credentials, the same for all viewers
	Credential string   `yaml:"credential" secret:"true"` // of the username
	Secret     string   `yaml:"secret" secret:"true"`     // one of turn.secrets
}

// SeedConfig is of `leeway seed`; `leeway up` takes everything but data_dir and admin from here.
//
// Large: a key for each thing that an operator may set.
type SeedConfig struct {
	Listen        string       `yaml:"listen"`         // HOST:PORT, UDP; empty in up: the host of up.listen, port 4600
	Admin         string       `yaml:"admin"`          // HOST:PORT of metrics, health
	DataDir       string       `yaml:"data_dir"`       // signing key and store
	Announce      []string     `yaml:"announce"`       // addresses told to viewers instead of the machine's own; node: those of the Kubernetes node; stun:HOST:PORT: as which that server sees this machine
	Node          string       `yaml:"node"`           // name of that node
	Probe         bool         `yaml:"probe"`          // not ready, and no viewer sent here, before a tracker's packet has come to where the seed is announced
	MemoryBytes   int64        `yaml:"memory_bytes"`   // pieces held in memory
	DiskBytes     int64        `yaml:"disk_bytes"`     // pieces held on disk
	MaxLinks      int          `yaml:"max_links"`      // viewers linked at a time
	MaxTitles     int          `yaml:"max_titles"`     // titles followed at a time
	IndexBytes    int64        `yaml:"index_bytes"`    // what the playlists of titles list, held in memory
	Rate          int64        `yaml:"rate"`           // bytes per second sent in all, 0 is unlimited
	DailyBytes    int64        `yaml:"daily_bytes"`    // bytes a day sent in all, 0 is unlimited
	SiteBudgets   []SiteBudget `yaml:"site_budgets"`   // what one site may have of rate and daily_bytes
	SessionFactor float64      `yaml:"session_factor"` // what one viewer gets: factor × bitrate × time
	LookAhead     int          `yaml:"look_ahead"`     // segments fetched before they are asked for
	Redirects     []string     `yaml:"redirects"`      // URL prefixes beside fetch_base that origins' redirects may lead to
	Private       []string     `yaml:"private"`        // CIDRs of private addresses that origins' names may resolve to
	Allow         []string     `yaml:"allow"`          // ranges, addresses, addresses and ports of viewers that may be sent to though they are private; loopback is where the seed listens there
	PionRecords   bool         `yaml:"pion_records"`   // pion writes and reads the DTLS records of links, which costs more: the way back from records of ours
	Fleet         FleetConfig  `yaml:"fleet"`          // other seeds
}

// FleetConfig makes a seed one of several that have segments from each other; of `leeway seed` alone.
type FleetConfig struct {
	Listen   string   `yaml:"listen"`               // HOST:PORT for the other seeds, within the cluster; empty: the seed is alone
	Announce string   `yaml:"announce"`             // address that they are told; empty: the host of listen
	Secret   string   `yaml:"secret" secret:"true"` // 32 characters or more, the same on all seeds of the fleet
	Allow    []string `yaml:"allow"`                // CIDRs that the others' addresses may lie in; empty: private ranges
	WarmUp   int64    `yaml:"warm_up"`              // bytes at most that a seed has of the others before viewers are sent to it; 0: none
}

// SiteBudget bounds what a seed sends for one site.
type SiteBudget struct {
	Site       string `yaml:"site"`        // name, as in sites
	Rate       int64  `yaml:"rate"`        // bytes per second, 0 is unlimited
	DailyBytes int64  `yaml:"daily_bytes"` // bytes a day, 0 is unlimited
}

// TurnConfig is of `leeway turn`.
//
// Large: a key for each thing that an operator may set.
type TurnConfig struct {
	Listen         string        `yaml:"listen"`                // HOST:PORT, UDP and TCP
	ListenTLS      string        `yaml:"listen_tls"`            // HOST:PORT, TLS; only with cert_file
	CertFile       string        `yaml:"cert_file"`             // TLS certificate, read again when it changes
	KeyFile        string        `yaml:"key_file"`              // and its key
	ProxyProtocol  []string      `yaml:"proxy_protocol"`        // CIDRs of balancers that begin each connection, TCP or TLS, with a PROXY header, version 1 or 2
	Admin          string        `yaml:"admin"`                 // HOST:PORT of metrics, health
	Secrets        []string      `yaml:"secrets" secret:"true"` // credentials made with any of them are taken; the first is the one of usernames that do not say
	Realm          string        `yaml:"realm"`                 // of TURN, told to clients
	Announce       []string      `yaml:"announce"`              // addresses told as relayed ones, at most one of each family, instead of the machine's own
	PortMin        int           `yaml:"port_min"`              // lowest UDP port of relayed addresses
	PortMax        int           `yaml:"port_max"`              // highest one
	Sockets        int           `yaml:"sockets"`               // UDP sockets on the port of listen; 0: one a processor
	Allow          []string      `yaml:"allow"`                 // ranges, addresses, addresses and ports that may be reached though they are private: seeds
	MaxAllocations int           `yaml:"max_allocations"`       // allocations at a time, in all
	MaxPerUser     int           `yaml:"max_per_user"`          // allocations of one session
	MaxPerAddress  int           `yaml:"max_per_address"`       // allocations, and connections, of one address of viewers, in IPv6 of one /48
	MaxConnections int           `yaml:"max_connections"`       // TCP and TLS
	Rate           int64         `yaml:"rate"`                  // bytes per second relayed in all, 0 is unlimited
	AllocationRate int64         `yaml:"allocation_rate"`       // bytes per second of one allocation, 0 is unlimited
	Drain          time.Duration `yaml:"drain"`                 // for which allocations go on when the relay is to end
}

// ProbeConfig is of `leeway probe serve`; `leeway up` has an admin port of its own and takes the rest from here.
type ProbeConfig struct {
	Listen        string        `yaml:"listen"`          // HOST:PORT of the tests; empty: port 8090, in up on the host of up.listen
	Admin         string        `yaml:"admin"`           // HOST:PORT of metrics, health
	CertFile      string        `yaml:"cert_file"`       // TLS certificate of listen, read again when it changes; empty: no TLS
	KeyFile       string        `yaml:"key_file"`        // and its key
	ProxyProtocol []string      `yaml:"proxy_protocol"`  // CIDRs of balancers that begin each connection with a PROXY header, version 1 or 2
	UDP           string        `yaml:"udp"`             // HOST:PORT of data channels, UDP; empty: port 4601 on the host of listen
	Announce      []string      `yaml:"announce"`        // addresses told to clients for data channels instead of the one that they have reached
	STUN          []string      `yaml:"stun"`            // HOST:PORT of the cluster's STUN servers, such as its relays, at most 4; two addresses tell a client what its NAT does; an empty host is that of the probe
	ICEServers    []ICEServer   `yaml:"ice_servers"`     // relays of which a page that checks asks an address, with credentials of its own; where stun is empty they are its STUN servers, too; empty in up: tracker.ice_servers
	Open          bool          `yaml:"open"`            // any client may test; else those with a join token of a site
	MaxTests      int           `yaml:"max_tests"`       // at a time
	MaxPerAddress int           `yaml:"max_per_address"` // of those, of one address
	DailyBytes    int64         `yaml:"daily_bytes"`     // bytes a day of one address, both directions
	Drain         time.Duration `yaml:"drain"`           // for which tests go on when the server is to end
}

// NATSConfig joins replicas. Without a URL the process has a server of its own.
type NATSConfig struct {
	URL             string `yaml:"url"`                    // nats://HOST:PORT, several with commas
	Listen          string `yaml:"listen"`                 // HOST:PORT on which the embedded server takes other processes; empty is none
	User            string `yaml:"user"`                   // name at the server; of the embedded server, the one that others give
	Password        string `yaml:"password" secret:"true"` // of the user
	CredentialsFile string `yaml:"credentials_file"`       // of a NATS account
	NKeyFile        string `yaml:"nkey_file"`              // of a NATS user known by its public key
	CAFile          string `yaml:"ca_file"`                // TLS roots instead of the system's
	CertFile        string `yaml:"cert_file"`              // TLS client certificate
	KeyFile         string `yaml:"key_file"`               // and its key
}

// PictureConfig is what an origin shows: a film, or a stream that is made while it is watched.
type PictureConfig struct {
	Media      string        `yaml:"media"`       // video file, or a folder with master.m3u8; empty is the sample film
	Live       bool          `yaml:"live"`        // a clock, encoded in real time, instead of a film
	LowLatency bool          `yaml:"low_latency"` // the clock's segments are published in parts
	Part       time.Duration `yaml:"part"`        // length of these parts, 100ms to 1s; 0: 500ms
	Replay     bool          `yaml:"replay"`      // the film as a live stream without end
	Segment    time.Duration `yaml:"segment"`     // length of segments, 2s, 4s, 6s; 0: 4s, of a live stream 2s
	Window     time.Duration `yaml:"window"`      // length of a live stream's playlists; 0: 30s
}

// OriginConfig is of `leeway origin`, which stands in for a site's own where there is none.
type OriginConfig struct {
	Listen        string `yaml:"listen"`      // HOST:PORT of page and film
	SeedListen    string `yaml:"seed_listen"` // HOST:PORT of the film for seeds, without TLS, so that metrics tell them from viewers; empty: none
	Admin         string `yaml:"admin"`       // HOST:PORT of metrics, health
	PictureConfig `yaml:",inline"`
	PackagerKey   string `yaml:"packager_key"` // file of the key that signs a live stream; empty: it is not signed
	Tracker       string `yaml:"tracker"`      // ws:// or wss:// address that the page's script is told
	CertFile      string `yaml:"cert_file"`    // TLS certificate of listen, read again when it changes; empty: no TLS
	KeyFile       string `yaml:"key_file"`     // and its key
}

// UpConfig is of `leeway up` alone.
type UpConfig struct {
	Listen        string `yaml:"listen"`   // HOST:PORT of page, script, WebSocket and film
	Admin         string `yaml:"admin"`    // HOST:PORT of metrics, health, purge
	DataDir       string `yaml:"data_dir"` // keys and the seed's store
	Open          bool   `yaml:"open"`     // any program that can reach the address of listen may join
	PictureConfig `yaml:",inline"`
	SignLive      bool   `yaml:"sign_live"`              // as a packager does
	SignFilm      bool   `yaml:"sign_film"`              // the digests of a film, as a packager does
	Site          string `yaml:"site"`                   // file with one site's configuration, served instead of the film
	OriginRate    int    `yaml:"origin_rate"`            // bytes per second of a viewer's connection to the origin, 0 is unshaped
	Prefetch      bool   `yaml:"prefetch"`               // the film's viewers fetch ahead in the background
	Control       int    `yaml:"control_group_permille"` // of the film's viewers, served by the origin alone
	Role          string `yaml:"role"`                   // of the film's viewers: full, leech, relay-only, off
	OriginFault   string `yaml:"origin_fault"`           // none, 404, 500, slow, late: what segments get instead
}

// Default ports; docs/operations/network.md has the table. Each service has an admin port of its own, so that they run on one machine;
// leeway up is all of them in one process, and has the tracker's, which purge and switch ask.
const (
	seedPort     = "4600"
	probePort    = "8090"
	probeUDPPort = "4601"
	trackerAdmin = "127.0.0.1:9464"
	seedAdmin    = "127.0.0.1:9465"
	turnAdmin    = "127.0.0.1:9466"
	probeAdmin   = "127.0.0.1:9467"
	originAdmin  = "127.0.0.1:9468"
)

// defaults is the configuration with nothing said: the services' own defaults, and ports and folders.
func defaults(getenv func(string) string) *Config {
	dir := dataDir(getenv)
	track, torrents, seeds, relays, packets, tests := tracker.Defaults(), webtorrent.Defaults(), seed.Defaults(), relay.Defaults(), turnd.Defaults(), probe.Defaults()
	return &Config{
		Log: LogConfig{Level: "info", Format: "auto"},
		Tracker: TrackerConfig{
			Listen: ":8080", Admin: trackerAdmin, DataDir: filepath.Join(dir, "tracker"), ProxyHeader: headerXForwardedFor,
			UpdateInterval: track.UpdateInterval, StatsInterval: track.StatsInterval, TicketLife: track.TicketLife, DrainSpread: track.DrainSpread,
			HarmPause: judge.DefaultPause, MaxSessions: track.MaxSessions, MaxPerAddress: track.MaxPerAddress, MaxPerSubject: track.MaxPerSubject,
			MaxSwarms: track.MaxSwarms, MaxMembers: track.MaxMembers, MessagesPerSecond: track.MessagesPerSecond, ConnectsPerSecond: track.ConnectsPerSecond,
			PeersPerHour: track.PeersPerHour, CredentialsLife: track.CredentialsLife, TokenGrace: track.TokenGrace,
			WebTorrent: WebTorrentConfig{Interval: torrents.Interval, MaxSwarms: torrents.MaxSwarms},
		},
		Seed: SeedConfig{
			Admin: seedAdmin, DataDir: filepath.Join(dir, "seed"),
			MemoryBytes: seeds.MemoryBytes, DiskBytes: seeds.DiskBytes, MaxLinks: seeds.MaxLinks, MaxTitles: seeds.MaxTitles, IndexBytes: seeds.IndexBytes,
			SessionFactor: seeds.SessionFactor, Probe: true, Fleet: FleetConfig{WarmUp: 64 << 20},
		},
		Turn: TurnConfig{
			Listen: ":3478", ListenTLS: ":5349", Admin: turnAdmin, Realm: packets.Realm, PortMin: int(packets.PortMin), PortMax: int(packets.PortMax),
			MaxAllocations: relays.MaxAllocations, MaxPerUser: relays.MaxPerUser, MaxPerAddress: relays.MaxPerAddress, MaxConnections: relays.MaxConnections,
			AllocationRate: 2_500_000, Drain: 30 * time.Second,
		},
		Probe:  ProbeConfig{Admin: probeAdmin, MaxTests: tests.MaxTests, MaxPerAddress: tests.MaxPerAddress, DailyBytes: tests.DailyBytes, Drain: 15 * time.Second},
		Origin: OriginConfig{Listen: "127.0.0.1:8088", Admin: originAdmin},
		Up:     UpConfig{Listen: "127.0.0.1:8080", Admin: trackerAdmin, DataDir: filepath.Join(dir, "up"), OriginFault: origin.FaultNone, Prefetch: true, SignLive: true, Role: site.RoleFull},
	}
}

// address is the value of a key that is listened on.
type address struct {
	key, value string
	optional   bool // may be empty
}

func (c *Config) addresses() []address {
	return []address{
		{"tracker.listen", c.Tracker.Listen, false},
		{"tracker.admin", c.Tracker.Admin, false},
		{"seed.listen", c.Seed.Listen, true},
		{"seed.admin", c.Seed.Admin, false},
		{"seed.fleet.listen", c.Seed.Fleet.Listen, true},
		{"turn.listen", c.Turn.Listen, false},
		{"turn.listen_tls", c.Turn.ListenTLS, false},
		{"turn.admin", c.Turn.Admin, false},
		{"probe.listen", c.Probe.Listen, true},
		{"probe.udp", c.Probe.UDP, true},
		{"probe.admin", c.Probe.Admin, false},
		{"nats.listen", c.NATS.Listen, true},
		{"origin.listen", c.Origin.Listen, false},
		{"origin.seed_listen", c.Origin.SeedListen, true},
		{"origin.admin", c.Origin.Admin, false},
		{"up.listen", c.Up.Listen, false},
		{"up.admin", c.Up.Admin, false},
	}
}

// dataDir is $XDG_DATA_HOME/leeway, else ~/.local/share/leeway.
func dataDir(getenv func(string) string) string {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leeway")
	}
	return filepath.Join(getenv("HOME"), ".local", "share", "leeway")
}
