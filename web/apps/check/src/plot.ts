/** The timeline of a check as paths: throughput as areas, latency as a line. Pure. */

export interface Sample {
  /** ms since the beginning. */
  at: number;
  direction?: 'down' | 'up' | undefined;
  /** bit/s */
  throughput?: number | undefined;
  /** Seconds. */
  latency?: number | undefined;
}

export interface Frame {
  width: number;
  height: number;
  /** ms */
  span: number;
}

export interface Plot {
  down: string;
  up: string;
  latency: string;
  /** The largest of each axis: bit/s and seconds. */
  most: { throughput: number; latency: number };
}

/** 1, 2 or 5 times a power of ten, at least a value. */
export function round(value: number): number {
  const ten = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= value * 0.999)!;
}

export function plot(samples: readonly Sample[], { width, height, span }: Frame): Plot {
  const of = (key: 'throughput' | 'latency') => samples.reduce((most, s) => Math.max(most, s[key] ?? 0), 0);
  const most = { throughput: round(of('throughput') || 1e6), latency: round(of('latency') || 0.01) };
  const x = (at: number) => ((Math.min(at, span) / span) * width).toFixed(1);
  const y = (part: number) => ((1 - part) * height).toFixed(1);
  const area = (direction: 'down' | 'up') => {
    const own = samples.filter((s) => s.direction === direction && s.throughput !== undefined);
    if (own.length < 2) return '';
    const line = own.map((s) => `L${x(s.at)} ${y(s.throughput! / most.throughput)}`).join('');
    return `M${x(own[0]!.at)} ${height}${line}L${x(own.at(-1)!.at)} ${height}Z`;
  };
  const seen = samples.filter((s) => s.latency !== undefined);
  // Of each phase a line of its own.
  const begins = (i: number) => i === 0 || seen[i - 1]!.direction !== seen[i]!.direction;
  const line = seen.map((s, i) => `${begins(i) ? 'M' : 'L'}${x(s.at)} ${y(s.latency! / most.latency)}`).join('');
  return { down: area('down'), up: area('up'), latency: seen.length < 2 ? '' : line, most };
}
