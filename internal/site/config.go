package site

// Config is what an operator says of a site (spec/site.md, "Site configuration"). What JSON leaves out stays on the
// servers; the rest reaches viewers in `welcome`.
type Config struct {
	Name   string   `yaml:"name" json:"name"`               // label in metrics and certificates: 1–32 of a-z 0-9 -
	Hosts  []string `yaml:"hosts" json:"hosts"`             // host or host:port that serve the same paths
	Key    KeyRule  `yaml:"key,omitempty" json:"key"`       // how URLs become keys
	Title  Titles   `yaml:"title,omitempty" json:"title"`   // how manifests' keys become titles
	Access string   `yaml:"access,omitempty" json:"access"` // AccessPublic or AccessToken; empty: AccessToken where there are token_keys
	Policy Policy   `yaml:"policy,omitempty" json:"policy"` // what the site allows
	// Off has no peer delivery at all, as the switch of a site has it; processes notice a change of it while they run.
	Off bool `yaml:"off,omitempty" json:"-"`
	// TokenKeys is the file of the keys that join tokens are checked with (spec/access.md); seeds need none.
	TokenKeys string `yaml:"token_keys,omitempty" json:"-"`
	// PackagerKeys are public keys of packagers (spec/packaging.md, "Keys"); where there are any, playlists have lists.
	PackagerKeys []string `yaml:"packager_keys,omitempty" json:"-"`
	// FetchBase is the URL below which seeds fetch the site's paths; empty where no seed serves the site.
	FetchBase string `yaml:"fetch_base,omitempty" json:"-"`
	// Files are patterns of the paths of files that viewers may share as they are (spec/site.md, "Files"): a * at the end is any rest.
	Files []string `yaml:"files,omitempty" json:"-"`
	// FetchAuth is how seeds show the origin that they may fetch.
	FetchAuth FetchAuth `yaml:"fetch_auth,omitempty" json:"-"`
	// CMCD has trackers count what players report in event mode of CMCD (spec/cmcd.md).
	CMCD bool `yaml:"cmcd,omitempty" json:"-"`
	// PageOrigins are the origins ("https://www.example.com") of pages that may join beside those on hosts; "*" is any.
	PageOrigins []string `yaml:"page_origins,omitempty" json:"-"`
}

// KeyRule says what of a URL does not select content.
type KeyRule struct {
	IgnoreQuery []string `yaml:"ignore_query,omitempty" json:"ignore_query,omitempty"` // names in percent form; a trailing * matches a prefix
	IgnorePath  []string `yaml:"ignore_path,omitempty" json:"ignore_path,omitempty"`   // path elements in percent form, wherever they stand; a trailing * matches a prefix
	Path        string   `yaml:"path,omitempty" json:"path,omitempty"`                 // pattern such as /t/{}/ for tokens in the path
	Presets     []string `yaml:"presets,omitempty" json:"-"`                           // akamai, bunny, cloudflare, cloudfront, fastly, gcs, nginx, s3: what they sign URLs with is ignored
}

// FetchAuth is what an origin asks of seeds below fetch_base. What is secret stands in files.
type FetchAuth struct {
	HeadersFile string   `yaml:"headers_file,omitempty"` // file of headers that seeds send with each request: lines of Name: value
	Sign        string   `yaml:"sign,omitempty"`         // SignNginx, SignCloudFront: seeds sign each URL; empty: they do not
	KeyFile     string   `yaml:"key_file,omitempty"`     // file with what seeds sign with. nginx: the value of secure_link_md5, secret included; cloudfront: the private key in PEM
	KeyPairID   string   `yaml:"key_pair_id,omitempty"`  // of CloudFront's public key
	Parameters  []string `yaml:"parameters,omitempty"`   // of nginx: names of the parameters with signature and expiry; empty: md5, expires
}

// Titles is the title rule.
type Titles struct {
	Drop int `yaml:"drop,omitempty" json:"drop,omitempty"` // further elements dropped from the end of a manifest's path, 0–8
	// Explicit says which manifests an explicit title may be joined with. Trackers alone look at it.
	Explicit []Binding `yaml:"explicit,omitempty" json:"-"`
}

// Binding binds explicit titles to manifests (spec/site.md, "Titles and their manifests").
type Binding struct {
	Title     string   `yaml:"title" json:"title"`         // pattern of a title: {} stands for one to any number of bytes without a slash
	Manifests []string `yaml:"manifests" json:"manifests"` // patterns of manifests' keys: {} stands for what it stood for in the title, a * at the end for any rest
}

