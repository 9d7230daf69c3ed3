import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CheckError } from '../error.ts';
import { planOf } from '../plan.ts';
import { figureOf } from '../results.ts';
import { Server } from '../server.ts';
import { type PeerBehavior, stubPeer } from '../testing/peer.ts';
import { serve } from '../testing/server.ts';
import { type Quality, qualityFigures } from './figures.ts';
import { event, Stream } from './stream.ts';
import { type QualityOutcome, runs, testQuality } from './test.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function quality(behavior: PeerBehavior, abortAt = Number.POSITIVE_INFINITY, status = 200) {
  serve({ status });
  const peer = stubPeer(behavior);
  const abort = new AbortController();
  const server = new Server('http://probe.test', undefined, 5);
  let outcome: QualityOutcome | undefined;
  let error: CheckError | undefined;
  let over = false;
  const began = performance.now();
  const glances: number[] = [];
  const glance = ({ latency }: { latency?: number }) => latency !== undefined && glances.push(latency);
  testQuality({ server, plan: planOf({ seconds: 4 }), rates: {}, signal: abort.signal, glance })
    .then((o) => {
      outcome = o;
    })
    .catch((e) => {
      error = e;
    })
    .finally(() => {
      over = true;
    });
  while (!over && performance.now() - began < 60_000) {
    await vi.advanceTimersByTimeAsync(20);
    if (performance.now() - began >= abortAt) abort.abort();
  }
  expect(over).toBe(true);
  expect(peer.closed()).toBe(true);
  return { outcome, error, took: performance.now() - began, glances };
}

test('each way has its own loss, and the round trip none', async () => {
  const { outcome, took, glances } = await quality('lossy');
  const { figures, oneWay } = outcome as Quality;
  expect(figureOf(figures, 'loss', 'up')).toBe(0.1);
  expect(figureOf(figures, 'loss', 'down')).toBe(0.2);
  expect(figureOf(figures, 'loss', 'round-trip')).toBe(0);
  expect(figureOf(figures, 'loss_distance', 'up')).toBe(10);
  expect(figureOf(figures, 'loss_distance', 'down')).toBe(1);
  expect(figureOf(figures, 'loss_period', 'down')).toBe(2);
  expect(figureOf(figures, 'reordered', 'down')).toBe(0);
  expect(figureOf(figures, 'round_trip')).toBeCloseTo(0.05, 2);
  // Half of a round trip of 50 ms is more than half of either way.
  expect(oneWay).toBe('clock');
  expect(figureOf(figures, 'one_way_delay')).toBeUndefined();
  expect(took).toBeLessThan(9_000);
  for (const latency of glances) expect(latency).toBeCloseTo(0.05, 2);
  expect(glances.length).toBeGreaterThan(30);
});

test('a line that takes messages slowly has lost none of them, and none waits in the browser for long', async () => {
  const { outcome, took } = await quality('narrow');
  const { figures } = outcome as Quality;
  for (const way of ['up', 'down', 'round-trip'] as const) expect(figureOf(figures, 'loss', way)).toBe(0);
  // 50 ms, and four messages of 100 ms each before it.
  expect(figureOf(figures, 'round_trip')).toBeLessThanOrEqual(0.46);
  expect(took).toBeLessThan(14_000); // its time, what it may be late, and what the server waits
});

test('on a far line a message down is waited for as long as one that comes back', async () => {
  const { outcome, took } = await quality('far');
  const { figures } = outcome as Quality;
  expect(figureOf(figures, 'loss', 'down')).toBe(0);
  expect(took).toBeLessThan(4_000 + 4 * 1_520 + 1_000);
});

describe('it ends in its time', () => {
  test('where no channel opens', async () => {
    const { outcome, took } = await quality('never');
    expect(outcome).toBe('blocked');
    expect(took).toBeLessThanOrEqual(10_200);
  });
  test.each(['forbidden', 'picky'] as const)('where the browser lets no channel open (%s)', async (behavior) => {
    const { outcome, took } = await quality(behavior);
    expect(outcome).toBe('blocked');
    expect(took).toBeLessThanOrEqual(200);
  });
  test('where nothing comes', async () => {
    const { outcome, took } = await quality('silent');
    expect(outcome).toEqual({ broken: 'nothing came for 12 s' });
    expect(took).toBeLessThanOrEqual(12_500);
  });
  test('where the line takes no messages', async () => {
    const { outcome, took } = await quality('stuck');
    expect(outcome).toEqual({ broken: 'the line carries fewer than 10 messages of a stream' });
    expect(took).toBeLessThanOrEqual(14_000);
  });
  test('where its streams are refused', async () => {
    const { outcome, took } = await quality('refusing');
    expect(outcome).toEqual({ broken: 'so many (limit)' });
    expect(took).toBeLessThanOrEqual(500);
  });
  test('where the offer is', async () => {
    const { error } = await quality('lossy', Number.POSITIVE_INFINITY, 429);
    expect(error).toMatchObject({ code: 'refused', status: 429 });
  });
  test.each([5, 60, 1_000, 4_500])('a page ends it after %i ms', async (at) => {
    const { error, took } = await quality('lossy', at);
    expect(error).toMatchObject({ code: 'aborted' });
    expect(took).toBeLessThanOrEqual(at + 60);
  });
});

