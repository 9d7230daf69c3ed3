/** When the origin is asked for a segment so that the estimate of the line follows it. */
import type { Clock } from '../ports.ts';
import type { Line } from './line.ts';
import type { Segment } from './segments.ts';

const freshMs = 60_000;

/** Whether the estimate is so old that a segment which `can` wait should come from the origin: once in a while only. */
export const createLook = (clock: Clock, line: Line, segments: () => Iterable<Segment>) => {
  /** When a segment was last asked for that. */
  let lookedMs = -freshMs;
  return (can: () => boolean): boolean => {
    const now = clock.now();
    // Peers that send all the time leave no transfer the line to itself.
    if (now - Math.max(lookedMs, line.sampledAt() ?? lookedMs) < freshMs) return false;
    for (const s of segments()) if (s.origin === 'running') return false;
    if (!can()) return false;
    lookedMs = now;
    return true;
  };
};
