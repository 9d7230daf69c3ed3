import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NetworkCheck, type NetworkCheckOptions, type Progress } from './check.ts';
import type { CheckError } from './error.ts';
import { fastest } from './free.ts';
import { planOf } from './plan.ts';
import { figureOf, type Results } from './results.ts';
import { lineRate } from './testing/lane.ts';
import { type PeerBehavior, stubPeer } from './testing/peer.ts';
import { type Behavior, serve } from './testing/server.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const tests = ['ndt7', 'http', 'quality', 'gives-way'];

/** Runs a check that gives way, for at most a minute; nothing may be left of it. */
async function check(
  peer: PeerBehavior,
  server: Partial<Behavior> = {},
  plan: NetworkCheckOptions['plan'] = {},
  abortAt = Number.POSITIVE_INFINITY,
) {
  const { sockets, asked } = serve({ tests, ...server });
  const { closed } = stubPeer(peer);
  const abort = new AbortController();
  let results: Results | undefined;
  let error: CheckError | undefined;
  let took = 0;
  let over = false;
  const seen: Progress[] = [];
  const began = performance.now();
  new NetworkCheck({ server: 'http://probe.test', plan: { givesWay: true, seconds: 4, idle: 0, ...plan } })
    .run({ onProgress: (p) => seen.push(p), signal: abort.signal })
    .then((r) => {
      results = r;
    })
    .catch((e) => {
      error = e;
    })
    .finally(() => {
      over = true;
      took = performance.now() - began;
    });
  while (!over && performance.now() - began < 60_000) {
    await vi.advanceTimersByTimeAsync(20);
    if (performance.now() - began >= abortAt) abort.abort();
  }
  expect(over).toBe(true);
  expect(sockets).toEqual([]); // no test by TCP
  await vi.advanceTimersByTimeAsync(11_000);
  expect(vi.getTimerCount()).toBe(0);
  return { results, error, took, seen, closed: closed(), asked };
}

test.each([
  ['192.0.2.7', 1253],
  ['2001:db8::7', 1273],
])('what is free is found each way, as packets of the family of %s', async (client, packet) => {
  const { results, seen, took, closed, asked } = await check('lossy', { client });
  const line = (lineRate * 8000 * packet) / 1156;
  expect(results!.figures.map(({ name, direction, unit, source }) => [name, direction, unit, source])).toEqual([
    ['free_capacity', 'down', 'bit/s', 'lane'],
    ['free_capacity', 'up', 'bit/s', 'lane'],
  ]);
  for (const direction of ['down', 'up'] as const) {
    const part = figureOf(results!.figures, 'free_capacity', direction)! / line;
    expect(part).toBeGreaterThan(0.9);
    expect(part).toBeLessThan(1.01);
    const most = Math.max(...seen.filter((p) => p.direction === direction).map(({ throughput = 0 }) => throughput));
    expect(most / line).toBeGreaterThan(0.9);
  }
  expect(new Set(seen.map(({ phase }) => phase))).toEqual(new Set(['baseline', 'download', 'upload', 'done']));
  // How soon the server answers meanwhile is seen, by few requests: they are load, too.
  for (const direction of ['down', 'up']) {
    expect(seen.find((p) => p.direction === direction && p.latency !== undefined)?.latency).toBe(0.012);
    const small = asked.filter((url) => url.includes(`/small?beside-${direction}=`));
    expect(small.length).toBeGreaterThan(5);
    expect(small.length).toBeLessThanOrEqual(10);
  }
  expect(results).not.toHaveProperty('channel');
  expect(took).toBeLessThan(2 * 4_000 + 1_000);
  expect(closed).toBe(true);
});

describe('it ends in its time', () => {
  test.each([
    ['no channel opens', 'never', 10_500],
    ['the browser refuses connections', 'forbidden', 500],
  ] as const)('where %s: the result says so, and the way up is not tried', async (_, behavior, within) => {
    const { results, took, seen } = await check(behavior);
    expect(results).toMatchObject({ channel: 'blocked', figures: [] });
    expect(seen.some(({ phase }) => phase === 'upload')).toBe(false);
    expect(took).toBeLessThan(within);
  });
  test.each<[string, PeerBehavior, RegExp, number]>([
    ['the server does not begin', 'silent', /does not begin/, 15_500],
    ['the load is refused', 'refusing', /so many \(limit\)/, 500],
    ['nothing passes any more', 'stalling', /nothing comes/, 7_000],
    ['the server breaks the rules', 'rude', /must not/, 1_500],
  ])('where %s', async (_, peer, words, within) => {
    const { error, took, closed } = await check(peer, {}, { patience: 5, seconds: 10 });
    expect(error).toMatchObject({ code: 'stopped', results: { figures: [] } });
    expect(error!.message).toMatch(words);
    expect(took).toBeLessThan(within);
    expect(closed).toBe(true);
  });
  test('where the server has no such loads', async () => {
    const { error } = await check('lossy', { tests: ['ndt7', 'quality'] });
    expect(error).toMatchObject({ code: 'refused', status: 404 });
  });
  test('where the offer is refused', async () => {
    const { error } = await check('lossy', { status: 429 });
    expect(error).toMatchObject({ code: 'refused', status: 429 });
  });
  test('where the address may have no more bytes', async () => {
    const { error, took } = await check('spent');
    expect(error).toMatchObject({ code: 'refused', status: 429 });
    expect(took).toBeLessThan(500);
  });
  test.each([60, 1_000, 5_000])('a page ends it after %i ms', async (at) => {
    const { error, took } = await check('lossy', {}, {}, at);
    expect(error).toMatchObject({ code: 'aborted' });
    expect(took).toBeLessThanOrEqual(at + 60);
  });
});

test('one way alone, and the quality test where it is asked for', async () => {
  const { results } = await check('lossy', {}, { download: false, quality: true });
  expect(figureOf(results!.figures, 'free_capacity', 'up')).toBeGreaterThan(0);
  expect(figureOf(results!.figures, 'free_capacity', 'down')).toBeUndefined();
  expect(figureOf(results!.figures, 'loss', 'up')).toBe(0.1);
});

test('the fastest two seconds count', () => {
  expect(fastest([])).toBe(0);
  expect(fastest([[0, 0]])).toBe(0);
  expect(
    fastest([
      [0, 0],
      [1_900_000, 9e6],
    ]),
  ).toBe(0);
  const came = [0, 1, 2, 3, 4, 5, 6].map((s) => [s * 1e6, [0, 1, 3, 6, 8, 9, 9][s]! * 1e6] as const);
  expect(fastest(came)).toBe(5e6 * 4);
  // A gap longer than two seconds is all one rate.
  expect(
    fastest([
      [0, 0],
      [4e6, 4e6],
    ]),
  ).toBe(8e6);
});

test('the plan of a check that gives way', () => {
  expect(planOf({ givesWay: true })).toMatchObject({ download: true, upload: true, quality: false, reach: false });
  expect(planOf({ givesWay: true, reach: true })).toMatchObject({ quality: false, reach: true });
  expect(planOf({ givesWay: true, seconds: 2, rampUp: 2 }).seconds).toBe(2);
  expect(() => planOf({ givesWay: true, seconds: 1.9 })).toThrow(/two seconds/);
});
