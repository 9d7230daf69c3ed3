/** AIM scores (spec/probe.md). */

/** What the scores read; what is undefined is not known. */
export interface Experience {
  /** Ratio. */
  loss?: number | undefined;
  /** ms */
  latency?: number | undefined;
  /** ms: the larger loaded latency of both directions. */
  loaded?: number | undefined;
  /** ms */
  jitter?: number | undefined;
  /** bit/s */
  download?: number | undefined;
  /** bit/s */
  upload?: number | undefined;
}

const classes = ['bad', 'poor', 'average', 'good', 'great'] as const;

export interface Score {
  points: number;
  class: (typeof classes)[number];
}

/** Points by the first bound that a value is below. */
type Scale = readonly [bounds: readonly number[], points: readonly number[]];

const lossScale: Scale = [
  [0.01, 0.05, 0.25, 0.5],
  [10, 5, 0, -10, -20],
];
const latencyScale: Scale = [
  [10, 20, 50, 100, 500],
  [20, 10, 5, 0, -10, -20],
];
const jitterScale: Scale = [
  [10, 20, 100, 500],
  [10, 5, 0, -10, -20],
];
const rateScale: Scale = [
  [1e6, 1e7, 5e7, 1e8],
  [0, 5, 10, 20, 30],
];

function points([bounds, all]: Scale, value: number): number {
  const at = bounds.findIndex((bound) => value < bound);
  return all[at < 0 ? bounds.length : at]!;
}

function score(sum: number, bounds: readonly number[]): Score {
  const kept = Math.max(0, sum);
  return { points: kept, class: classes[bounds.filter((bound) => kept >= bound).length]! };
}

/** The scores of streaming, gaming and rtc. Uses that lack an input have none. */
export function scores(e: Experience): { streaming?: Score; gaming?: Score; rtc?: Score } {
  if (e.latency === undefined || e.loaded === undefined) return {};
  const base =
    (e.loss === undefined ? 0 : points(lossScale, e.loss)) +
    points(latencyScale, e.latency) +
    points(latencyScale, e.loaded - e.latency);
  return {
    ...(e.download !== undefined && { streaming: score(base + points(rateScale, e.download), [15, 20, 40, 60]) }),
    gaming: score(base, [5, 15, 25, 30]),
    ...(e.jitter !== undefined && { rtc: score(base + points(jitterScale, e.jitter), [5, 15, 25, 40]) }),
  };
}
