/** What a stream of messages says of loss (RFC 3357) and order (RFC 4737): spec/probe.md, Messages. */
import type { Arrival } from './arrival.ts';
import { delayRange, jitter } from './delay.ts';
import { type Direction, type Figure, figure } from './figures.ts';

/** Messages 0 to `sent` − 1 were sent; the arrivals are in order of arrival. The caller bounds `sent`. */
export interface MessageRecord {
  sent: number;
  arrivals: readonly Arrival[];
}

/** A run of lost messages. */
export interface Period {
  first: number;
  length: number;
}

/** A message that arrived reordered. */
export interface Late {
  sequence: number;
  /** Arrivals since the first one with a larger number. */
  extent: number;
  /** µs since that one. */
  time: number;
  /** Arrivals directly before it that all have larger numbers: its n-reordering. */
  before: number;
}

export interface Pattern {
  sent: number;
  lost: number;
  duplicates: number;
  foreign: number;
  /** RFC 3357, one for each lost message; the first is 0. */
  distances: number[];
  periods: Period[];
  /** In order of arrival. */
  reordered: Late[];
  /** The arrivals, each message once. */
  first: Arrival[];
}

/** Reads a record. */
export function pattern(record: MessageRecord): Pattern {
  const sent = Math.max(0, record.sent);
  const result: Pattern = {
    sent,
    lost: 0,
    duplicates: 0,
    foreign: 0,
    distances: [],
    periods: [],
    reordered: [],
    first: [],
  };
  const came = new Uint8Array(sent);
  for (const arrival of record.arrivals) {
    const [sequence] = arrival;
    if (!(sequence >= 0 && sequence < sent)) result.foreign++;
    else if (came[sequence]) result.duplicates++;
    else {
      came[sequence] = 1;
      result.first.push(arrival);
    }
  }
  let last = -1;
  for (let sequence = 0; sequence < sent; sequence++) {
    if (came[sequence]) continue;
    result.lost++;
    result.distances.push(last < 0 ? 0 : sequence - last);
    if (last >= 0 && last === sequence - 1) result.periods.at(-1)!.length++;
    else result.periods.push({ first: sequence, length: 1 });
    last = sequence;
  }
  result.reordered = late(result.first);
  return result;
}

/** The arrivals that came after larger numbers, each found in less than linear time: records are what another party says. */
function late(first: readonly Arrival[]): Late[] {
  const found: Late[] = [];
  const largest: number[] = []; // so far, with each arrival
  const smaller: number[] = []; // places of arrivals, each with a smaller number than all between it and the next
  first.forEach(([sequence, , received], i) => {
    while (smaller.length > 0 && first[smaller.at(-1)!]![0] > sequence) smaller.pop();
    const below = smaller.at(-1) ?? -1;
    smaller.push(i);
    const most = largest[i - 1] ?? -1;
    largest.push(Math.max(most, sequence));
    if (sequence > most) return;
    let from = 0;
    let to = i;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (largest[middle]! > sequence) to = middle;
      else from = middle + 1;
    }
    found.push({ sequence, extent: i - from, time: received - first[from]![2], before: i - below - 1 });
  });
  return found;
}

const by = (n: number, of: number) => (of === 0 ? 0 : n / of);

/** The figures of one direction. */
export function patternFigures(p: Pattern, direction: Direction): Figure[] {
  if (p.sent === 0) return [];
  const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b), 0);
  const all = [
    figure('loss', direction, by(p.lost, p.sent)),
    figure('loss_period', direction, most(p.periods.map(({ length }) => length))),
    figure('duplicates', direction, by(p.duplicates, p.sent)),
    figure('reordered', direction, by(p.reordered.length, p.sent)),
    figure('reorder_extent', direction, most(p.reordered.map(({ extent }) => extent))),
  ];
  if (p.lost > 1) {
    const least = p.distances.slice(1).reduce((a, b) => Math.min(a, b));
    all.push(figure('loss_distance', direction, least));
  }
  if (p.first.length > 1) {
    all.push(
      figure('jitter', direction, jitter(p.first) / 1e6),
      figure('delay_range', direction, delayRange(p.first) / 1e6),
    );
  }
  return all;
}
