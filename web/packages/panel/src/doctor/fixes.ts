/** What to do, in the words of `leeway doctor` (internal/doctor), where the fault is the same. A test reads both. */

/** By code. */
export const fixes = {
  'tracker-insecure': 'write wss:// and give the tracker TLS (tracker.cert_file, or a proxy before it)',
  'tracker-wrong-server':
    'the tracker has its WebSocket on / of tracker.listen; a proxy before it has to pass Upgrade on',
  'tracker-unreachable': 'start the server, or correct host and port: nothing listens there',
  'welcome-timeout': "look at the tracker's log, and whether a proxy before it passes WebSocket messages on",
  'no-keys': 'start a seed (leeway seed, with nats.url of the trackers), or wait some seconds if it has just started',
  'token-required': "which leeway token mint makes with the site's key; the page gives it by data-token",
  'token-expired':
    'mint a new token: leeway token mint --life 5m; if it is fresh, compare the clocks of the backend and of the tracker',
  'bad-token':
    "sign with a key of the site's token_keys: leeway token verify --keys keys.json --site NAME TOKEN says what is wrong",
  'site-off':
    'leeway switch SITE on, if an operator switched it off or harm was found; else policy.role and off of the site, and role of the token',
  'clock-skew': 'set the clock of whichever is wrong by NTP (timedatectl set-ntp true)',
  'no-relays': 'run leeway turn and name it in tracker.ice_servers (docs/operations/turn.md)',
  'turn-refused':
    "compare the secret of tracker.ice_servers with turn.secrets, and the clocks of tracker and relay; a quota (turn.max_allocations, max_per_address) is in the relay's log",
  'turn-dead':
    'start leeway turn there, open its port (3478/udp and tcp, 5349/tcp) in the firewall, or take it out of tracker.ice_servers',
  'stun-dead': 'start the STUN server, open its port, or take it out of tracker.ice_servers',
  'no-seed':
    'start a seed (leeway seed, with nats.url of the trackers), and give the site a fetch_base; a seed that is not ready says why at its /readyz: usually UDP 4600 is closed, or seed.announce is missing',
  'link-none':
    "open the seed's UDP port (4600) in the firewall and set seed.announce to its public address (docs/operations/seeds.md, Where seeds are); this machine may block UDP",
  'piece-none':
    'the seed does not certify: run leeway doctor --config FILE on its machine, which fetches from fetch_base as the seed does. If it ends well and the file was changed, restart the seed. /metrics of the seed counts leeway_seed_origin_requests_total by outcome. policy.certify_from above 2 needs more viewers',
} as const;

/** The beginnings of fixes that go on with what was seen. */
export const begun = {
  'origin-refused': 'add it to the site: page_origins: [',
  'foreign-manifest': 'add it to the site: hosts: [',
  'signed-urls': 'add to the site: key: {ignore_query: [',
} as const;
