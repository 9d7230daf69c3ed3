/**
 * Codec of the peer protocol (spec/peer-protocol.md): binary, big-endian, the type in the first byte. IDs are
 * lower-case hex outside of messages. Decoding never allocates before a count was checked against the bytes there.
 */

import { fromHex, hex } from '../segment/segment.ts';

export const pieceSize = 16384;
export const maxPieces = 512;
export const maxSegment = 8 << 20;
export const maxControl = 65535;
export const dataHeader = 11;
export const maxUnknown = 64;
export const maxUnsolicited = 1 << 20;
export const maxHaveSegments = 4096;
const maxCertificate = 17837;

export type Channel = 'control' | 'ack' | 'data';
export type MalformedReason = 'empty' | 'short' | 'long' | 'channel' | 'count' | 'limit' | 'padding';

export const flagOnDemand = 1;
export const flagNoUpload = 2;
export const flagBackground = 4;

export const laneForeground = 0;
export const laneBackground = 1;

export const holdsNone = 0;
export const holdsPartial = 1;
export const holdsComplete = 2;

export const rejectNotHeld = 0;
export const rejectBusy = 1;
export const rejectBudget = 2;
export const rejectWithdrawn = 3;
export const rejectLaneOff = 4;
export const rejectOutOfRange = 5;

export const noneUnknown = 0;
export const noneBudget = 2;
export const noneTooLarge = 4;

export const byeLeaving = 0;
export const byeReplaced = 3;
export const byeProtocolError = 5;
export const byeBadPiece = 6;
export const byeOverLimit = 7;
export const byePolicy = 8;

export interface HaveEntry {
  segment: string;
  state: number;
  pieces: number;
  /** State partial: most significant bit first, padding zero. */
  bitmap?: Uint8Array;
}

export type Message =
  | {
      type: 'hello';
      minVersion: number;
      maxVersion: number;
      flags: number;
      maxRequests: number;
      peer: string;
      swarm: string;
    }
  | { type: 'have'; entries: HaveEntry[] }
  | { type: 'certificate-request'; segments: string[] }
  | { type: 'certificate'; segment: string; certificate: Uint8Array }
  | { type: 'certificate-none'; segment: string; reason: number; objectLength: number }
  | { type: 'request'; segment: string; lane: number; requests: { id: number; piece: number }[] }
  | { type: 'cancel'; ids: number[] }
  | { type: 'reject'; reason: number; ids: number[] }
  | { type: 'promote'; ids: number[] }
  | DataMessage
  | { type: 'ping'; nonce: number; sentAt: number }
  | { type: 'pong'; nonce: number; sentAt: number }
  | { type: 'bye'; reason: number };

export interface DataMessage {
  type: 'data';
  request: number;
  offset: number;
  /** µs, wrapping. */
  sentAt: number;
  payload: Uint8Array;
}

/** How a field travels: so many bytes of an unsigned integer, an ID, the rest, or the bitmap that only a partial entry has. */
type Kind = number;
const id: Kind = 16;
const rest: Kind = 0;
const bitmap: Kind = -1;

/** Fields in their order on the wire. */
type Fields = Record<string, Kind>;

/** Type, type byte, fields; a list is a count and so many entries. */
const layouts: [Message['type'], number, Record<string, Kind | [Kind | Fields]>][] = [
  ['hello', 1, { minVersion: 1, maxVersion: 1, flags: 2, maxRequests: 2, peer: id, swarm: id }],
  ['have', 2, { entries: [{ segment: id, state: 1, pieces: 2, bitmap }] }],
  ['certificate-request', 3, { segments: [id] }],
  ['certificate', 4, { segment: id, certificate: rest }],
  ['certificate-none', 5, { segment: id, reason: 1, objectLength: 8 }],
  ['request', 16, { segment: id, lane: 1, requests: [{ id: 4, piece: 2 }] }],
  ['cancel', 17, { ids: [4] }],
  ['reject', 18, { reason: 1, ids: [4] }],
  ['promote', 19, { ids: [4] }],
  ['data', 32, { request: 4, offset: 2, sentAt: 4, payload: rest }],
  ['ping', 64, { nonce: 4, sentAt: 4 }],
  ['pong', 65, { nonce: 4, sentAt: 4 }],
  ['bye', 80, { reason: 1 }],
];

