import {
  cutSize,
  encode,
  laneBackground,
  laneForeground,
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
  /** Whether this side may send at all, and on the background lane. */
  allowed(lane: number): boolean;
  /** Requests queued over all links. */
  queued(): number;
  sent(bytes: number, segment: string): void;
  reject(reason: number, ids: number[]): void;
  /** µs, for the timestamp of data. */
  nowUs(): number;
}

interface Upload {
  id: number;
  segment: string;
  piece: number;
  /** Once its first message is out: the bytes, and how far they went. */
  data?: Uint8Array;
  offset: number;
}

/** Requests queued over all links, from which on a link gets no more than its share: 4 MiB and 512 KiB of pieces. */
const mostQueued = 256;
const share = 32;

export interface Uploads {
  request(segment: string, lane: number, requests: { id: number; piece: number }[]): void;
  cancel(ids: number[]): void;
  promote(ids: number[]): void;
  pump(): void;
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
  const take = (lane: number, ids: number[]): Upload[] => {
    const wanted = new Set(ids);
    const taken = lanes[lane]!.filter((u) => wanted.has(u.id));
    lanes[lane] = lanes[lane]!.filter((u) => !wanted.has(u.id));
    return taken;
  };

  /** Sends what is left of an upload; false: the link takes no more. */
  const sendPiece = (u: Upload): boolean => {
    if (!u.data) {
      // A copy: what is half sent must not change when the cache drops or refills the segment.
      u.data = host.piece(u.segment, u.piece)?.slice();
      if (!u.data) {
        host.reject(rejectWithdrawn, [u.id]);
        return true;
      }
    }
    const { data } = u;
    const size = cutSize(data.length, maxMessage);
    while (u.offset < data.length) {
      const payload = data.subarray(u.offset, u.offset + size);
      const sentAt = host.nowUs() % 2 ** 32;
      if (!send(encode({ type: 'data', request: u.id, offset: u.offset, sentAt, payload }))) return false;
      u.offset += payload.length;
    }
    host.sent(data.length, u.segment);
    return true;
  };

  const pump = () => {
    for (const lane of lanes.keys()) {
      for (let u = lanes[lane]![0]; u; u = lanes[lane]![0]) {
        if (!sendPiece(u)) return;
        if (lanes[lane]![0] === u) lanes[lane]!.shift();
      }
    }
  };

  return {
    request(segment, lane, requests) {
      const refused = new Map<number, number[]>();
      const pieces = host.pieces(segment);
      for (const { id, piece } of requests) {
        let reason: number | undefined;
        if (!host.allowed(lane)) reason = rejectLaneOff;
        else if (!pieces) reason = rejectWithdrawn;
        else if (piece >= pieces) reason = rejectOutOfRange;
        else if (!host.piece(segment, piece)) reason = rejectNotHeld;
        else if (size() >= maxRequests || (size() >= share && host.queued() >= mostQueued)) reason = rejectBusy;
        if (reason === undefined) lanes[lane]!.push({ id, segment, piece, offset: 0 });
        else refused.set(reason, [...(refused.get(reason) ?? []), id]);
      }
      for (const [reason, ids] of refused) host.reject(reason, ids);
      pump();
    },
    cancel(ids) {
      for (const lane of lanes.keys()) take(lane, ids);
    },
    promote(ids) {
      lanes[laneForeground]!.push(...take(laneBackground, ids));
      pump();
    },
    pump,
    size,
  };
};
