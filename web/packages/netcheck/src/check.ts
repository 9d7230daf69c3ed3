/** The network check as a page runs it. */
import { run } from './browser/background.ts';
import { aborted, CheckError } from './error.ts';
import { testFree } from './free.ts';
import type { Direction, Figure } from './netstat/figures.ts';
import { type Plan, planOf } from './plan.ts';
import { testQuality } from './quality/test.ts';
import { testReach } from './reach.ts';
import { figureOf, type Results, scoresOf } from './results.ts';
import { Server, type ServerInfo } from './server.ts';
import { type Glance, testDirection } from './tcp/direction.ts';
import { probing } from './tcp/probing.ts';

export interface NetworkCheckOptions {
  /** Where `leeway probe serve` listens: `https://probe.example.com:8090`. */
  server: string | URL;
  /** A join token, where the server asks for one. */
  token?: string;
  /** TURN servers with credentials, as a tracker names them: whether they give a relayed address. */
  relays?: readonly RTCIceServer[];
  /** What to change of the usual plan. */
  plan?: Partial<Plan>;
}

/** What a check does, in this order. */
export type Phase = 'baseline' | 'download' | 'upload' | 'quality' | 'done';

/** Where a check is. */
export interface Progress {
  phase: Phase;
  /** Milliseconds since it began. */
  elapsed: number;
  /** Share of the phase that is over, 0 to 1. */
  done: number;
  /** Of the load, where there is one. */
  direction?: Direction;
  /** bit/s over about the last half second. */
  throughput?: number;
  /** Seconds, latest. */
  latency?: number;
  /** Those of the phases that are over. */
  figures: readonly Figure[];
}

export interface RunOptions {
  /** Called about ten times a second. */
  onProgress?: (progress: Progress) => void;
  /** Ends the check. */
  signal?: AbortSignal;
}

const phases = { down: 'download', up: 'upload' } as const;
const beat = 100; // ms between two reports
const idleEvery = 150; // ms between two small requests on an idle line
// Ms between two beside a load that gives way: with headers some 30 kbit/s, which is less than a hundredth of a line of 5 Mbit/s.
const besideEvery = 500;

/**
 * A check of this client's line against a server. It ends within the time of its plan whatever the server does.
 *
 * ```ts
 * const check = new NetworkCheck({ server: 'https://probe.example.com:8090' });
 * const { figures, scores } = await check.run({ onProgress: ({ phase, throughput }) => console.log(phase, throughput) });
 * ```
 */
export class NetworkCheck {
  private readonly plan: Plan;
  private readonly server: Server;
  private readonly relays: readonly RTCIceServer[];

  /** Throws a `TypeError` for a server that is no URL, a `RangeError` for a plan out of its bounds. */
  constructor(options: NetworkCheckOptions) {
    this.plan = planOf(options.plan);
    this.server = new Server(options.server, options.token, this.plan.patience);
    this.relays = options.relays ?? [];
  }

  /** Runs the check. Rejects with a `CheckError`, which has what was measured by then. */
  async run({ onProgress, signal = new AbortController().signal }: RunOptions = {}): Promise<Results> {
    const began = performance.now();
    const results: Results = {
      version: 1,
      server: this.server.name,
      started_ms: Date.now(),
      figures: [],
      scores: {},
    };
    const report = (progress: Omit<Progress, 'elapsed' | 'figures'>) =>
      onProgress?.({ ...progress, elapsed: performance.now() - began, figures: results.figures });
    try {
      const info = await this.baseline(results, signal, report);
      for (const direction of ['down', 'up'] as const) {
        if (!this.plan[phases[direction]] || results.channel) continue;
        if (this.plan.givesWay) await this.free(direction, info, results, signal, report);
        else results.figures.push(...(await this.direction(direction, info, signal, report)));
      }
      const { quality } = this.plan;
      if (quality && info.tests.includes('quality') && !results.channel) await this.quality(results, signal, report);
    } catch (error) {
      results.scores = scoresOf(results.figures);
      throw error instanceof CheckError ? error.with(results) : error;
    }
    results.scores = scoresOf(results.figures);
    report({ phase: 'done', done: 1 });
    return results;
  }