/** The least that an entry takes. */
const sizeOf = (of: Kind | Fields): number =>
  typeof of === 'number' ? of : Object.values(of).reduce((sum, k) => sum + Math.max(k, 0), 0);

type Value = number | string | Uint8Array | undefined;

/** The message ends its link (`protocol-error`). */
export class Malformed extends Error {
  readonly reason: MalformedReason;
  constructor(reason: MalformedReason) {
    super(`malformed peer message: ${reason}`);
    this.reason = reason;
  }
}

export const bitmapLength = (pieces: number): number => (pieces + 7) >> 3;
export const bitmapHas = (bitmap: Uint8Array, piece: number): boolean =>
  ((bitmap[piece >> 3] ?? 0) & (0x80 >> (piece & 7))) !== 0;
/** The numbers of the pieces that a bitmap has. */
export const bitmapPieces = (bitmap: Uint8Array, pieces: number): number[] =>
  [...Array(pieces).keys()].filter((n) => bitmapHas(bitmap, n));
export const bitmapSet = (bitmap: Uint8Array, piece: number): void => {
  bitmap[piece >> 3]! |= 0x80 >> (piece & 7);
};

/** Payload of each message but the last when a piece of `length` bytes travels in the fewest equal messages. */
export const cutSize = (length: number, message: number): number =>
  Math.ceil(length / Math.max(Math.ceil(length / (message - dataHeader)), 1));

/** The highest version that both hellos speak; undefined: none. */
export const negotiate = (
  a: { minVersion: number; maxVersion: number },
  b: { minVersion: number; maxVersion: number },
): number | undefined => {
  const v = Math.min(a.maxVersion, b.maxVersion);
  return v < a.minVersion || v < b.minVersion ? undefined : v;
};

const fail = (reason: MalformedReason): never => {
  throw new Malformed(reason);
};
const limit = (ok: boolean): void => {
  if (!ok) fail('limit');
};

/** The same limits when a message is written and when it is read. */
const check = (m: Message): unknown => {
  switch (m.type) {
    case 'hello':
      return limit(m.minVersion >= 1 && m.minVersion <= m.maxVersion && m.maxRequests >= 1 && m.maxRequests <= 1024);
    case 'have':
      return m.entries.forEach(checkEntry);
    case 'certificate':
      if (m.certificate.length < 1) fail('short');
      return m.certificate.length > maxCertificate && fail('long');
    case 'certificate-none':
      return limit(
        m.reason <= 6 &&
          (m.reason === noneTooLarge
            ? m.objectLength > maxSegment && m.objectLength <= Number.MAX_SAFE_INTEGER
            : m.objectLength === 0),
      );
    case 'request':
      return limit(m.lane <= laneBackground && m.requests.every((r) => r.piece < maxPieces));
    case 'reject':
      return limit(m.reason <= rejectOutOfRange);
    case 'data':
      if (m.payload.length < 1) fail('short');
      return limit(m.offset + m.payload.length <= pieceSize);
    case 'bye':
      return limit(m.reason <= byePolicy);
  }
};

const checkEntry = (e: HaveEntry): void => {
  limit(e.state <= holdsComplete && (e.state === holdsNone ? e.pieces === 0 : e.pieces >= 1 && e.pieces <= maxPieces));
  if (e.state !== holdsPartial) return;
  const bitmap = e.bitmap ?? fail('limit');
  limit(bitmap.length === bitmapLength(e.pieces));
  const pad = bitmap.length * 8 - e.pieces;
  if (bitmap[bitmap.length - 1]! & ((1 << pad) - 1)) fail('padding');
};

