/** When the origin is asked for a segment so that the estimate of the line follows it. */
import type { Shared } from './shared.ts';

const freshMs = 60_000;
/** A line that is estimated to carry so many times what is played leaves the player no choice to make. */
const ample = 4;

export type Freshness = ReturnType<typeof createFreshness>;

export const createFreshness = ({ clock, line, segments }: Shared) => {
  /** When a segment was last asked for that. */
  let lookedMs = -freshMs;
  /**
   * Whether the estimate is too old to choose renditions by, for a player at so many bits per second: peers that send all the time leave
   * no transfer the line to itself.
   */
  const dated = (bitrate: number) =>
    (line.estimate() ?? 0) < ample * bitrate &&
    clock.now() - Math.max(lookedMs, line.sampledAt() ?? lookedMs) >= freshMs;
  const looked = () => {
    lookedMs = clock.now();
  };
  return {
    dated,
    /** The line has been measured, or it was tried. */
    looked,
    /** Whether a segment that `can` wait should come from the origin for that: once in a while only. */
    stale(bitrate: number, can: () => boolean): boolean {
      if (!dated(bitrate)) return false;
      for (const s of segments.byId.values()) if (s.origin === 'running') return false;
      if (!can()) return false;
      looked();
      return true;
    },
  };
};
