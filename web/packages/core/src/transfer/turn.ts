/** When the schedule decides: once for all that happens in one turn of the page, and when it asked to be woken. */

import type { Clock } from '../ports.ts';

const longestSleepMs = 30_000;

export interface Turn {
  /** Something happened that the schedule may act on. */
  changed(): void;
  /** Decides again after so long: as the schedule asked, */
  wake(ms: number): void;
  /** and when what could not be asked for ahead may be. Infinity: never. */
  ahead(ms: number): void;
  stop(): void;
}

export const createTurn = (clock: Clock, decide: () => void): Turn => {
  let stopped = false;
  let due = false;
  let timer = 0;
  let aheadTimer = 0;
  const run = () => {
    due = false;
    if (stopped) return;
    clock.clearTimer(timer);
    decide();
  };
  const changed = () => {
    if (due || stopped) return;
    due = true;
    queueMicrotask(run);
  };
  return {
    changed,
    wake(ms) {
      timer = clock.setTimer(changed, Math.min(Math.max(ms, 1), longestSleepMs));
    },
    ahead(ms) {
      clock.clearTimer(aheadTimer);
      if (ms < longestSleepMs) aheadTimer = clock.setTimer(changed, Math.max(ms, 1));
    },
    stop() {
      stopped = true;
      clock.clearTimer(timer);
      clock.clearTimer(aheadTimer);
    },
  };
};
