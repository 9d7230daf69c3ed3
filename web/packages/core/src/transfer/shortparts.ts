/** How the line is measured by parts of the origin, each of which is too short to say anything of it. */

import { leastBytes } from '../stats/capacity.ts';
import { ample, freshMs } from './freshness.ts';
import type { Shared } from './shared.ts';

/** A sample stands for this share of the time since the last one, as one of a segment does. */
const gapShare = 1 / 16;

export interface ShortParts {
  /** Whether parts are to come from the origin, for a player at so many bits per second: nothing is known of the line, or nothing new. */
  needed(bitrate: number): boolean;
  /** A whole part came of the origin. */
  came(bytes: number, ms: number): void;
}

export const createShortParts = ({ clock, line }: Pick<Shared, 'clock' | 'line'>): ShortParts => {
  /** As many as make a sample are one. */
  let bytes = 0;
  let tookMs = 0;
  /** When the last was made. */
  let madeMs = clock.now();
  /** Another is being made. */
  let making = false;
  const lastMs = () => Math.max(madeMs, line.sampledAt() ?? madeMs);

  return {
    needed(bitrate) {
      const known = line.estimate() ?? 0;
      making ||= known < ample * bitrate && clock.now() - lastMs() >= freshMs;
      return !known || making;
    },
    came(size, ms) {
      bytes += size;
      tookMs += ms;
      if (bytes < leastBytes) return;
      const now = clock.now();
      const weight = Math.max(1, ((now - lastMs()) * gapShare) / Math.max(tookMs, 1));
      // The line has taken a long one itself.
      if (size < leastBytes) line.bypassed(bytes * weight, tookMs * weight);
      bytes = tookMs = 0;
      madeMs = now;
      making = false;
    },
  };
};
