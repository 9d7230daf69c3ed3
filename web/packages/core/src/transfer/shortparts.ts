/** Parts of the origin that are too short, one by one, to say anything of the line. */

import { leastBytes } from '../stats/capacity.ts';
import type { Shared } from './shared.ts';

/** Takes parts that the origin sent whole, and how long each took: as many as make a sample are one. Says whether one is made. */
export const createShortParts = ({ clock, line }: Pick<Shared, 'clock' | 'line'>) => {
  let bytes = 0;
  let tookMs = 0;
  return (size: number, ms: number): boolean => {
    if (size >= leastBytes) return true; // the line has taken it
    bytes += size;
    tookMs += ms;
    if (bytes < leastBytes) return false;
    line.bypassed(bytes, tookMs, clock.now());
    bytes = tookMs = 0;
    return true;
  };
};