/**
 * Reads one message. Undefined: a type of a later version, to be skipped and counted. Throws Malformed, which ends the
 * link. Byte arrays of certificates and data alias `b`.
 */
export const decode = (channel: Channel, b: Uint8Array): Message | undefined => {
  if (b.length === 0) fail('empty');
  const layout = layouts.find((l) => l[1] === b[0]);
  if (!layout) return undefined;
  const [type, , fields] = layout;
  if (channel !== (type === 'data' ? 'data' : 'control')) fail('channel');
  if (b.length > maxControl) fail('long');
  let at = 1;
  const bytes = (n: number) => {
    if (b.length - at < n) fail('short');
    at += n;
    return b.subarray(at - n, at);
  };
  const value = (kind: Kind): Value =>
    kind === id ? hex(bytes(id)) : kind ? bytes(kind).reduce((sum, x) => sum * 256 + x, 0) : bytes(b.length - at);
  const entry = (kinds: Fields): HaveEntry => {
    const e: Record<string, Value> & Partial<HaveEntry> = {};
    for (const name in kinds) {
      const kind = kinds[name]!;
      if (kind >= 0) {
        e[name] = value(kind);
      } else if (e.state === holdsPartial) {
        // Its limits come first, so that a wrong count is not taken for a short message.
        const pieces = e.pieces!;
        limit(pieces >= 1 && pieces <= maxPieces);
        e.bitmap = bytes(bitmapLength(pieces)).slice();
      }
    }
    if (type === 'have') checkEntry(e as HaveEntry);
    return e as HaveEntry;
  };
  const m: Record<string, unknown> = { type };
  for (const name in fields) {
    const kind = fields[name]!;
    if (typeof kind === 'number') {
      m[name] = value(kind);
      continue;
    }
    const [of] = kind;
    const n = value(1) as number;
    if (n === 0) fail('count');
    if (b.length - at < n * sizeOf(of)) fail('short');
    m[name] = Array.from({ length: n }, () => (typeof of === 'number' ? value(of) : entry(of)));
  }
  if (at < b.length && type !== 'hello') fail('long');
  check(m as Message);
  return m as Message;
};

/** Writes one message. Throws Malformed when it is out of the protocol's limits. */
export const encode = (m: Message): Uint8Array<ArrayBuffer> => {
  check(m);
  const [, code, fields] = layouts.find((l) => l[0] === m.type)!;
  const head = [code];
  let tail = new Uint8Array();
  const put = (kind: Kind, v: Value) => {
    if (v instanceof Uint8Array) {
      if (kind === rest) tail = v as Uint8Array<ArrayBuffer>;
      else head.push(...v);
    } else if (kind === id) {
      head.push(...fromHex(v as string));
    } else {
      for (let n = kind - 1; n >= 0; n--) head.push(Math.floor((v as number) / 2 ** (8 * n)) & 255);
    }
  };
  for (const name in fields) {
    const kind = fields[name]!;
    const v = (m as unknown as Record<string, unknown>)[name];
    if (typeof kind === 'number') {
      put(kind, v as Value);
      continue;
    }
    const [of] = kind;
    const entries = v as (Value & HaveEntry & Record<string, Value>)[];
    if (entries.length < 1 || entries.length > 255) fail('count');
    head.push(entries.length);
    for (const e of entries) {
      if (typeof of === 'number') put(of, e);
      // A complete entry has no bitmap on the wire, whatever the object has.
      else for (const field in of) if (of[field]! >= 0 || e.state === holdsPartial) put(of[field]!, e[field]);
    }
  }
  const out = new Uint8Array(head.length + tail.length);
  if (out.length > maxControl) fail('long');
  out.set(head);
  out.set(tail, head.length);
  return out;
};
