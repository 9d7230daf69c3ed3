import type { Source } from './delivery';

/** What one viewer has received so far. */
export interface Received {
  /** The window, for as long as it is open. */
  id: string;
  /** Milliseconds since it was opened. */
  ageMs: number;
  bytes: Record<Source, number>;
}

export type Rates = Record<Source, number>;

/** A column of the chart, and how many of them are kept: three minutes. */
export const columnMs = 2000;
export const columns = 90;
/** A viewer fetches a segment of a few seconds at a time: a point is the average of so many columns. */
const averaged = 4;

const sources = ['origin', 'seed', 'peer'] as const;
const nothing = (): Rates => ({ origin: 0, seed: 0, peer: 0 });

/**
 * Rates over time of all viewers together, from counters that only grow. Times are milliseconds since this page was opened. A
 * viewer that was opened later counts from its first byte, an older one from when it is first heard of.
 */
export class History {
  /** Bytes since this page was opened, of all viewers, those included that are gone. */
  readonly total = nothing();
  private readonly known = new Map<string, { at: number; bytes: Rates }>();
  private readonly filled = new Map<number, Rates>();

  take(at: number, viewers: Received[]): void {
    for (const { id, ageMs, bytes } of viewers) {
      const since = this.known.get(id) ?? this.beginning(at - ageMs, at, bytes);
      this.known.set(id, { at, bytes: { ...bytes } });
      for (const source of sources) this.spread(source, bytes[source] - since.bytes[source], since.at, at);
    }
    const oldest = Math.floor(at / columnMs) - columns - averaged;
    for (const column of this.filled.keys()) if (column < oldest) this.filled.delete(column);
    for (const [id, { at: seen }] of this.known) if (at - seen > columns * columnMs) this.known.delete(id);
  }

  /** The latest full columns, oldest first, bytes per second; as many as there were since the page was opened. */
  points(at: number): Rates[] {
    const end = Math.floor(at / columnMs);
    const all: Rates[] = [];
    for (let column = Math.max(0, end - columns); column < end; column++) all.push(this.average(column));
    return all;
  }

  private average(column: number): Rates {
    const first = Math.max(0, column - averaged + 1);
    const sum = nothing();
    for (let i = first; i <= column; i++) for (const s of sources) sum[s] += this.filled.get(i)?.[s] ?? 0;
    const seconds = ((column - first + 1) * columnMs) / 1000;
    for (const s of sources) sum[s] /= seconds;
    return sum;
  }

  private beginning(opened: number, at: number, bytes: Rates): { at: number; bytes: Rates } {
    return opened >= 0 ? { at: opened, bytes: nothing() } : { at, bytes };
  }

  private spread(source: Source, bytes: number, from: number, to: number): void {
    // A counter that fell began anew; the next look knows from where.
    if (bytes <= 0) return;
    this.total[source] += bytes;
    const span = to - from;
    for (let column = Math.floor(from / columnMs); column * columnMs <= to; column++) {
      const inside = Math.min(to, (column + 1) * columnMs) - Math.max(from, column * columnMs);
      const share = span > 0 ? inside / span : column === Math.floor(to / columnMs) ? 1 : 0;
      if (share <= 0) continue;
      const rates = this.filled.get(column) ?? nothing();
      rates[source] += bytes * share;
      this.filled.set(column, rates);
    }
  }
}

/** What the origin would have to send if there were no Leeway: all that is received. */
export function without(rates: Rates): number {
  return rates.origin + rates.seed + rates.peer;
}

/** The next round figure above a rate, for the top of an axis: one digit of Mbit/s, bytes per second. */
export function roundUp(rate: number): number {
  const mbit = Math.max(1, (rate * 8) / 1e6);
  const power = 10 ** Math.floor(Math.log10(mbit));
  const top = [1, 2, 3, 4, 6, 8, 10].map((n) => n * power).find((n) => n >= mbit * 0.999)!;
  return (top * 1e6) / 8;
}
