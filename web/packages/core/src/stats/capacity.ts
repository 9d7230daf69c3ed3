/** Estimate of the downlink from origin transfers (spec/schedule.md, "Capacity told to the player"). */
export interface Capacity {
  /**
   * One transfer, timed from its first byte to its last; `nowMs` if it was a whole segment's. `others`: bytes from peers
   * meanwhile. If those are many, they may have shared the line, or have come by a wider one: then the capacity is only
   * known not to be below what the origin sent, nor above all that came. Answers whether it was so.
   */
  sample(bytes: number, ms: number, others: number, nowMs?: number): boolean;
  /** Bits per second. */
  estimate(): number | undefined;
  /** What the player hears: with a margin, the larger the less has been measured. */
  told(): number | undefined;
  /** Clock time of the last segment's sample; undefined before the first. */
  sampledAt(): number | undefined;
}

/** Bytes of a transfer that say something of the line. */
export const leastBytes = 65_536;
const halfLivesMs = [3_000, 9_000];
/** The short mean below this share of the long one: the line has become slower. */
const fallen = 0.8;
/** Too low an estimate would stay, since peers' segments teach nothing; too high a one meets the origin. */
const margin = 1 / 16;
/** A sample stands for the time since the last one too, since the player would have measured in it. */
const gapShare = 1 / 16;
/** Peers that sent less than this share of the bytes took nothing from the line. */
const few = 1 / 16;
/** What came from peers is counted late, by whole pieces. */
const slack = 1.25;

export const createCapacity = (): Capacity => {
  const means = halfLivesMs.map((halfLife) => ({ halfLife, value: 0, weight: 0 }));
  let at: number | undefined;
  const estimate = () => {
    // A weight that has not grown to 1 would pull the mean towards zero.
    const [short, long] = means.map((m) => m.value / m.weight) as [number, number];
    return (short < fallen * long ? short : long) || undefined;
  };
  return {
    sample(bytes, ms, others, nowMs) {
      const crowded = others > bytes * few;
      if (bytes < leastBytes) return crowded;
      // Timers may be coarser than a fast transfer.
      let duration = Math.max(ms, 1);
      let value = (bytes * 8000) / duration;
      if (crowded) {
        const known = estimate()!;
        value = Math.max(value, Math.min(known, value * slack * (1 + others / bytes)));
        // Nothing new, or nothing to hold it against (then it is no number).
        if (!(value < known || value > known)) return crowded;
      } else {
        if (nowMs && at) duration = Math.max(duration, (nowMs - at) * gapShare);
        at = nowMs ?? at;
      }
      for (const m of means) {
        const share = 1 - 0.5 ** (duration / m.halfLife);
        m.value += share * (value - m.value);
        m.weight += share * (1 - m.weight);
      }
      return crowded;
    },
    estimate,
    told: () => estimate()! * (1 + margin * (1 - means[0]!.weight)) || undefined,
    sampledAt: () => at,
  };
};