  /** The server answers, and how soon while nothing else goes on. Gives what it says of itself. */
  private async baseline(results: Results, signal: AbortSignal, report: Report): Promise<ServerInfo> {
    const { idle } = this.plan;
    report({ phase: 'baseline', done: 0 });
    const info = await this.server.info(signal);
    const { stun, relays } = info;
    // A browser that lacks peer connections, or refuses them, tells nothing of reachability, and the rest is measured.
    const reaching =
      this.plan.reach && stun.length > 0
        ? testReach(stun, [...this.relays, ...relays], signal).catch(() => undefined)
        : undefined;
    const began = performance.now();
    const answers = timeAnswers(this.server, 'idle', idleEvery);
    try {
      for (;;) {
        await pause(beat, signal);
        if (signal.aborted) throw aborted(signal);
        const done = Math.min(1, (performance.now() - began) / (idle * 1000 || 1));
        report({ phase: 'baseline', done, ...answers.latest() });
        if (done >= 1) {
          const reachability = await reaching;
          if (signal.aborted) throw aborted(signal);
          if (reachability) results.reachability = reachability;
          return info;
        }
      }
    } finally {
      answers.stop();
    }
  }

  private async quality(results: Results, signal: AbortSignal, report: Report): Promise<void> {
    report({ phase: 'quality', done: 0 });
    const { server, plan } = this;
    const glance = (now: { done: number; latency?: number }) => report({ phase: 'quality', ...now });
    const rates = {
      up: figureOf(results.figures, 'throughput', 'up'),
      down: figureOf(results.figures, 'throughput', 'down'),
    };
    const outcome = await testQuality({ server, plan, rates, signal, glance });
    if (outcome === 'blocked') {
      results.channel = outcome;
      return;
    }
    if ('broken' in outcome) {
      results.channel = 'broken';
      results.channel_reason = outcome.broken;
      return;
    }
    results.figures.push(...outcome.figures);
    if (outcome.oneWay) results.one_way = outcome.oneWay;
  }

  /** What is free of the line one way. */
  private async free(
    direction: 'down' | 'up',
    { client, tests }: ServerInfo,
    results: Results,
    signal: AbortSignal,
    report: Report,
  ): Promise<void> {
    const { server, plan } = this;
    if (!tests.includes('gives-way')) {
      throw new CheckError('refused', `${server.name} has no loads that give way.`, { status: 404 });
    }
    const phase = phases[direction];
    report({ phase, direction, done: 0 });
    const answers = timeAnswers(server, `beside-${direction}`, besideEvery);
    const glance = ({ done, throughput }: Pick<Glance, 'done' | 'throughput'>) =>
      report({ phase, direction, done, ...(throughput !== undefined && { throughput }), ...answers.latest() });
    try {
      const found = await testFree({ direction, server, client, plan, signal, glance });
      if (found === 'blocked') results.channel = found;
      else results.figures.push(found);
    } finally {
      answers.stop();
    }
  }

  private direction(
    direction: 'down' | 'up',
    { testsPerAddress: most = Number.POSITIVE_INFINITY }: ServerInfo,
    signal: AbortSignal,
    report: Report,
  ): Promise<Figure[]> {
    const phase = phases[direction];
    report({ phase, direction, done: 0 });
    const glance = ({ done, throughput, latency }: Glance) =>
      report({
        ...{ phase, direction, done },
        ...(throughput !== undefined && { throughput }),
        ...(latency !== undefined && { latency }),
      });
    const plan = { ...this.plan, connections: Math.min(this.plan.connections, most) };
    return testDirection({ direction, server: this.server, plan, signal, glance });
  }
}

type Report = (progress: Omit<Progress, 'elapsed' | 'figures'>) => void;

/** Asks for small answers again and again, and says how long the latest took. name: what tells them from others. */
function timeAnswers(server: Server, name: string, every: number): { latest(): { latency?: number }; stop(): void } {
  let latency: number | undefined;
  const running = run(probing, (event) => {
    if (event.is === 'timed') latency = event.http / 1e6;
  });
  running.tell({ url: server.url('/probe/v1/small', { [name]: '' }).href, every });
  return { latest: () => (latency === undefined ? {} : { latency }), stop: () => running.stop() };
}

/** Milliseconds; the signal cuts them short. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
