/**
 * What the engine, the links and the player plug-ins say to each other. Everything that touches the page (clock,
 * crypto, channels, fetch) comes in through these ports; nothing here has an implementation.
 */

/** Why a segment, or a part of it, did not come from a viewer: the closed set of spec/schedule.md. */
export const reasons = [
  'no-cert',
  'no-holder',
  'udp-blocked',
  'symmetric-nat',
  'lna-denied',
  'insecure-context',
  'policy',
  'budget',
  'needs-token',
  'urgent',
  'control-group',
] as const;
export type Reason = (typeof reasons)[number];

/** Why a link ended, as the side that notices it says: the closed set of spec/peer-protocol.md. */
export const linkCloseReasons = [
  'closed',
  'failed',
  'timeout',
  'version',
  'protocol-error',
  'bad-piece',
  'false-have',
  'stalled',
  'over-limit',
  'policy',
  'idle',
  'shutdown',
] as const;
export type LinkCloseReason = (typeof linkCloseReasons)[number];

/** An ICE candidate as it is signaled, characters, at most (spec/tracker-protocol.md). */
export const candidateBytes = 512;

export type Source = 'origin' | 'seed' | 'peer';
export type LinkPath = 'direct' | 'relay';
export type PeerRole = 'viewer' | 'seed';

/** Milliseconds, monotonic, fractional. */
export interface Clock {
  now(): number;
  /** It steps by 10 ms or more at a time, as browsers have it that resist fingerprinting. */
  coarse?(): boolean;
  setTimer(f: () => void, ms: number): number;
  clearTimer(id: number): void;
}

export interface Crypto {
  /** SHA-256. */
  digest(data: Uint8Array): Promise<Uint8Array>;
  /** ECDSA P-256 with SHA-256; `key` is the uncompressed point (65 bytes), `signature` r ‖ s (64 bytes). */
  verify(key: Uint8Array, signature: Uint8Array, data: Uint8Array): Promise<boolean>;
}

/** One open link, given to the engine once its channels are up. The engine sets the callbacks in `addLink`. */
export interface PeerLink {
  /** The other side's peer ID, 32 hex characters, as the signal named it. */
  readonly peer: string;
  readonly role: PeerRole;
  /** Largest message on a data channel, bytes, agreed in the channel plan. */
  readonly maxMessage: number;
  /** The segments that this side's answer has announced, after its hello; undefined: nothing has been said yet. */
  readonly greeted?: string[];
  /** The segments whose certificates this side's offer asked for. */
  readonly wanted?: string[];
  path(): LinkPath;
  /** Never throws; a no-op after the close. */
  sendControl(message: Uint8Array): void;
  /** False: every data channel's buffer is above its bound; the message was not sent, try again on drain. */
  sendData(message: Uint8Array): boolean;
  /** Whether the peer has read nearly all that was said: else what is long waits for `onDrain`. */
  controlRoom(): boolean;
  /** Bytes that were given to the data channels and wait in their buffers. */
  waiting(): number;
  /** Gives the emptiest data channel a message, whatever its room; false: the link is closing. */
  sendBackground(message: Uint8Array): boolean;
  /** For the ack channel. */
  sendAck(message: Uint8Array): void;
  onControl?: (message: Uint8Array) => void;
  onData?: (message: Uint8Array) => void;
  onAck?: (message: Uint8Array) => void;
  onDrain?: () => void;
  /** Its packets take another way now. */
  onMoved?: () => void;
  /** The tracker has named its peer; `again` offers another link, once this one has ended. */
  onNamed?: (again: () => void) => void;
  onClose?: (reason: LinkCloseReason) => void;
  /** Sends `bye` first if one is given (the codes of spec/peer-protocol.md). `onClose` is not called for it. */
  close(reason: LinkCloseReason, bye?: number): void;
}

export interface ByteRange {
  first: number;
  /** Inclusive. */
  last: number;
}

export interface OriginResult {
  data: ArrayBuffer;
  status: number;
  url: string;
  /** From the first byte to the last, where the loader measured it: finer than progress shows. */
  transferMs?: number;
  /** The response says that it is not to be stored (`Cache-Control: no-store`): it is played, and neither kept nor passed on. */
  unshared?: boolean;
  /** Peers sent so much meanwhile that the timing says little of the line. Set by the engine. */
  crowded?: boolean;
}

/**
 * Fetches the segment with the player's own loader settings. A rejection reaches the player unchanged, unless it was for a
 * part: bytes of the resource that are left. A fetcher that knows no parts sends the segment.
 */
