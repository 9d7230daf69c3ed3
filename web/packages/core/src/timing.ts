/** How long a transfer took, for adapters whose player tells of its progress alone. They carry it with them: it is not published. */
import type { Clock } from './ports.ts';

export interface Timing {
  /** The transfer has come so far. */
  saw(loaded: number): void;
  /** What it took for so many bytes, which are all, from the first to the last, ms; undefined where its progress does not tell. */
  ms(bytes: number): number | undefined;
}

/** Times one transfer by its progress, whose first event comes with bytes that took their time, too. */
export function createTiming(clock: Clock): Timing {
  let firstAt = 0;
  let firstLoaded = 0;
  return {
    saw(loaded) {
      if (firstAt) return;
      firstAt = clock.now();
      firstLoaded = loaded;
    },
    ms: (bytes) =>
      firstAt && bytes > 2 * firstLoaded ? ((clock.now() - firstAt) * bytes) / (bytes - firstLoaded) : undefined,
  };
}
