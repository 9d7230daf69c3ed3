/** The quality test: loss, order and delay each way (spec/probe.md, A check in a browser). */
import { aborted } from '../error.ts';
import type { Plan } from '../plan.ts';
import type { Server } from '../server.ts';
import type { Run } from '../wire/control.ts';
import { silence } from '../wire/quality.ts';
import { type Quality, qualityFigures } from './figures.ts';
import { connects, Line } from './line.ts';
import type { Stream } from './stream.ts';

const messages = 1000;
const size = 600; // bytes: no two of them fit into a packet
const leastInterval = 2_000; // µs
const leastMessages = 10;
const mostOnTheWay = 40; // messages of a stream
const echoInterval = 50_000; // µs
const beat = 100; // ms

export interface QualityTest {
  server: Server;
  plan: Plan;
  signal: AbortSignal;
  glance(now: { done: number; latency?: number }): void;
}

/** blocked: no data channel opens. broken: it ended early, and why. */
export type QualityOutcome = Quality | 'blocked' | { broken: string };

/** Rejects with a `CheckError` where the server refuses it, or the page ends it. */
export async function testQuality({ server, plan, signal, glance }: QualityTest): Promise<QualityOutcome> {
  if (typeof RTCPeerConnection === 'undefined') return 'blocked';
  const line = new Line();
  const stop = () => line.close();
  signal.addEventListener('abort', stop);
  let timer: ReturnType<typeof setInterval> | undefined;
  try {
    if (!(await connects(line, server, signal))) return 'blocked';
    const began = performance.now();
    const running: Stream[] = [];
    timer = setInterval(() => {
      const now = performance.now();
      if (now - line.heard > silence) line.end(`nothing came for ${silence / 1000} s`);
      const trip = running[2]?.exchanges.at(-1);
      const done = Math.min(1, (now - began) / (plan.seconds * 1000 + 1000));
      glance({ done, ...(trip && { latency: (trip[3] - trip[0] - (trip[2] - trip[1])) / 1e6 }) });
    }, beat);
    const streams = await line.run(runs(messages, plan.seconds, line.answered), running);
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

/**
 * The three streams of a test of so many seconds. A line that answers late (ms) has fewer messages a second, so that the window with
 * which SCTP begins does not hold them back.
 */
export function runs(messages: number, seconds: number, answered: number): Run[] {
  let interval = Math.max(leastInterval, Math.floor((seconds * 1e6) / messages));
  const far = Math.floor((answered * 1000) / mostOnTheWay);
  if (far > interval) {
    messages = Math.min(messages, Math.max(leastMessages, Math.floor((messages * interval) / far)));
    interval = far;
  }
  const echoes = Math.max(leastMessages, Math.min(messages, Math.floor((messages * interval) / echoInterval)));
  return [
    { type: 'run', stream: 1, direction: 'up', messages, interval_us: interval, size },
    { type: 'run', stream: 2, direction: 'down', messages, interval_us: interval, size },
    { type: 'run', stream: 3, direction: 'echo', messages: echoes, interval_us: echoInterval, size },
  ];
}
