import type { WantedSegment } from './input.ts';

/** What is in hand while a buffer is filled: until then a thin line's segments wait for no peers that are not known to be quicker than the origin, µs. */
const fillUs = 10_000_000;

type Timing = Pick<WantedSegment, 'duration_us' | 'origin_us'>;

/** How long before its deadline a segment is urgent, µs: less where the origin is quick. */
export const urgentWindow = (s: Timing, permille: number): number => {
  const full = Math.floor((s.duration_us * permille) / 1000);
  return s.origin_us < 0 ? full : Math.min(full, Math.floor(s.duration_us / 4) + 3 * s.origin_us);
};

/** When it becomes urgent: a player asks for one after the other, and what takes longer than it plays takes what the buffer has. */
export const turnUs = (s: WantedSegment, permille: number): number =>
  Math.min(
    s.deadline_us - urgentWindow(s, permille),
    Math.max(s.asked_us + s.duration_us - Math.max(0, s.origin_us), s.deadline_us - s.duration_us),
    s.asked_us + Math.floor((s.duration_us * 5) / 4),
  );

/** Whether a buffer is filled over a line that is thin for what is played: so much is in hand as its segment is asked for, µs. */
export const thin = (s: Timing, handUs: number): boolean =>
  handUs < fillUs && s.origin_us >= Math.floor(s.duration_us / 2);

export const complete = (s: WantedSegment): boolean => s.pieces > 0 && s.have.length >= s.pieces;

/** A list spares the question to a seed, unless the origin does not send what it would be completed with. */
export const listed = (s: WantedSegment): boolean => !!s.packaged && s.origin !== 'failed';

/** Pieces that are not verified. */
export const open = (s: WantedSegment): number[] => {
  const have = new Set(s.have);
  return [...Array(s.pieces).keys()].filter((n) => !have.has(n));
};
