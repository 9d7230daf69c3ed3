/**
 * Messages of `leeway.v1` (spec/tracker-protocol.md), as they travel: JSON, snake_case. What arrives is validated
 * field by field; unknown fields are dropped, so that nothing unchecked reaches the rest of the library.
 */

import { candidateBytes } from '../ports.ts';
import type { SiteConfig } from '../segment/index.ts';
import { fromBase64url } from './base64.ts';
import { bytes, fail, flag, integer, list, object, one, or, type Reader, size, text, that } from './reader.ts';

/** Bounds of the protocol, bytes and counts. */
const messageBytes = 65_536;
const maxDepth = 16;
const sdpBytes = 16_384;
const saidMessages = 4;
const saidBytes = 8_192;
/** Segments that an offer names. */
export const wantedSegments = 2;
const ticketBytes = 512;
export const candidatesPerLink = 64;

export type RemoteRole = 'viewer' | 'seed';
/** What this viewer may do: `leech` downloads only, `relay-only` never shows its address to another viewer. */
export type ViewerRole = 'full' | 'leech' | 'relay-only' | 'off';

/** What the tracker allows this viewer: the part that this library acts on. */
export interface Policy {
  role: ViewerRole;
  control_group: boolean;
  /** Whether it may fetch ahead, and how many bytes it may lose by that; 0 the default. */
  prefetch: boolean;
  waste_bytes: number;
  /** kbit/s that it may send to others; 0 or left out: any. */
  upload_kbps?: number | undefined;
  /** Bytes of segments that it may keep on its disk; 0 or left out: none. */
  disk_bytes?: number | undefined;
  max_links: number;
  relay: 'allow' | 'never';
  local: 'ask' | 'never' | 'if-granted';
  signed_manifests: 'off' | 'share';
  unknown_line: 'leech' | 'full';
}

export interface IceServerMessage {
  urls: string[];
  username?: string;
  credential?: string;
}

export interface VerifyKeyMessage {
  key_id: string;
  alg: number;
  key: string;
}

export type RevocationMessage = { key_id: string } | { site: string; prefix: string; min_issued_at: number };

export interface PlanMessage {
  v: number;
  data: number;
  message: number;
}

export interface RangeMessage {
  from_ms: number;
  to_ms: number;
}

const failReasons = ['gone', 'busy', 'timeout', 'lna-denied', 'udp-blocked', 'refused', 'plan'] as const;
/** Why a link never opened, as it is signaled and counted. */
export type FailReason = (typeof failReasons)[number];

export interface Welcome {
  type: 'welcome';
  session: string;
  ticket: string;
  resumed: boolean;
  server_time_ms: number;
  site: SiteConfig;
  ice_servers: IceServerMessage[];
  verify_keys: VerifyKeyMessage[];
  revocations: RevocationMessage[];
  policy: Policy;
  limits: { message_bytes: number; swarms: number; messages_per_second: number; links: number };
  update_interval_ms: number;
  stats_interval_ms: number;
  /** Until when the token is good, in the tracker's time; absent where the site asks for none. */
  token_expires_ms?: number;
}

export interface Joined {
  type: 'joined';
  id?: number;
  swarm: string;
  viewers: number;
  seeds: number;
  /** The peers that got the ready offers. */
  offered?: { link: string; peer: string; role: RemoteRole }[];
}

export interface Introduce {
  type: 'introduce';
  swarm: string;
  peers: { peer: string; role: RemoteRole }[];
}

/** The body of a signal, the same in both directions. */
export type SignalBody =
  | { kind: 'offer'; sdp: string; plan: PlanMessage; early?: boolean; wanted?: string[] }
  | { kind: 'answer'; sdp: string; plan: PlanMessage; said?: string[] }
  | { kind: 'candidate'; candidate: string; sdp_mid?: string; sdp_m_line_index?: number }
  | { kind: 'end' }
  | { kind: 'fail'; reason: FailReason };

export type SignalIn = { type: 'signal'; swarm: string; from: string; role: RemoteRole; link: string } & SignalBody;
export type SignalOut = { type: 'signal'; swarm: string; to: string; link: string } & SignalBody;

