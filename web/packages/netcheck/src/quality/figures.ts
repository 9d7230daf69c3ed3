/** Figures of a quality test (spec/probe.md, Messages and Clocks). */
import { clocks, delays, oneWay, percentile, uncertainty } from '../netstat/delay.ts';
import { type Figure, figure } from '../netstat/figures.ts';
import { pattern, patternFigures } from '../netstat/record.ts';
import type { Stream } from './stream.ts';

export interface Quality {
  figures: Figure[];
  /** The clocks did not allow delays of one way. */
  oneWay?: 'clock';
}

/** Of a stream up, one down and one of echoes, all at once. */
export function qualityFigures(up: Stream, down: Stream, echo: Stream): Quality {
  const there = pattern({ sent: up.counted, arrivals: up.told });
  const here = pattern({ sent: down.counted, arrivals: down.arrivals });
  const back = pattern({ sent: echo.counted, arrivals: echo.arrivals });
  const figures = [
    ...patternFigures(there, 'up'),
    ...patternFigures(here, 'down'),
    ...patternFigures(back, 'round-trip'),
  ];
  const trips = echo.exchanges
    .map(([sent, received, echoed, returned]) => returned - sent - (echoed - received))
    .filter((trip) => trip >= 0)
    .sort((a, b) => a - b);
  if (trips.length > 0) figures.push(figure('round_trip', 'round-trip', percentile(trips, 50) / 1e6));
  const offset = clocks(echo.exchanges);
  const [first, last] = [down.arrivals[0], down.arrivals.at(-1)];
  if (!offset || !first || !last || up.told.length === 0) return { figures, oneWay: 'clock' };
  // The first message or the last is the farthest from the echo that the offset comes from.
  const uncertain = Math.max(uncertainty(offset, first[2]), uncertainty(offset, last[2]));
  const ways = [
    ['up', percentile(delays(there.first, offset.clock), 50)],
    ['down', percentile(delays(here.first, -offset.clock), 50)],
  ] as const;
  const known = ways.filter(([, delay]) => oneWay(delay, uncertain));
  figures.push(...known.map(([way, delay]) => figure('one_way_delay', way, delay / 1e6)));
  return known.length > 0 ? { figures } : { figures, oneWay: 'clock' };
}
