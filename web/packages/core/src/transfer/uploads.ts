import type { BackgroundSource, Part } from '../background/index.ts';
import {
  cutSize,
  encode,
  laneBackground,
  laneForeground,
  Malformed,
  rejectBusy,
  rejectLaneOff,
  rejectNotHeld,
  rejectOutOfRange,
  rejectWithdrawn,
} from '../protocol/peer.ts';

export interface UploadHost {
  /** A verified piece; undefined: not held (any more). */
  piece(segment: string, piece: number): Uint8Array | undefined;
  /** Pieces of a segment of which something is held; 0: nothing. */
  pieces(segment: string): number;
  /** Whether this side may send at all, and on the background lane; where the controller says when, and where it does not. */
  allowed(lane: number, paced: boolean): boolean;
  /** Requests queued over all links. */
  queued(): number;
  /** `pushed`: it was not asked for. */
  sent(bytes: number, segment: string, lane: number, pushed: boolean): void;
  reject(reason: number, ids: number[]): void;
  /** µs, for the timestamp of data. */
  nowUs(): number;
  /** Whether the foreground of every link has gone out, but for those that take nothing. */
  idle(): boolean;
  /** The foreground of this link has gone out, or was taken back. */
  drained(): void;
}

interface Upload {
  id: number;
  segment: string;
  piece: number;
  /** When it came as foreground, µs; infinite for what is pushed, which was not asked for. */
  at: number;
  /** Once its first message is out: the bytes, and how far they went. */
  data?: Uint8Array;
  offset: number;
  /** It was not asked for: hears that it has been sent. */
  pushed?: () => void;
}

/** Requests queued over all links, from which on a link gets no more than its share: 4 MiB and 512 KiB of pieces. */
const mostQueued = 256;
const share = 32;
/** A link that takes nothing for so long holds no other link up. */
const stuckUs = 1_000_000;
/**
 * Foreground that waits for so long while nothing goes out over its link is rejected as busy (spec/peer-protocol.md, Uploads). The other side
 * cannot tell a busy viewer from one that does not want to send. Its stall time is a second or more.
 */
const mostWaitUs = 500_000;

export interface Uploads {
  /** Throws Malformed where an ID is outstanding. */
  request(segment: string, lane: number, requests: { id: number; piece: number }[]): void;
  cancel(ids: number[]): void;
  promote(ids: number[]): void;
  /** Sends a piece that was not asked for, in the foreground. What may not be sent is given up; either way `sent` hears of it. The owner bounds how many wait. */
  push(id: number, segment: string, data: Uint8Array, sent: () => void): void;
  /** Sends what the link takes, or wakes the part that sends it. */
  pump(): void;
  /** From now on parts are taken by `source`, when the controller of the host has room, and not pushed. */
  pace(wake: () => void): void;
  source: BackgroundSource;
  /** Whether foreground waits that the link takes. */
  urgent(): boolean;
  size(): number;
}

