/** The result of a check (spec/probe.md, Results). */
import { type Score, scores } from './netstat/aim.ts';
import type { Direction, Figure, FigureName } from './netstat/figures.ts';
import type { Reachability } from './reach.ts';

export interface Results {
  version: 1;
  /** Host and port of the server. */
  server: string;
  /** When the check began, milliseconds since 1970. */
  started_ms: number;
  /** The clocks did not allow delays of one way. */
  one_way?: 'clock';
  /** blocked: no data channel opened, as where UDP is blocked. broken: it ended early. */
  channel?: 'blocked' | 'broken';
  /** Why it ended early, for people. */
  channel_reason?: string;
  /** Where the server names STUN servers. It has no address. */
  reachability?: Reachability;
  figures: Figure[];
  /** AIM scores; a use that lacks a figure has none. */
  scores: { streaming?: Score; gaming?: Score; rtc?: Score };
}

/** A figure's value; without a direction the largest of them. */
export function figureOf(figures: readonly Figure[], name: FigureName, direction?: Direction): number | undefined {
  const values = figures
    .filter((f) => f.name === name && (direction === undefined || f.direction === direction))
    .map((f) => f.value);
  return values.length === 0 ? undefined : Math.max(...values);
}

const ms = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000);

/** The scores of figures: the smallest baseline, and of the others the worse direction. */
export function scoresOf(figures: readonly Figure[]): Results['scores'] {
  const baselines = figures.filter(({ name }) => name === 'baseline_rtt').map(({ value }) => value);
  return scores({
    latency: baselines.length === 0 ? undefined : ms(Math.min(...baselines)),
    loaded: ms(figureOf(figures, 'loaded_rtt')),
    loss: figureOf(figures, 'loss'),
    jitter: ms(figureOf(figures, 'jitter')),
    download: figureOf(figures, 'throughput', 'down'),
    upload: figureOf(figures, 'throughput', 'up'),
  });
}
