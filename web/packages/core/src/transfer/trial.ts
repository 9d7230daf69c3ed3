/**
 * How long requests of the player wait for holders that are not known to send enough, once a piece has matched its certificate
 * (spec/schedule.md, "Waiting"): of one title. What waits uses it up, and it comes back while the player asks for nothing.
 */
import type { Clock } from '../ports.ts';

const trialMs = 1_000;

export interface Trial {
  /** What is left, ms. */
  leftMs(): number;
  /** From now on a request waits, or the player asks for nothing, or neither. */
  settle(waiting: boolean, idle: boolean): void;
}

export const createTrial = (clock: Clock): Trial => {
  let leftMs = trialMs;
  let sinceMs = 0;
  let waits = false;
  let idles = false;
  const settle = (waiting: boolean, idle: boolean) => {
    const tookMs = clock.now() - sinceMs;
    if (waits) leftMs = Math.max(0, leftMs - tookMs);
    else if (idles) leftMs = Math.min(trialMs, leftMs + tookMs);
    sinceMs += tookMs;
    waits = waiting;
    idles = idle;
  };
  return {
    leftMs() {
      settle(waits, idles);
      return leftMs;
    },
    settle,
  };
};
