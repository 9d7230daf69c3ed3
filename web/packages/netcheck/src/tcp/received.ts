/** What came over time, of one connection or of several together (spec/probe.md, A check in a browser). */

/** µs, and bytes until then, in order. */
export type Series = readonly (readonly [at: number, bytes: number])[];

/** Bytes at times that only grow, between a series' measurements; before the first and after the last, those. */
function reader(series: Series): (at: number) => number {
  let next = 0;
  return (at) => {
    while (next < series.length && series[next]![0] < at) next++;
    const [before, had] = series[Math.max(0, next - 1)]!;
    const [then, bytes] = series[Math.min(next, series.length - 1)]!;
    return then <= before || at <= before ? had : had + ((bytes - had) * (at - before)) / (then - before);
  };
}

/**
 * The sum of connections that were measured at times of their own, at all those times and another, until the first that goes on
 * has no further measurement. One that has ended keeps what it had.
 */
export function together(all: readonly { series: Series; ended: boolean }[], also: number): Series {
  const known = all.filter(({ series }) => series.length > 0);
  const living = known.filter(({ ended }) => !ended);
  const lasts = (living.length > 0 ? living : known).map(({ series }) => series.at(-1)![0]);
  const end = living.length > 0 ? Math.min(...lasts) : Math.max(0, ...lasts);
  const times = new Set(known.flatMap(({ series }) => series.map(([at]) => at)));
  times.add(also);
  const readers = known.map(({ series }) => reader(series));
  return [...times]
    .filter((at) => at <= end)
    .sort((a, b) => a - b)
    .map((at) => [at, readers.reduce((sum, read) => sum + read(at), 0)] as const);
}

/** bit/s over about the last so many microseconds of each series, added up. */
export function lately(all: readonly Series[], us: number): number {
  let sum = 0;
  for (const series of all) {
    const last = series.at(-1);
    if (!last) continue;
    let from = series.length - 1;
    while (from > 0 && series[from]![0] > last[0] - us) from--;
    const [at, bytes] = series[from]!;
    if (last[0] > at) sum += ((last[1] - bytes) * 8e6) / (last[0] - at);
  }
  return sum;
}
