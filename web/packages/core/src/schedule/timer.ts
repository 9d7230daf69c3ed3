/** When a decision is to be made again: at the earliest end of all that is waited for. */
export interface Timer {
  now: number;
  /** Infinity: nothing is waited for. */
  wake: number;
  /** For something that the segment at hand needs. */
  waiting: boolean;
  /** Remembers when a wait ends; says whether it still lasts. */
  waits(until: number): boolean;
}

export const createTimer = (now: number): Timer => {
  const timer: Timer = {
    now,
    wake: Number.POSITIVE_INFINITY,
    waiting: false,
    waits(until) {
      if (now >= until) return false;
      timer.wake = Math.min(timer.wake, until);
      timer.waiting = true;
      return true;
    },
  };
  return timer;
};
