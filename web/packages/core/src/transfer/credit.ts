/**
 * How long requests of the player wait for peers of which nothing is known (spec/schedule.md, "Waiting"): in all, over all
 * titles of the session, until a piece has matched its certificate.
 */
import type { Clock } from '../ports.ts';

export const creditMs = 750;

export interface Credit {
  /** What is left, ms; undefined: a piece has been verified. */
  leftMs(): number | undefined;
  /** Whether a request waits, as this title has it. */
  waits(title: object, waiting: boolean): void;
  /** A piece has been verified. */
  prove(): void;
}

export const createCredit = (clock: Clock): Credit => {
  const waiting = new Set<object>();
  let spentMs = 0;
  let sinceMs = 0;
  let proven = false;
  /** What waits at the same time is one wait. */
  const settle = () => {
    if (waiting.size) spentMs += clock.now() - sinceMs;
    sinceMs = clock.now();
  };
  return {
    leftMs() {
      settle();
      return proven ? undefined : Math.max(0, creditMs - spentMs);
    },
    waits(title, now) {
      settle();
      if (now) waiting.add(title);
      else waiting.delete(title);
    },
    prove() {
      proven = true;
    },
  };
};
