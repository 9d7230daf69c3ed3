/** Estimate of the downlink from origin transfers (spec/schedule.md, "Capacity told to the player"). */
export interface Capacity {
  /** One transfer, timed from its first byte to its last. */
  sample(bytes: number, ms: number, nowMs: number): void;
  /** Bits per second. */
  estimate(): number | undefined;
  /** Clock time of the last sample; undefined before the first. */
  sampledAt(): number | undefined;
}

const leastBytes = 65_536;
const halfLivesMs = [3_000, 9_000];

export const createCapacity = (): Capacity => {
  const means = halfLivesMs.map((halfLife) => ({ halfLife, value: 0, weight: 0 }));
  let at: number | undefined;
  return {
    sample(bytes, ms, nowMs) {
      if (bytes < leastBytes) return;
      at = nowMs;
      // Timers may be coarser than a fast transfer.
      const duration = Math.max(ms, 1);
      for (const m of means) {
        const keep = 0.5 ** (duration / m.halfLife);
        m.value = keep * m.value + (1 - keep) * ((bytes * 8000) / duration);
        m.weight = keep * m.weight + 1 - keep;
      }
    },
    // A weight that has not grown to 1 would pull the mean towards zero.
    estimate: () => (at === undefined ? undefined : Math.min(...means.map((m) => m.value / m.weight))),
    sampledAt: () => at,
  };
};
