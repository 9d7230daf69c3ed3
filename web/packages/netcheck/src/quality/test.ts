/** The quality test: loss, order and delay each way (spec/probe.md, A check in a browser). */
import { aborted } from '../error.ts';
import type { Plan } from '../plan.ts';
import type { Server } from '../server.ts';
import type { Run } from '../wire/control.ts';
import { leastLate, silence } from '../wire/quality.ts';
import { type Quality, qualityFigures } from './figures.ts';
import { connects, openLine } from './line.ts';
import { lengthOf, type Stream } from './stream.ts';

const messages = 1000;
const size = 600; // bytes: no two of them fit into a packet
const leastInterval = 2_000; // µs
const mostInterval = 1_000_000;
const leastMessages = 10;
const mostOnTheWay = 40; // messages of a stream
const streamShare = 4; // of the throughput, one in so many parts at most
const echoShare = 8;
const echoInterval = 50_000; // µs
const beat = 100; // ms

export interface QualityTest {
  server: Server;
  plan: Plan;
  rates: Rates;
  signal: AbortSignal;
  glance(now: { done: number; latency?: number }): void;
}

/** A line's throughput, bit/s, where it is known. */
export interface Rates {
  up?: number | undefined;
  down?: number | undefined;
}

/** blocked: no data channel opens. broken: it ended early, and why. */
export type QualityOutcome = Quality | 'blocked' | { broken: string };

/** Rejects with a `CheckError` where the server refuses it, or the page ends it. */
export async function testQuality({ server, plan, rates, signal, glance }: QualityTest): Promise<QualityOutcome> {
  const line = openLine();
  if (!line) return 'blocked';
  const stop = () => line.close();
  signal.addEventListener('abort', stop);
  let timer: ReturnType<typeof setInterval> | undefined;
  try {
    if (!(await connects(line, server, signal))) return 'blocked';
    const began = performance.now();
    const asked = runs(messages, plan.seconds, line.answered, rates);
    const long = Math.max(...asked.map(lengthOf)) + line.answered + leastLate;
    const running: Stream[] = [];
    timer = setInterval(() => {
      const now = performance.now();
      if (now - line.heard > silence) line.end(`nothing came for ${silence / 1000} s`);
      const trip = running[2]?.exchanges.at(-1);
      const done = Math.min(1, (now - began) / long);
      glance({ done, ...(trip && { latency: (trip[3] - trip[0] - (trip[2] - trip[1])) / 1e6 }) });
    }, beat);
    const streams = await line.run(asked, running);
    if (signal.aborted) throw aborted(signal);
    if (line.over.happened) return { broken: line.reason };
    if (Math.min(...streams.map(({ counted }) => counted)) < leastMessages) {
      return { broken: `the line carries fewer than ${leastMessages} messages of a stream` };
    }
    return qualityFigures(streams[0]!, streams[1]!, streams[2]!);
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', stop);
    line.close();
  }
}

/** The least interval at which messages take one of so many parts of a rate, µs; 0: the rate is not known. */
function thin(rate: number | undefined, parts: number): number {
  const known = Math.floor(rate ?? 0);
  return known > 0 ? Math.min(mostInterval, Math.floor((size * 8 * parts * 1e6) / known)) : 0;
}

/**
 * The three streams of a test of so many seconds. A line that answers late (ms) gets fewer messages a second: else the window with which
 * SCTP begins would hold them back. A thin line gets fewer, too: else they would fill its queue.
 */
export function runs(messages: number, seconds: number, answered: number, rates: Rates): Run[] {
  const interval = Math.max(leastInterval, Math.floor((seconds * 1e6) / messages));
  const far = Math.floor((answered * 1000) / mostOnTheWay);
  const way = (stream: number, direction: 'up' | 'down', rate: number | undefined): Run => {
    const slow = Math.max(far, thin(rate, streamShare));
    if (slow <= interval) return { type: 'run', stream, direction, messages, interval_us: interval, size };
    const fewer = Math.min(messages, Math.max(leastMessages, Math.floor((messages * interval) / slow)));
    return { type: 'run', stream, direction, messages: fewer, interval_us: slow, size };
  };
  const [up, down] = [way(1, 'up', rates.up), way(2, 'down', rates.down)];
  const apart = Math.max(echoInterval, thin(rates.up, echoShare), thin(rates.down, echoShare));
  const long = Math.floor((up.messages * up.interval_us) / apart);
  const echoes = Math.max(leastMessages, Math.min(up.messages, long));
  return [up, down, { type: 'run', stream: 3, direction: 'echo', messages: echoes, interval_us: apart, size }];
}