export interface TrackerErrorMessage {
  type: 'error';
  id?: number;
  code: string;
  message: string;
  hint: string;
  retry_after_ms?: number;
}

export type Incoming =
  | Welcome
  | Joined
  | Introduce
  | SignalIn
  | TrackerErrorMessage
  | { type: 'ticket'; ticket: string }
  | { type: 'keys'; verify_keys: VerifyKeyMessage[] }
  | { type: 'ice'; ice_servers: IceServerMessage[] }
  | { type: 'revoke'; revocations: RevocationMessage[] }
  | { type: 'policy'; policy: Policy }
  | { type: 'reconnect'; after_ms: number }
  | { type: 'granted'; token_expires_ms: number };

export interface Hello {
  type: 'hello';
  version: 1;
  client: string;
  site?: string;
  token?: string;
  ticket?: string;
}

/** An offer for whomever the tracker picks. */
export interface ReadyOffer {
  link: string;
  sdp: string;
  plan: PlanMessage;
  early: boolean;
  /** Segments whose certificates its answer may say. */
  wanted?: string[];
}

export interface Join {
  type: 'join';
  id: number;
  title: string;
  manifest: string;
  role: ViewerRole;
  want: number;
  range?: RangeMessage;
  offers?: ReadyOffer[];
}

export interface Update {
  type: 'update';
  swarm: string;
  range?: RangeMessage;
  saturated: boolean;
  links: number;
  want: number;
}

/** Deltas since the last report; fields as in spec/tracker-protocol.md. */
export type StatsMessage = { type: 'stats'; swarm: string; interval_ms: number } & Record<string, unknown>;

export type Outgoing =
  | Hello
  | Join
  | Update
  | SignalOut
  | StatsMessage
  | { type: 'leave'; swarm: string }
  | { type: 'token'; id: number; token: string };

/** What became of a text that arrived. */
export type Parsed = Incoming | 'unknown' | 'malformed';

const id = bytes(16);
const ms = integer(0, Number.MAX_SAFE_INTEGER);
const interval = integer(100, 3_600_000);
const int31 = 0x7fffffff;
const count = integer(0, int31);
const requestId = or(integer(1, int31));
const off = or(flag, false);
const ticket = text(ticketBytes, 1);
const remoteRole = one<RemoteRole>('viewer', 'seed');

const policy = object<Policy>({
  role: one('full', 'leech', 'relay-only', 'off'),
  control_group: off,
  prefetch: off,
  waste_bytes: or(ms, 0),
  upload_kbps: or(ms),
  disk_bytes: or(ms),
  max_links: integer(0, 1024),
  relay: one('allow', 'never'),
  local: one('ask', 'never', 'if-granted'),
  signed_manifests: one('off', 'share'),
  unknown_line: or(one('leech', 'full'), 'leech'),
});

const site = object<SiteConfig>({
  name: text(32, 1),
  hosts: list(text(255, 1), 64),
  key: or(
    object<NonNullable<SiteConfig['key']>>({
      ignore_query: or(list(text(256), 64)),
      ignore_path: or(list(text(256), 16)),
      path: or(text(256)),
    }),
  ),
  title: or(object<NonNullable<SiteConfig['title']>>({ drop: or(integer(0, 8)) })),
});

const iceServer = object<IceServerMessage>({
  urls: list(text(512, 1), 8),
  username: or(text(512)),
  credential: or(text(512)),
});

const iceServers = list(iceServer, 16);

const algorithm = object({ alg: integer(1, 255) });
const verifyKey = object<VerifyKeyMessage>({ key_id: bytes(8), alg: integer(1, 255), key: bytes(65) });
/** Of seeds (1) and of packagers (2). Keys of other algorithms are for later versions: skipped. */
const verifyKeys: Reader<VerifyKeyMessage[]> = (value) =>
  list((key) => (algorithm(key).alg <= 2 ? [verifyKey(key)] : []), 64)(value).flat();

