import type { ScheduleInput, WantedSegment } from './input.ts';
import { type Peers, pieceSize } from './peers.ts';
import { thin } from './segment.ts';
import type { Timer } from './timer.ts';

/** A segment is held until its turn for holders that together send this part of what it plays at. */
const worthShare = 32;

/** How long requests of the player wait for peers (spec/schedule.md, "Waiting"). */
export interface Waiting {
  /** A piece has been verified in this session. */
  proven: boolean;
  /**
   * From when on a segment is not held: its turn; earlier, where a buffer is filled over a thin line, where nothing has been
   * verified, or where its holders are not known to send enough, and the time for that runs out.
   */
  until(s: WantedSegment, turn: number): number;
  /**
   * Whether a segment that no peer offers waits for a link: to a seed, or, as the request has left and its origin has failed, to any
   * first peer and for what linked viewers may say.
   */
  holder(s: WantedSegment): boolean;
}

export const createWaiting = (input: ScheduleInput, { waits }: Timer, peers: Peers): Waiting => {
  const { now_us: now, policy } = input;
  const proven = input.credit_us < 0;

  /** Its holders send enough together, by their rates, for it to be held until its turn. */
  const worth = (s: WantedSegment): boolean => {
    const sum = peers.rates(s);
    const least = Math.floor((s.pieces * pieceSize * 1_000_000) / worthShare / Math.max(1, s.duration_us));
    return sum > 0 && sum >= least;
  };

  /**
   * A buffer is filled over a thin line, and its holders are not known to bring it clearly sooner than the origin. At a live stream
   * there is nothing to fill a buffer with.
   */
  const filling = (s: WantedSegment): boolean => {
    if (input.live || !thin(s, s.deadline_us - s.asked_us)) return false;
    const enough = Math.floor((s.pieces * pieceSize * 1_250_000) / Math.max(1, s.origin_us));
    return !proven || (s.certificate === 'held' && peers.rates(s) < enough);
  };

  return {
    proven,
    until(s, turn) {
      if (filling(s)) return Math.min(turn, s.asked_us - 1);
      if (!proven) return Math.min(turn, now + input.credit_us - 1);
      return worth(s) ? turn : Math.min(turn, now + input.slow_credit_us - 1);
    },
    holder(s) {
      const link = s.asked_us + policy.link_patience_us;
      if (input.seed_linking && waits(link)) return true;
      if (s.origin !== 'failed') return false;
      if (peers.all.length) return peers.viewers.length > 0 && waits(s.asked_us + policy.patience_us);
      return input.linking && waits(link);
    },
  };
};
