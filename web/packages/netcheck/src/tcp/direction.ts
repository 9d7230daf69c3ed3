/** One direction of the TCP test: load, measurements, probes, and figures of them (spec/probe.md, A check in a browser). */
import { type Running, run } from '../browser/background.ts';
import { aborted, CheckError } from '../error.ts';
import { type Figure, figure } from '../netstat/figures.ts';
import { type Probes, rpm } from '../netstat/responsiveness.ts';
import { tcpFigures } from '../netstat/summary.ts';
import type { TCPInfo } from '../netstat/tcp.ts';
import type { Plan } from '../plan.ts';
import type { Server } from '../server.ts';
import { type LoadEvent, type LoadTask, load } from './load.ts';
import { type Measurement, readMeasurement } from './measurement.ts';
import { type ProbingEvent, type ProbingTask, probing } from './probing.ts';
import { lately, type Series, together } from './received.ts';

/** What is seen of a test that runs. */
export interface Glance {
  /** Share of its time that is over, 0 to 1. */
  done: number;
  /** bit/s over about the last half second; undefined until something has come. */
  throughput: number | undefined;
  /** Seconds, of the latest measurement. */
  latency: number | undefined;
}

/** What a test needs. */
export interface DirectionTest {
  direction: 'down' | 'up';
  server: Server;
  plan: Plan;
  signal: AbortSignal;
  glance(now: Glance): void;
}

const beat = 100; // ms
const probeEvery = 250; // ms
const recently = 500_000; // µs

interface Connection {
  opened: number; // µs
  series: [number, number][];
  looks: TCPInfo[];
}

/** Runs a test to its end. Rejects with a `CheckError`. */
export function testDirection(test: DirectionTest): Promise<Figure[]> {
  return new Promise((resolve, reject) => {
    new Direction(test, resolve, reject).begin();
  });
}

class Direction {
  private readonly connections: Connection[] = [];
  private readonly probes: { tcp: number[]; tls: number[]; http: number[] } = { tcp: [], tls: [], http: [] };
  private readonly answers: number[] = []; // to questions on the loaded connections, µs
  private readonly test: DirectionTest;
  private readonly resolve: (figures: Figure[]) => void;
  private readonly reject: (error: unknown) => void;
  private load: Running<LoadTask> | undefined;
  private probing: Running<ProbingTask> | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;
  private opened: number | undefined; // the page's clock, ms
  private heard = 0; // likewise
  private codes: number[] = [];
  private v6 = false;
  private latency: number | undefined;
  private ending: number | undefined; // since when, the page's clock, ms

  constructor(test: DirectionTest, resolve: (figures: Figure[]) => void, reject: (error: unknown) => void) {
    this.test = test;
    this.resolve = resolve;
    this.reject = reject;
  }

  begin(): void {
    const { direction, server, plan, signal } = this.test;
    const path = direction === 'down' ? '/ndt/v7/download' : '/ndt/v7/upload';
    signal.addEventListener('abort', this.abort);
    this.heard = performance.now();
    this.timer = setInterval(() => this.tick(), beat);
    this.load = run(load, (event) => this.on(event));
    this.load.tell({
      direction,
      length: plan.seconds * 1e6,
      urls: Array.from({ length: plan.connections }, () => server.socketURL(path, { answers: '1' })),
      asks: { after: plan.rampUp * 1e6, every: probeEvery },
    });
    if (signal.aborted) this.abort();
  }

  private readonly abort = () => this.fail(aborted(this.test.signal));

  private on(event: LoadEvent): void {
    if (this.timer === undefined) return;
    switch (event.is) {
      case 'open':
        this.opened ??= performance.now();
        this.connections[event.socket] = { opened: event.at, series: [[event.at, 0]], looks: [] };
        break;
      case 'received':
        this.connections[event.socket]?.series.push([event.at, event.bytes]);
        break;
      case 'measured': {
        const measurement = readMeasurement(event.text);
        if (measurement) this.measured(event.socket, measurement);
        break;
      }
      case 'responded':
        this.answers.push(event.took);
        break;
      case 'closed':
        this.closed(event.code);
        return;
      case 'ended':
        this.finish();
        return;
    }
    this.heard = performance.now();
  }

  private measured(socket: number, { elapsed, bytes, info, v6 }: Measurement): void {
    const connection = this.connections[socket];
    if (!connection) return;
    const at = connection.opened + elapsed;
    const [last, had] = connection.series.at(-1)!;
    const counts = this.test.direction === 'up' && at > last && bytes >= had;
    if (counts) connection.series.push([at, bytes]);
    this.v6 ||= v6;
    if (!info) return;
    connection.looks.push(info);
    const rtt = this.test.direction === 'up' ? info.RcvRTT : info.RTT;
    if (rtt) this.latency = rtt / 1e6;
  }

