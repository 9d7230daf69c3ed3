/**
 * How long requests of the player wait for holders that are not known to send enough, once a piece has matched its certificate
 * (spec/schedule.md, "Waiting"): of one title. What waits uses it up, also before, and it comes back while the player asks for
 * nothing. It begins with what is left of the credit: what waited for the engine has been waited already.
 */
import type { Clock } from '../ports.ts';
import type { Credit } from './credit.ts';

const slowCreditMs = 1_000;

export interface SlowCredit {
  /** What is left, ms. */
  leftMs(): number;
  /** From now on a request waits, or the player asks for nothing, or neither. */
  settle(waiting: boolean, idle: boolean): void;
}

export const createSlowCredit = (clock: Clock, credit: Pick<Credit, 'leftMs'>): SlowCredit => {
  let leftMs = credit.leftMs() ?? slowCreditMs;
  let sinceMs = clock.now();
  let waits = false;
  let idles = false;
  const settle = (waiting: boolean, idle: boolean) => {
    const tookMs = clock.now() - sinceMs;
    if (waits) leftMs = Math.max(0, leftMs - tookMs);
    else if (idles) leftMs = Math.min(slowCreditMs, leftMs + tookMs);
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