const absent: Reader<undefined> = that((value: unknown) => value === undefined);
const byKey = object<{ key_id: string; site?: undefined }>({ key_id: bytes(8), site: absent });
const byPrefix = object<{ site: string; prefix: string; min_issued_at: number }>({
  site: text(32, 1),
  prefix: text(1024, 1),
  min_issued_at: integer(1, Number.MAX_SAFE_INTEGER),
});
const revocations = list<RevocationMessage>(
  (value) => ((value as { key_id?: unknown } | null)?.key_id === undefined ? byPrefix : byKey)(value),
  1024,
);

const plan = object<PlanMessage>({ v: integer(1, 255), data: integer(1, 8), message: integer(1_200, 65_535) });

const sdp = text(sdpBytes, 1);
/** A control message that came with an answer. */
const said = that<string>((value: unknown) => {
  const length = (typeof value === 'string' && fromBase64url(value)?.length) || 0;
  return length > 0 && length <= saidBytes;
});
const kinds: Record<string, Reader<object>> = {
  offer: object({ sdp, plan, early: or(flag), wanted: or(list(id, wantedSegments)) }),
  answer: object({ sdp, plan, said: or(list(said, saidMessages)) }),
  candidate: object({
    candidate: text(candidateBytes, 1),
    sdp_mid: or(text(64)),
    sdp_m_line_index: or(integer(0, 255)),
  }),
  end: object({}),
  fail: object({ reason: one(...failReasons) }),
};

const signalHead = object({ swarm: id, from: id, role: remoteRole, link: id });

/** What a table has under a name that came from outside. */
function own<T>(table: Record<string, T>, name: unknown): T | undefined {
  return typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined;
}

const signal: Reader<object> = (value) => {
  const { kind } = value as { kind?: unknown };
  return { ...signalHead(value), kind, ...(own(kinds, kind) ?? fail())(value) };
};

const offered = or(list(object({ link: id, peer: id, role: remoteRole }), 2));

/** Readers of all fields but `type`. */
const readers: Record<string, Reader<object>> = {
  welcome: object<Omit<Welcome, 'type'>>({
    session: id,
    ticket,
    resumed: off,
    server_time_ms: ms,
    site,
    ice_servers: iceServers,
    verify_keys: verifyKeys,
    revocations,
    policy,
    limits: object<Welcome['limits']>({
      message_bytes: count,
      swarms: count,
      messages_per_second: count,
      links: count,
    }),
    update_interval_ms: interval,
    stats_interval_ms: interval,
    token_expires_ms: or(ms),
  }),
  joined: object<Omit<Joined, 'type'>>({ id: requestId, swarm: id, viewers: ms, seeds: ms, offered }),
  introduce: object({ swarm: id, peers: list(object({ peer: id, role: remoteRole }), 32) }),
  signal,
  error: object<Omit<TrackerErrorMessage, 'type'>>({
    id: requestId,
    code: text(32, 1),
    message: text(512),
    hint: or(text(512), ''),
    retry_after_ms: or(ms),
  }),
  ticket: object({ ticket }),
  keys: object({ verify_keys: verifyKeys }),
  ice: object({ ice_servers: iceServers }),
  revoke: object({ revocations }),
  policy: object({ policy }),
  reconnect: object({ after_ms: ms }),
  granted: object({ token_expires_ms: ms }),
};

/** Whether brackets nest deeper than the protocol allows; asked before JSON.parse sees the text. */
function tooDeep(json: string): boolean {
  let depth = 0;
  for (const bracket of json.replace(/"(\\.|[^"\\])*"/g, '').replace(/[^[\]{}]/g, '')) {
    depth += bracket === '{' || bracket === '[' ? 1 : -1;
    if (depth > maxDepth) return true;
  }
  return false;
}

/** Reads one message of the tracker. Never throws. */
export function parseIncoming(json: unknown): Parsed {
  try {
    if (typeof json !== 'string' || size(json) > messageBytes || tooDeep(json)) return 'malformed';
    const value: unknown = JSON.parse(json);
    const type = (value as { type: unknown }).type;
    const read = own(readers, type);
    if (read) return { type, ...read(value) } as Incoming;
    text(32, 1)(type);
    return 'unknown';
  } catch {
    return 'malformed';
  }
}
