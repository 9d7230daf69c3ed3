/**
 * How long a session waits before it connects again: exponentially longer with full jitter, and not before a moment that
 * the tracker named.
 */

import type { Clock } from '../ports.ts';

/** After this much of a session the back-off starts from the beginning. */
const settledMs = 60_000;
const baseMs = 500;
export const backoffCapMs = 30_000;
/** The time over which sessions come back that were lost without a word: usually many were lost together. */
const lostSpreadMs = 6_000;
/** After it woke, a page that loses its session does not wait so long. */
const wokeMs = 10_000;

export interface Backoff {
  /** Attempts since the last session that lasted. */
  readonly attempt: number;
  /** Keeps the next attempt off for a while. */
  hold(ms: number): void;
  /** How long `hold` keeps it off. */
  heldMs(): number;
  /** A session is open. */
  ready(): void;
  /** The wait after a lost socket. `ready`: it carried a session; `told`: the tracker said that it would end. */
  nextMs(ready: boolean, told: boolean): number;
  /** This side has moved, or (`woke`) did not run: what is lost is not the tracker's fault. */
  excuse(woke?: boolean): void;
}

export const createBackoff = (clock: Clock, random: () => number): Backoff => {
  let attempt = 0;
  let notBefore = 0;
  let readyAt = 0;
  let calmAt = 0;
  const heldMs = () => notBefore - clock.now();
  return {
    get attempt() {
      return attempt;
    },
    hold(ms) {
      notBefore = Math.max(notBefore, clock.now() + ms);
    },
    heldMs,
    ready() {
      readyAt = clock.now();
    },
    nextMs(ready, told) {
      const now = clock.now();
      if (ready && now - readyAt >= settledMs) attempt = 0;
      const spread = ready && !told && now >= calmAt ? lostSpreadMs : 0;
      const jitter = random() * Math.max(spread, Math.min(backoffCapMs, baseMs * 2 ** attempt));
      attempt = Math.min(attempt + 1, 16);
      return Math.max(jitter, heldMs());
    },
    excuse(woke) {
      attempt = 0;
      if (woke) calmAt = clock.now() + wokeMs;
    },
  };
};
