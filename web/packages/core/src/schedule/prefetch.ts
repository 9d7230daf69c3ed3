/** How far ahead of the player is fetched in the background: spec/schedule.md, "Prefetch". */

const defaultWaste = 16 << 20;
/** Bytes that may be lost before anything was received. */
const firstWaste = 1 << 20;
const aheadUs = 60_000_000;
/** Segments. */
export const mostAhead = 32;
/** Durations of a segment that the player must have. */
const leastDuration = 3;

export interface Ahead {
  /** By the site. */
  allowed: boolean;
  /** Bytes that a viewer may fetch ahead and never play; 0 is the default. */
  waste_bytes: number;
  role: string;
  /** Peer delivery is off. */
  off: boolean;
  live: boolean;
  battery: boolean;
  /** What the player has ahead of the playhead. */
  buffered_us: number;
  /** Bytes in all, and those of them that were fetched ahead and lost. */
  received: number;
  wasted: number;
  /** Behind the last asked one; bytes less what is in hand and was not fetched ahead. */
  segments: { duration_us: number; bytes: number }[];
}

/** Whether anything may be fetched ahead, however full the player's buffer (rule 1). */
export const possible = (a: Pick<Ahead, 'allowed' | 'role' | 'off' | 'live'>): boolean =>
  a.allowed && a.role === 'full' && !a.off && !a.live;

/** How many of the segments behind the last asked one are fetched ahead. */
export const prefetch = (a: Ahead): number => {
  const [first] = a.segments;
  if (!possible(a) || !first || a.buffered_us < leastDuration * first.duration_us) return 0;
  let left = Math.min(a.waste_bytes || defaultWaste, firstWaste + Math.floor(a.received / 10));
  if (a.battery) left = Math.floor(left / 4);
  left -= a.wasted;
  let time = 0;
  let n = 0;
  for (const { duration_us, bytes } of a.segments) {
    if (n === mostAhead || time > aheadUs || bytes > left) break;
    left -= bytes;
    time += duration_us;
    n++;
  }
  return n;
};
