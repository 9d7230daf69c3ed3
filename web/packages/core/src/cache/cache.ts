import { bitmapHas, bitmapLength, bitmapSet } from '../protocol/peer.ts';
import { pieceCount, pieceLength, pieceSize } from '../segment/segment.ts';

/** The verified pieces of one segment. */
export interface Entry {
  data: Uint8Array;
  pieces: number;
  /** Most significant bit first. */
  bitmap: Uint8Array;
  /** Number of pieces held. */
  count: number;
}

export interface Cache {
  /** The entry of a segment, made if there is none. Opening, like reading, makes it the youngest. */
  open(id: string, length: number): Entry;
  get(id: string): Entry | undefined;
  has(id: string, piece: number): boolean;
  /** Stores a verified piece; false if it is there already. */
  put(id: string, piece: number, bytes: Uint8Array): boolean;
  /** The bytes of a piece, aliasing the cache. */
  piece(id: string, piece: number): Uint8Array | undefined;
  drop(id: string): void;
  bytes(): number;
  ids(): Iterable<string>;
}

export const complete = (e: Entry | undefined): boolean => !!e && e.count === e.pieces;

/**
 * Bounded memory cache of pieces. The least recently used segment goes first, whole; never one that is `pinned`, so the
 * bound may be exceeded by what the player waits for.
 */
export const createCache = (limit: number, pinned: (id: string) => boolean, evicted: (id: string) => void): Cache => {
  // Insertion order is the order of use.
  const entries = new Map<string, Entry>();
  let bytes = 0;
  const touch = (id: string) => {
    const e = entries.get(id);
    if (e) {
      entries.delete(id);
      entries.set(id, e);
    }
    return e;
  };
  const drop = (id: string) => {
    bytes -= entries.get(id)?.data.length ?? 0;
    entries.delete(id);
  };
  const cache: Cache = {
    open(id, length) {
      const known = touch(id);
      if (known) return known;
      for (const old of entries.keys()) {
        if (bytes + length <= limit) break;
        if (pinned(old)) continue;
        drop(old);
        evicted(old);
      }
      const pieces = pieceCount(length);
      const e = { data: new Uint8Array(length), pieces, bitmap: new Uint8Array(bitmapLength(pieces)), count: 0 };
      entries.set(id, e);
      bytes += length;
      return e;
    },
    get: (id) => entries.get(id),
    has(id, piece) {
      const e = entries.get(id);
      return !!e && bitmapHas(e.bitmap, piece);
    },
    put(id, piece, data) {
      const e = entries.get(id);
      if (!e || bitmapHas(e.bitmap, piece)) return false;
      e.data.set(data, piece * pieceSize);
      bitmapSet(e.bitmap, piece);
      e.count++;
      return true;
    },
    piece(id, piece) {
      if (!cache.has(id, piece)) return undefined;
      const { data } = touch(id)!;
      const at = piece * pieceSize;
      return data.subarray(at, at + pieceLength(data.length, piece));
    },
    drop,
    bytes: () => bytes,
    ids: () => entries.keys(),
  };
  return cache;
};