  private closed(code: number): void {
    this.codes.push(code);
    if (this.codes.length < this.test.plan.connections) return;
    if (this.opened === undefined) void this.unopened();
    else if (this.codes.includes(1000)) this.stopLoad();
    else this.fail(this.stopped());
  }

  /** No connection opened: the server may say why. */
  private async unopened(): Promise<void> {
    clearInterval(this.timer);
    const error = await this.test.server.refusal(this.test.signal);
    this.fail(error);
  }

  private tick(): void {
    const { plan, glance } = this.test;
    const now = performance.now();
    const silent = (now - this.heard) / 1000;
    if (this.opened === undefined) {
      if (silent >= plan.patience) void this.unopened();
      return;
    }
    if (this.ending !== undefined) {
      if (silent >= plan.patience || (now - this.ending) / 1000 >= 2 * plan.patience) this.finish();
      return;
    }
    const elapsed = (now - this.opened) / 1000;
    if (elapsed >= plan.seconds) {
      this.stopLoad();
      return;
    }
    if (silent >= plan.patience) {
      this.fail(this.stopped());
      return;
    }
    if (elapsed >= plan.rampUp) this.probe();
    const all = this.connections.filter(Boolean).map((c) => c.series);
    const rate = lately(all, recently);
    glance({ done: elapsed / plan.seconds, throughput: rate > 0 ? rate : undefined, latency: this.latency });
  }

  private probe(): void {
    if (this.probing) return;
    this.probing = run(probing, (event) => this.probed(event));
    const url = this.test.server.url('/probe/v1/small', { close: '1', [this.test.direction]: '' });
    this.probing.tell({ url: url.href, every: probeEvery });
  }

  private probed(event: ProbingEvent): void {
    if (event.is === 'answered' && event.status !== 200) this.probing?.stop();
    if (event.is !== 'timed') return;
    if (event.tcp) this.probes.tcp.push(event.tcp);
    if (event.tls) this.probes.tls.push(event.tls);
    this.probes.http.push(event.http);
    const known = this.connections.some((c) => c?.looks.length);
    if (!known) this.latency = event.http / 1e6;
  }

  /** Some browsers carry all that a worker hears by way of the page, which is behind then: what was measured comes first. */
  private stopLoad(): void {
    this.ending = performance.now();
    this.load?.tell(undefined);
  }

  private finish(): void {
    const { direction, plan } = this.test;
    const rampUp = plan.rampUp * 1e6;
    const connections = this.connections.filter(Boolean);
    const looks = connections.map((c) => c.looks);
    const received = together(
      connections.map(({ series }) => ({ series, ended: this.silentAtEnd(series) })),
      rampUp,
    );
    const figures = tcpFigures({ direction, v6: this.v6, rampUp, received, looks, linkRate: 0 });
    const silent = !this.codes.includes(1000) && this.silentAtEnd(received);
    if (silent || !figures.some(({ name }) => name === 'throughput')) {
      this.fail(this.stopped());
      return;
    }
    const loaded = looks
      .flat()
      .filter((look) => (look.ElapsedTime ?? 0) >= rampUp)
      .map((look) => (direction === 'up' ? look.RcvRTT : look.RTT) ?? 0)
      .filter((rtt) => rtt > 0);
    const onTheLoad = [
      ['responsiveness', loaded],
      ['request_responsiveness', this.answers],
    ] as const;
    for (const [name, times] of onTheLoad) {
      const perMinute = rpm({ ...this.probes, loaded: times } satisfies Probes);
      if (perMinute !== undefined) figures.push(figure(name, direction, perMinute));
    }
    this.end();
    this.resolve(figures);
  }

  /**
   * Figures end with the last that came: a silence before the end would not be in them. It is told from the times of what
   * came, since the page may have heard of it late.
   */
  private silentAtEnd(received: Series): boolean {
    const { seconds } = this.test.plan;
    const allowed = Math.max(1, seconds / 4) * 1e6;
    return (received.at(-1)?.[0] ?? 0) < seconds * 1e6 - allowed;
  }

  /** Why nothing comes. A WebSocket that never opens does not close either: what the server has said on any of the others counts. */
  private stopped(): CheckError {
    const { direction, server } = this.test;
    if (this.codes.includes(1013)) {
      const text = `${server.name} ended the check: this address has used up the bytes that it may have in a day.`;
      return new CheckError('refused', text, { status: 429 });
    }
    const way = direction === 'down' ? 'download' : 'upload';
    return new CheckError('stopped', `${server.name}, or the line to it, went silent during the ${way}.`);
  }

  private fail(error: CheckError): void {
    this.end();
    this.reject(error);
  }

  private end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.test.signal.removeEventListener('abort', this.abort);
    this.load?.stop();
    this.probing?.stop();
  }
}