// Values of Config.Access, Policy.Role, Policy.Prefetch, Policy.Relay, Policy.Local, Policy.SignedManifests, Policy.CostlyTitles, FetchAuth.Sign and
// Policy.UnknownLine.
const (
	AccessPublic = "public"
	AccessToken  = "token"

	RoleFull      = "full"
	RoleLeech     = "leech"      // never uploads
	RoleRelayOnly = "relay-only" // shows its address to no viewer
	RoleOff       = "off"

	PrefetchAllow = "allow"
	PrefetchNever = "never"

	RelayAllow = "allow"
	RelayNever = "never"

	LocalAsk       = "ask"
	LocalNever     = "never"
	LocalIfGranted = "if-granted"

	SignedOff   = "off"
	SignedShare = "share"

	SignNginx      = "nginx"      // nginx's secure_link
	SignCloudFront = "cloudfront" // signed URLs of CloudFront, canned policy

	CostlyRest  = "rest"
	CostlyShare = "share"

	UnknownLineLeech = "leech"
	UnknownLineFull  = "full"
)

// Defaults and limits of Policy.
const (
	DefaultCertifyFrom  = 2
	DefaultMaxLinks     = 16
	MaxLinks            = 32
	MinUploadKbps       = 100 // below, a viewer's requesters would take it for stalled: let it be a leech
	MaxUploadKbps       = 10_000_000
	MaxDiskBytes        = 1 << 40
	DefaultControlGroup = 30 // permille, of a site that an operator wrote down
)

// Preset is what a file means by what it leaves out, where zero means something else.
func (c *Config) Preset() { c.Policy.ControlGroupPermille = DefaultControlGroup }

// Policy is what a site allows (spec/tracker-protocol.md). New fills what is empty with the defaults named here.
type Policy struct {
	Prefetch             string `yaml:"prefetch,omitempty" json:"prefetch"`                   // PrefetchAllow (default), PrefetchNever: the background lane
	WasteBytes           int64  `yaml:"waste_bytes,omitempty" json:"waste_bytes"`             // bytes that a viewer may prefetch and never play; 0 is 16,777,216
	Role                 string `yaml:"role,omitempty" json:"role"`                           // RoleFull (default), RoleLeech, RoleRelayOnly, RoleOff
	Relay                string `yaml:"relay,omitempty" json:"relay"`                         // RelayAllow (default), RelayNever
	Local                string `yaml:"local,omitempty" json:"local"`                         // LocalIfGranted (default), LocalAsk, LocalNever
	CertifyFrom          int    `yaml:"certify_from,omitempty" json:"-"`                      // viewers in a swarm from which on seeds certify, ≥ 1; 0 is 2
	MinViewers           int    `yaml:"min_viewers,omitempty" json:"-"`                       // viewers of a title from which on peers are introduced, ≥ 1; 0 is 1
	CostlyTitles         string `yaml:"costly_titles,omitempty" json:"-"`                     // CostlyRest (default): the origin alone serves a title for a while whose peers cost more than they save; CostlyShare
	HoldBackPermille     int    `yaml:"hold_back_permille,omitempty" json:"-"`                // viewers without peer delivery, 0–1000: those that a roll-out has not reached
	ControlGroupPermille int    `yaml:"control_group_permille" json:"control_group_permille"` // viewers served by the origin alone, 0–1000
	SignedManifests      string `yaml:"signed_manifests,omitempty" json:"signed_manifests"`   // SignedOff (default), SignedShare
	UnknownLine          string `yaml:"unknown_line,omitempty" json:"unknown_line"`           // UnknownLineLeech (default), UnknownLineFull: phones that do not say how they are connected
	UploadKbps           int64  `yaml:"upload_kbps,omitempty" json:"-"`                       // kbit/s that one viewer sends to others at most, 100–10000000; 0: no cap
	DiskBytes            int64  `yaml:"disk_bytes,omitempty" json:"-"`                        // bytes of films that a page keeps on its viewer's disk at most, 1–1099511627776; 0: pages keep nothing
	MaxLinks             int    `yaml:"max_links,omitempty" json:"max_links"`                 // links of one viewer, 1–32; 0 is 16
}
