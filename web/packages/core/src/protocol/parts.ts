/**
 * Codec of the messages of parts (spec/parts.md), all of the control channel. It stands apart from `peer.ts`, which has to be there
 * with the first link: these are of low-latency streams alone, and come with the script that has the node.
 */
import { fromHex, hex } from '../segment/segment.ts';
import { type MalformedReason, maxControl, maxPieces } from './peer.ts';

/** Trees of a stream. */
export const stripes = 4;
/** Peer IDs of a place. */
export const maxPath = 8;
/** Of a place: of a node that nothing feeds. */
const maxRank = Number.MAX_SAFE_INTEGER;
/** Of a part. */
export const maxPushId = 2 ** 22 - 1;
const maxCertificate = 17837;

/** Of `hello`: the sender knows these messages. Without it none is sent to it. */
export const flagParts = 8;

/** Type bytes that have limits of their own. */
export const typeFollow = 0x60;
export const typeSubscribe = 0x62;
export const typeEnd = 0x64;

/** Whether a message of the control channel with this type byte is one of parts. */
export const isParts = (type: number): boolean => type >> 3 === typeFollow >> 3;

/** Requests below it are of pieces that were asked for. */
const pushedBit = 2 ** 31;

/** The request ID with which a piece of a push travels. */
export const pushedId = (push: number, piece: number): number => pushedBit + push * maxPieces + piece;

/** The push and its piece of a request ID; undefined: the piece was asked for. */
export const pushed = (request: number): { push: number; piece: number } | undefined =>
  request < pushedBit ? undefined : { push: Math.floor((request - pushedBit) / maxPieces), piece: request % maxPieces };

export type PartsMessage =
  /** The sender plays, or serves, a stream; or no more. */
  | { type: 'follow'; stream: string; on: boolean }
  /** Where the sender stands in the tree of a stripe: the rank of the source at the top, and the way from there to the sender. */
  | { type: 'place'; stream: string; stripe: number; rank: number; room: number; least: number; path: string[] }
  /** The pieces of a stripe are wanted from now on. The sender takes so many children. */
  | { type: 'subscribe'; stream: string; stripe: number; slots: number }
  | { type: 'unsubscribe'; stream: string; stripe: number }
  /** Refuses or ends a subscription of the receiver. */
  | { type: 'end'; stream: string; stripe: number }
  /** Announces a push of a part's pieces. */
  | { type: 'part'; stream: string; push: number; turn: number; certificate: Uint8Array }
  /** Nothing more of a part is wanted, */
  | { type: 'enough'; stream: string; segment: string }
  /** or of any part for now; or it is again. */
  | { type: 'hold'; stream: string; on: boolean };

/** How a field travels: so many bytes of an unsigned integer, one of a boolean, an ID, a count with so many IDs, or the rest. */
type Kind = number;
const flag: Kind = 0;
const id: Kind = 16;
const ids: Kind = -1;
const rest: Kind = -2;

/** Fields in their order on the wire, in the order of the types from the first on; `stream` goes before all. */
const layouts: [PartsMessage['type'], Record<string, Kind>][] = [
  ['follow', { on: flag }],
  ['place', { stripe: 1, rank: 8, room: 1, least: 1, path: ids }],
  ['subscribe', { stripe: 1, slots: 1 }],
  ['unsubscribe', { stripe: 1 }],
  ['end', { stripe: 1 }],
  ['part', { push: 4, turn: 4, certificate: rest }],
  ['enough', { segment: id }],
  ['hold', { on: flag }],
];

/** The same limits when a message is written and when it is read. */
const wrong = (m: PartsMessage): MalformedReason | undefined => {
  switch (m.type) {
    case 'place':
      if (m.path.length > maxPath || m.rank > maxRank || (m.rank === maxRank) !== (m.path.length === 0)) return 'limit';
      return m.stripe < stripes ? undefined : 'limit';
    case 'subscribe':
    case 'unsubscribe':
    case 'end':
      return m.stripe < stripes ? undefined : 'limit';
    case 'part':
      if (m.certificate.length < 1) return 'short';
      if (m.certificate.length > maxCertificate) return 'long';
      return m.push <= maxPushId ? undefined : 'limit';
  }
  return undefined;
};

/**
 * Reads one message of the control channel. Undefined: it is none of parts. A reason: the message ends its link. The certificate
 * aliases `b`.
 */
export const decodeParts = (b: Uint8Array): PartsMessage | MalformedReason | undefined => {
  if (b.length === 0) return 'empty';
  const layout = layouts[b[0]! - typeFollow];
  if (!layout) return undefined;
  if (b.length > maxControl) return 'long';
  let at = 1;
  let reason: MalformedReason | undefined;
  /** What counts only where the length is right. */
  let late: MalformedReason | undefined;
  /** Of a message that is short what is there, and it is refused in the end. */
  const bytes = (n: number) => {
    if (b.length - at < n) reason ??= 'short';
    at += n;
    return b.subarray(at - n, at);
  };
  const number = (n: number) => bytes(n).reduce((sum, x) => sum * 256 + x, 0);
  const value = (kind: Kind): unknown => {
    if (kind === id) return hex(bytes(id));
    if (kind === rest) return bytes(Math.max(b.length - at, 0));
    if (kind === flag) {
      const on = number(1);
      if (on > 1) late ??= 'limit';
      return on === 1;
    }
    if (kind !== ids) return number(kind);
    const n = number(1);
    if (n > maxPath) reason ??= 'limit';
    return reason ? [] : Array.from({ length: n }, () => hex(bytes(id)));
  };
  const m: Record<string, unknown> = { type: layout[0], stream: value(id) };
  for (const name in layout[1]) m[name] = value(layout[1][name]!);
  if (at < b.length) reason ??= 'long';
  return reason ?? late ?? wrong(m as PartsMessage) ?? (m as PartsMessage);
};

/** Writes one message. Throws a `RangeError` when it is out of the limits. */
export const encodeParts = (m: PartsMessage): Uint8Array<ArrayBuffer> => {
  const reason = wrong(m);
  if (reason) throw new RangeError(`${m.type}: ${reason}`);
  const type = layouts.findIndex((l) => l[0] === m.type);
  const head = [typeFollow + type, ...fromHex(m.stream)];
  let tail = new Uint8Array();
  for (const [name, kind] of Object.entries(layouts[type]![1])) {
    const v = (m as unknown as Record<string, unknown>)[name];
    if (kind === id) head.push(...fromHex(v as string));
    else if (kind === rest) tail = v as Uint8Array<ArrayBuffer>;
    else if (kind === flag) head.push(+(v as boolean));
    else if (kind === ids) head.push((v as string[]).length, ...(v as string[]).flatMap((x) => [...fromHex(x)]));
    else for (let n = kind - 1; n >= 0; n--) head.push(Math.floor((v as number) / 2 ** (8 * n)) & 255);
  }
  const out = new Uint8Array(head.length + tail.length);
  out.set(head);
  out.set(tail, head.length);
  return out;
};