test('a stream keeps no more than it can have', () => {
  const stream = new Stream({ type: 'run', stream: 1, direction: 'down', messages: 2, interval_us: 1000, size: 16 });
  for (let i = 0; i < 200; i++) stream.arrived({ type: 'probe', stream: 1, sequence: 0, sent: 1 }, i);
  expect(stream.arrivals.length).toBe(66);
  stream.record(Array(100).fill([0, 1, 2]));
  stream.record(Array(100).fill([0, 1, 2]));
  expect(stream.told.length).toBe(66);
  const other = new Stream({ type: 'run', stream: 2, direction: 'down', messages: 2, interval_us: 1000, size: 16 });
  for (const sequence of [4, 3, 1, 9, 2]) other.arrived({ type: 'probe', stream: 2, sequence, sent: 1 }, 5);
  expect([other.arrivals.map(([n]) => n), other.whole.happened]).toEqual([[1], false]);
  other.arrived({ type: 'probe', stream: 2, sequence: 0, sent: 1 }, 6);
  expect(other.whole.happened).toBe(true);
  other.close();
  other.arrived({ type: 'probe', stream: 2, sequence: 1, sent: 1 }, 7);
  expect(other.arrivals.map(([n]) => n)).toEqual([1, 0]);
});

test('a delay of one way is given where it exceeds what the clocks leave open', () => {
  const run = (direction: 'up' | 'down' | 'echo') =>
    new Stream({ type: 'run', stream: 1, direction, messages: 100, interval_us: 1000, size: 32 });
  const [up, down, echo] = [run('up'), run('down'), run('echo')];
  for (let i = 0; i < 100; i++) {
    up.record([[i, i * 1000, i * 1000 + 7_000_000 + 80_000]]);
    down.arrived({ type: 'probe', stream: 1, sequence: i, sent: i * 1000 + 7_000_000 }, i * 1000 + 2_000);
    const received = i * 1000 + 7_000_000 + 2_000;
    echo.arrived(
      { type: 'echo', stream: 1, sequence: i, sent: i * 1000, received, echoed: received },
      i * 1000 + 4_000,
    );
  }
  const { figures, oneWay } = qualityFigures(up, down, echo);
  expect(oneWay).toBeUndefined();
  expect(figureOf(figures, 'one_way_delay', 'up')).toBeCloseTo(0.08, 3);
  expect(figureOf(figures, 'one_way_delay', 'down')).toBeUndefined();
});

test('an event happens once, or is given up', async () => {
  const e = event();
  const late = e.within(10);
  await vi.advanceTimersByTimeAsync(11);
  expect(await late).toBe(false);
  const soon = e.within(10);
  e.happen();
  expect([await soon, await e.within(0), vi.getTimerCount()]).toEqual([true, true, 0]);
});

interface RunsVector {
  of: { messages: number; ms: number; answered_ms: number; up?: number; down?: number };
  messages: number;
  interval_us: number;
  down?: { messages: number; interval_us: number };
  echoes: number;
  echo_interval_us?: number;
}
const vectors = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/quality.json', import.meta.url), 'utf8'),
) as { runs: RunsVector[] };

test.each(
  vectors.runs,
)('runs of $of.messages messages and $of.ms ms, answered after $of.answered_ms, $of.up bit/s up', (c) => {
  const { up, down } = c.of;
  const way = { messages: c.messages, interval_us: c.interval_us };
  expect(runs(c.of.messages, c.of.ms / 1000, c.of.answered_ms, { up, down })).toMatchObject([
    way,
    c.down ?? way,
    { messages: c.echoes, interval_us: c.echo_interval_us ?? 50_000 },
  ]);
});