export type OriginFetcher = (
  signal: AbortSignal,
  onProgress: (loaded: number, total: number) => void,
  part?: ByteRange,
) => Promise<OriginResult>;

export interface SegmentRef {
  url: string;
  range?: ByteRange;
  /** On the presentation timeline. */
  startMs: number;
  durationMs: number;
}

/** A part of a segment, as a low-latency playlist lists it. */
export interface PartRef extends SegmentRef {
  /** Media sequence number of its segment, */
  sequence: number;
  /** and the number of the part in it, from 0. */
  index: number;
}

/** Makes a request one for a part of a segment. All other fields of the request are then those of the part. */
export interface PartRequest extends Pick<PartRef, 'sequence' | 'index'> {
  /** The parts that the playlist lists now, the oldest first; none: it is the origin's alone. */
  listed(): PartRef[];
}

/** Makes a request one for a segment that may still be made, whose bytes the player takes while they come (spec/parts.md, "Chunks"). */
export interface Growing {
  /** Gives the player verified bytes of the segment, from an offset on that is not beyond what it has. */
  give(bytes: Uint8Array, at: number): void;
  /**
   * Set by the engine: hears what `origin` has given the player itself, once the player has it, from the first byte of the segment on; and
   * with it whether the response is `unshared` (`OriginResult`), which its headers say.
   */
  heard?: (bytes: Uint8Array, unshared: boolean) => void;
}

export interface SegmentRequest extends SegmentRef {
  rendition: string;
  /** Bits per second of the rendition. */
  bitrate: number;
  /** The player chooses among renditions itself. */
  adaptive: boolean;
  /** Milliseconds from now until the playhead is there. */
  deadlineMs(): number;
  /** The next segments of the same rendition, up to 32. */
  upcoming: SegmentRef[];
  /** What the rendition is one of: a picture, a sound. What follows in one is told by its newest request. */
  track?: string;
  /** False: the presentation has an end, and what follows is there already. Nothing else is fetched ahead. */
  live?: boolean;
  /** Of a live stream: what makes a moment of the timeline one that all its viewers mean. */
  zeroMs?: number;
  origin: OriginFetcher;
  /** URL of the media playlist, or of the MPD, that names the segment, if the plug-in knows it. */
  playlist?: string;
  /** Of a part of a low-latency stream (spec/parts.md). Progress is not told of it, and `origin` may be called several times at once. */
  part?: PartRequest;
  /** Of a segment of DASH that is whole by the time it is handed over. */
  growing?: Growing | undefined;
  /** The ID of the representation, where that is an MPD. */
  representation?: string;
  /** Fetches another resource of the same origin, as `origin` fetches the segment. */
  beside?(url: string, signal: AbortSignal, onProgress: (loaded: number, total: number) => void): Promise<OriginResult>;
}

export interface SegmentResult {
  data: ArrayBuffer;
  /** Where most of the bytes came from. */
  source: Source;
  /** Set unless every byte came from a viewer. */
  reason?: Reason;
  bytes: Record<Source, number>;
  /** HTTP status, when the origin's response was handed on. */
  status?: number;
  /** The origin's, but peers sent so much meanwhile that its timing says little of the line. */
  crowded?: boolean;
  /** What the certificate says of the object, where all bytes match one: its length, and the origin's validator. */
  version?: { objectLength: number; validator: Uint8Array };
}

export type ProgressFunction = (loaded: number, total: number) => void;

/** A verify key as the tracker gives it, decoded from base64url. */
export interface VerifyKey {
  /** 16 hex characters. */
  keyId: string;
  /** Uncompressed point, 65 bytes. */
  key: Uint8Array;
  /** Of the certificates that it signs: 1 of a seed, 2 of a packager. It vouches for no others. */
  alg: number;
}

/** A revocation: of all that a key signed, or of a site's names below a prefix issued before a moment. */
export type Revocation = { keyId: string } | { site: string; prefix: string; minIssuedAt: number };

/** Deltas since the last take, the fields that the engine knows of the tracker's `stats` message. */
export interface StatsDelta {
  bytes: { origin: number; seed: number; peer: number; peer_relay: number; seed_relay: number };
  /** The same bytes by path and by lane. */
  uploaded: { direct: number; relay: number };
  lanes: { foreground: number; background: number };
  segments: Record<Source, number>;
  reasons: Partial<Record<Reason, number>>;
  /** Segments that a seed does not know, by the names of the query parameters in theirs. */
  unlisted_query?: Record<string, number>;
  /** Parts of low-latency streams, which count as segments, too; hops from their source, added up; and parents of a stripe that were lost. */
  parts?: Record<Source | 'hops' | 'lost', number>;
  duplicate_bytes: number;
  wasted_bytes: number;
  rejected_bytes: number;
  contradictions: number;
  /** Contradictions of two certificates. */
  disputes: number;
  /** Bytes of the background lane, those of them that are not played, and requests of it that became foreground. */
  prefetched_bytes: number;
  prefetch_wasted_bytes: number;
  promotions: number;
  /** Bytes of segments that were read from the disk. */
  disk_bytes?: number;
}