/** What one peer asked of us: in order within a lane, foreground first, as fast as the link takes it. */
export const createUploads = (
  send: (message: Uint8Array) => boolean,
  maxMessage: number,
  maxRequests: number,
  host: UploadHost,
): Uploads => {
  const lanes: Upload[][] = [[], []];
  const size = () => lanes[laneForeground]!.length + lanes[laneBackground]!.length;
  /** Something has left a lane: where that was the last of the foreground, other links hear of it. */
  const drained = (lane: number) => {
    if (lane === laneForeground && !lanes[lane]!.length) host.drained();
  };
  const take = (lane: number, ids: number[]): Upload[] => {
    const wanted = new Set(ids);
    const matches = (u: Upload) => !u.pushed && wanted.has(u.id);
    const taken = lanes[lane]!.filter(matches);
    lanes[lane] = lanes[lane]!.filter((u) => !matches(u));
    if (taken.length) drained(lane);
    return taken;
  };

  let wake: (() => void) | undefined;
  /** When a part was last taken, µs. */
  let takenUs = 0;

  /** The bytes of an upload; undefined: no longer held, and rejected. */
  const bytesOf = (u: Upload): Uint8Array | undefined => {
    // A copy: what is half sent must not change when the cache drops or refills the segment.
    u.data ??= host.piece(u.segment, u.piece)?.slice();
    if (!u.data) host.reject(rejectWithdrawn, [u.id]);
    return u.data;
  };

  /** Sends what is left of an upload; false: the link takes no more. */
  const sendPiece = (u: Upload): boolean => {
    const data = bytesOf(u);
    if (!data) return true;
    const size = cutSize(data.length, maxMessage);
    while (u.offset < data.length) {
      const payload = data.subarray(u.offset, u.offset + size);
      const sentAt = host.nowUs() % 2 ** 32;
      if (!send(encode({ type: 'data', request: u.id, offset: u.offset, sentAt, payload }))) return false;
      u.offset += payload.length;
    }
    host.sent(data.length, u.segment, laneForeground, !!u.pushed);
    return true;
  };

  const urgent = () => lanes[laneForeground]!.length > 0 && host.nowUs() - takenUs < stuckUs;

  /** The next part of an upload, which ends with its last, or when it is no longer held. */
  const cut = (u: Upload, from: number, n: number): Part | undefined => {
    const data = bytesOf(u);
    const payload = data?.subarray(u.offset, u.offset + n);
    const { id: request, offset } = u;
    takenUs = host.nowUs();
    if (payload) u.offset += payload.length;
    if (u.offset === data?.length || !payload) {
      for (const lane of lanes) if (lane[0] === u) lane.shift();
      drained(from);
      if (data) host.sent(data.length, u.segment, from, !!u.pushed);
      u.pushed?.();
    }
    return payload && { request, offset, payload };
  };

  const source: BackgroundSource = {
    shed() {
      const now = host.nowUs();
      if (!lanes[laneForeground]!.length) return Number.POSITIVE_INFINITY;
      if (now - takenUs < mostWaitUs) return takenUs + mostWaitUs - now;
      const gone = lanes[laneForeground]!.filter(({ at }) => at + mostWaitUs <= now).map(({ id }) => id);
      if (gone.length) {
        take(laneForeground, gone);
        host.reject(rejectBusy, gone);
      }
      return Math.min(...lanes[laneForeground]!.map(({ at }) => at)) + mostWaitUs - now;
    },
    waiting: () => lanes[laneForeground]!.length > 0 || (lanes[laneBackground]!.length > 0 && host.idle()),
    urgent: () => lanes[laneForeground]!.length > 0,
    midway: () => (lanes[laneForeground]![0]?.offset ?? 0) > 0,
    next(n) {
      while (source.waiting()) {
        const from = lanes[laneForeground]!.length ? laneForeground : laneBackground;
        const part = cut(lanes[from]![0]!, from, n);
        if (part) return part;
      }
      return undefined;
    },
  };

  const pump = () => {
    if (wake) {
      if (source.waiting()) wake();
      return;
    }
    // Without the controller there is no background.
    for (let u = lanes[laneForeground]![0]; u; u = lanes[laneForeground]![0]) {
      if (!sendPiece(u)) return;
      if (lanes[laneForeground]![0] === u) lanes[laneForeground]!.shift();
      u.pushed?.(); // not before: it may push more
    }
  };

  return {
    request(segment, lane, requests) {
      const refused = new Map<number, number[]>();
      const pieces = host.pieces(segment);
      const known = new Set(lanes.flat().map((u) => u.id));
      for (const { id, piece } of requests) {
        if (known.has(id)) throw new Malformed('limit');
        let reason: number | undefined;
        if (!host.allowed(lane, !!wake) || (lane === laneBackground && !wake)) reason = rejectLaneOff;
        else if (!pieces) reason = rejectWithdrawn;
        else if (piece >= pieces) reason = rejectOutOfRange;
        else if (!host.piece(segment, piece)) reason = rejectNotHeld;
        else if (size() >= maxRequests || (size() >= share && host.queued() >= mostQueued)) reason = rejectBusy;
        if (reason === undefined) {
          lanes[lane]!.push({ id, segment, piece, offset: 0, at: host.nowUs() });
          known.add(id);
        } else refused.set(reason, [...(refused.get(reason) ?? []), id]);
      }
      for (const [reason, ids] of refused) host.reject(reason, ids);
      pump();
    },
    cancel(ids) {
      for (const lane of lanes.keys()) take(lane, ids);
    },
    promote(ids) {
      const at = host.nowUs();
      lanes[laneForeground]!.push(...take(laneBackground, ids).map((u) => Object.assign(u, { at })));
      pump();
    },
    push(id, segment, data, pushed) {
      if (!host.allowed(laneForeground, !!wake)) return pushed();
      lanes[laneForeground]!.push({ id, segment, piece: 0, data, offset: 0, pushed, at: Number.POSITIVE_INFINITY });
      pump();
    },
    pump,
    pace(f) {
      wake = f;
      takenUs = host.nowUs();
      pump();
    },
    source,
    urgent,
    size,
  };
};
