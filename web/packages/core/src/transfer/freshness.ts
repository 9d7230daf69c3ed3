/** When the origin is asked for a segment so that the estimate of the line follows it. */
import { leastBytes } from '../stats/capacity.ts';
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
    /**
     * Whether a segment of about so many bytes, that `can` wait, should come from the origin for that: once in a while only. While nothing
     * has been measured, a look that measured nothing does not count before a segment that may be long enough to measure by: the player
     * would stay with its first rendition.
     */
    stale(bitrate: number, bytes: number, can: () => boolean): boolean {
      if (!line.estimate() && bytes >= leastBytes) lookedMs = -freshMs;
      if (!dated(bitrate)) return false;
      for (const s of segments.byId.values()) if (s.origin === 'running') return false;
      if (!can()) return false;
      looked();
      return true;
    },
  };
};