/** Of single viewers, by their IDs, and of the page's sending; not among totals. */
export interface PeersDelta {
  peers?: Record<string, PeerFigures>;
  pacing?: PacingFigures;
}

/** How sending stands under the controller: times in µs, bytes, bytes/s; and since the last time what it did. */
export interface PacingFigures {
  queuing_us: number;
  base_us: number;
  target_us: number;
  window_bytes: number;
  rate: number;
  yields: number;
  slowdowns: number;
}

/** What this viewer says of one peer: verified bytes from it, bytes to it, and times that it was banned. */
export interface PeerFigures {
  in?: number;
  out?: number;
  relay_in?: number;
  relay_out?: number;
  blame?: number;
}

export interface PeerSnapshot {
  peer: string;
  role: PeerRole;
  path: LinkPath;
  /** Estimated rate of what it sends, bytes per second; 0 unknown. */
  rate: number;
  rttMs: number;
  /** Requests outstanding to it, and of it. */
  downloads: number;
  uploads: number;
  /** Verified bytes. */
  downloaded: number;
  uploaded: number;
  segments: number;
}

export interface EngineSnapshot {
  peers: PeerSnapshot[];
  /** Totals of the title, with what came before its engine was there. */
  totals: StatsDelta;
  segments: number;
  cacheBytes: number;
  capacity?: number;
  linking: boolean;
  off: Reason | null;
  /** Counters of what was refused or skipped, by name. */
  counters: Record<string, number>;
  /** Presentation ranges held in the cache, merged. */
  ranges: { fromMs: number; toMs: number }[];
}

export interface EngineEvents {
  /** A segment has been handed to the player. */
  segment: {
    url: string;
    startMs: number;
    durationMs: number;
    rendition: string;
    result: Omit<SegmentResult, 'data'>;
    /** From the player's request to the result. */
    tookMs: number;
  };
  /** A verified piece came in, or a piece went out. */
  piece: { peer: string; role: PeerRole; direction: 'in' | 'out'; bytes: number; segment: string };
  /** A link is of use: hellos are exchanged. */
  link: { peer: string; role: PeerRole; path: LinkPath };
  /** A link has ended; `banned`: never link to this peer again in this session. */
  unlink: { peer: string; role: PeerRole; reason: LinkCloseReason; banned: boolean };
  /** The origin's bytes differ from a certificate, or two certificates from each other. */
  contradiction: { url: string; segment: string };
  /** The engine turned itself off for this title. */
  off: { reason: Reason };
}

/** What an answer says ahead of its link: control messages, and the segments that they announce. */
export interface Greeting {
  said: Uint8Array[];
  held: string[];
}

/** Peer delivery of one joined title. */
export interface Engine {
  load(request: SegmentRequest, onProgress: ProgressFunction): { result: Promise<SegmentResult>; abort(): void };
  /** A segment that the origin sent before the engine was there, to be shared. */
  adopt(
    request: Pick<
      SegmentRequest,
      keyof SegmentRef | 'rendition' | 'bitrate' | 'playlist' | 'representation' | 'beside' | 'part'
    >,
    data: Uint8Array,
  ): void;
  addLink(link: PeerLink): void;
  /** What an answer says first on its link: hello and what is held, and of which segments; and certificates of those wanted. */
  greeting(wanted?: string[]): Greeting;
  /** Whether a first link may still come up, and one to a seed that was introduced. */
  setLinking(any: boolean, seed: boolean): void;
  /** Peer delivery is off for a reason (segments come from the origin and carry it), or on. */
  setOff(reason: Reason | null): void;
  setKeys(keys: VerifyKey[]): void;
  revoke(revocations: Revocation[]): void;
  /** Milliseconds to add to `Clock.now()` for the tracker's time since the epoch. */
  setServerTime(offsetMs: number): void;
  /** Estimated capacity of the downlink, bits per second. */
  capacity(): number | undefined;
  /** `last`: what was fetched ahead is not going to be played. */
  takeStats(last?: boolean): StatsDelta & PeersDelta;
  snapshot(): EngineSnapshot;
  /** Closes links, aborts fetches, forgets pieces. */
  stop(): void;
}
