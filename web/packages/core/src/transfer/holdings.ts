import { bitmapPieces, type HaveEntry, holdsComplete, holdsNone, maxHaveSegments } from '../protocol/peer.ts';

/** What one peer says it holds. */
export interface Holdings {
  /** Announced segments: all pieces, or the sorted numbers of those held. */
  readonly holds: Record<string, 'complete' | number[]>;
  /** µs of the last announcement of a segment held in part. */
  readonly heard: Record<string, number>;
  apply(entries: HaveEntry[], nowUs: number): void;
  /** A piece turned out not to be held. Says whether it was announced. */
  remove(segment: string, piece: number): boolean;
  forget(segment: string): void;
  size(): number;
}

export const createHoldings = (): Holdings => {
  // Insertion order is the order of announcement.
  const order = new Map<string, number>();
  const holds: Holdings['holds'] = {};
  const heard: Holdings['heard'] = {};
  const forget = (segment: string) => {
    order.delete(segment);
    delete holds[segment];
    delete heard[segment];
  };
  return {
    holds,
    heard,
    apply(entries, nowUs) {
      for (const e of entries) {
        forget(e.segment);
        if (e.state === holdsNone) continue;
        order.set(e.segment, e.pieces);
        if (e.state === holdsComplete) {
          holds[e.segment] = 'complete';
        } else {
          holds[e.segment] = bitmapPieces(e.bitmap!, e.pieces);
          heard[e.segment] = nowUs;
        }
        if (order.size > maxHaveSegments) forget(order.keys().next().value!);
      }
    },
    remove(segment, piece) {
      const held = holds[segment];
      if (!held) return false;
      const all = held === 'complete' ? [...Array(order.get(segment)!).keys()] : held;
      holds[segment] = all.filter((n) => n !== piece);
      return all.includes(piece);
    },
    forget,
    size: () => order.size,
  };
};
