import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NetworkCheck, type NetworkCheckOptions, type Progress } from './check.ts';
import { CheckError } from './error.ts';
import type { Results } from './results.ts';
import { figureOf } from './results.ts';
import { stubPeer } from './testing/peer.ts';
import { type Behavior, serve } from './testing/server.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

interface Ended {
  results?: Results;
  error?: CheckError;
  /** ms */
  took: number;
  seen: Progress[];
}

/** Runs a check for at most a minute, in steps of 20 ms; nothing may be left of it. */
async function check(options: Partial<NetworkCheckOptions> = {}, abortAt = Number.POSITIVE_INFINITY): Promise<Ended> {
  const abort = new AbortController();
  const ended: Ended = { took: 0, seen: [] };
  let over = false;
  const began = performance.now();
  new NetworkCheck({ server: 'http://probe.test:8090', ...options })
    .run({ onProgress: (p) => ended.seen.push(p), signal: abort.signal })
    .then((results) => Object.assign(ended, { results }))
    .catch((error) => Object.assign(ended, { error }))
    .finally(() => {
      over = true;
      ended.took = performance.now() - began;
    });
  while (!over && performance.now() - began < 60_000) {
    await vi.advanceTimersByTimeAsync(20);
    if (performance.now() - began >= abortAt) abort.abort();
  }
  expect(over).toBe(true);
  await vi.advanceTimersByTimeAsync(100);
  expect(vi.getTimerCount()).toBe(0);
  return ended;
}

test.each<[string, unknown, Partial<NetworkCheckOptions>, object | undefined]>([
  [
    'is told of a server that names STUN servers',
    ['turn.example.com:3478'],
    {},
    { ipv4: 'no-answer', ipv6: 'no-answer' },
  ],
  ['is left out where it names none', undefined, {}, undefined],
  ['is left out where the plan says so', ['turn.example.com:3478'], { plan: { reach: false } }, undefined],
])('what is reached %s', async (_, stun, options, reached) => {
  serve({ stun });
  class Connection {
    onicecandidate: ((event: { candidate: unknown }) => void) | null = null;
    createDataChannel() {}
    async createOffer() {}
    async setLocalDescription() {
      this.onicecandidate?.({ candidate: null });
    }
    close() {}
  }
  vi.stubGlobal('RTCPeerConnection', Connection);
  const { results } = await check(options);
  if (reached) expect(results!.reachability).toMatchObject(reached);
  else expect(results).not.toHaveProperty('reachability');
});

test('a browser that refuses peer connections leaves out what needs them', async () => {
  stubPeer('forbidden');
  serve({ stun: ['turn.example.com:3478'], tests: ['ndt7', 'http', 'quality'] });
  const { results } = await check();
  expect(results).toMatchObject({ channel: 'blocked' });
  expect(results).not.toHaveProperty('reachability');
  expect(figureOf(results!.figures, 'throughput', 'up')! / 80e6).toBeCloseTo(1, 2);
});

test('a check measures both directions, in the order of its phases', async () => {
  const { sockets, asked } = serve();
  const { results, seen, took } = await check({ token: 'a b' });
  expect(new Set(seen.map(({ phase }) => phase))).toEqual(new Set(['baseline', 'download', 'upload', 'done']));
  const order = ['baseline', 'download', 'upload', 'done'];
  const places = seen.map(({ phase }) => order.indexOf(phase));
  expect(places).toEqual([...places].sort());
  expect(figureOf(results!.figures, 'throughput', 'down')! / 80e6).toBeCloseTo(1, 2);
  expect(figureOf(results!.figures, 'throughput', 'up')! / 80e6).toBeCloseTo(1, 2);
  expect(figureOf(results!.figures, 'baseline_rtt')).toBeCloseTo(0.01);
  expect(figureOf(results!.figures, 'loaded_rtt', 'down')).toBeCloseTo(0.03);
  expect(figureOf(results!.figures, 'loaded_rtt', 'up')).toBeCloseTo(0.025);
  expect(figureOf(results!.figures, 'path_mtu', 'down')).toBe(1500);
  // Foreign: 60 s by (11 + 12) / 2 ms; on the loaded connections: by 30 ms.
  expect(figureOf(results!.figures, 'responsiveness', 'down')).toBeCloseTo((60 / 0.0115 + 60 / 0.03) / 2, 0);
  expect(results).toMatchObject({
    version: 1,
    server: 'probe.test:8090',
    scores: { streaming: { points: 35, class: 'average' } },
  });
  expect(took).toBeLessThan(22_500);
  expect(sockets.map(({ url, protocol }) => [new URL(url).searchParams.get('access_token'), protocol])).toEqual(
    Array(8).fill(['a b', 'net.measurementlab.ndt.v7']),
  );
  for (const url of asked) expect(new URL(url).searchParams.get('access_token')).toBe('a b');
  const gauge = seen
    .filter(({ phase, done }) => phase === 'download' && done > 0.5)
    .map(({ throughput }) => throughput);
  for (const rate of gauge) expect(rate! / 80e6).toBeCloseTo(1, 1);
});

test('a server that answers on the loaded connections gives responsiveness with requests on them', async () => {
  const { waited } = serve({ responds: 60 });
  const { results } = await check();
  const { figures } = results!;
  for (const direction of ['down', 'up'] as const) {
    expect(figureOf(figures, 'request_responsiveness', direction)).toBeCloseTo((60 / 0.0115 + 60 / 0.06) / 2, 0);
    expect(figureOf(figures, 'throughput', direction)! / 80e6).toBeCloseTo(1, 2);
  }
  expect(figureOf(figures, 'responsiveness', 'down')).toBeCloseTo((60 / 0.0115 + 60 / 0.03) / 2, 0);
  // Four in each second of eight, each way; none has waited behind the load in the browser.
  expect(waited.length).toBeGreaterThan(50);
  expect(waited.length).toBeLessThanOrEqual(66);
  expect(Math.max(...waited)).toBe(0);
});

test('the ramp-up does not count', async () => {
  serve({ measures: () => '' });
  const slow = vi.spyOn(ArrayBuffer.prototype, 'byteLength', 'get');
  let calls = 0;
  // The first second brings nothing but single bytes.
  slow.mockImplementation(function (this: ArrayBuffer) {
    return calls++ < 4 * 20 ? 1 : 125_000;
  });
  const { results } = await check({ plan: { upload: false } });
  slow.mockRestore();
  expect(figureOf(results!.figures, 'throughput', 'down')! / 80e6).toBeCloseTo(1, 2);
  // A server that measures nothing leaves the rest out.
  expect(results!.figures.map(({ name }) => name)).toEqual(['throughput']);
});

describe('it ends in its time', () => {
  const ends = async (behavior: Partial<Behavior>, want: object, within: number) => {
    serve(behavior);
    const { error, took } = await check();
    expect(error).toBeInstanceOf(CheckError);
    expect(error).toMatchObject(want);
    expect(took).toBeLessThanOrEqual(within);
    return error!;
  };

  test('a server that accepts and is silent', () => ends({ answers: false }, { code: 'unreachable' }, 5_100));
  test('a server that opens no WebSocket', async () => {
    const error = await ends({ opens: 0 }, { code: 'unreachable' }, 7_000);
    expect(error.message).toContain('no WebSocket');
  });
  test.each([401, 403, 429, 503])('a server that refuses WebSockets with %i', async (status) => {
    const error = await ends(
      { opens: 0, status, retryAfter: '15' },
      { code: 'refused', status, retryAfter: 15 },
      7_000,
    );
    expect(error.message).toContain(`(${status})`);
  });
  test('a server that never says anything on its WebSockets', () =>
    ends({ silentAfter: 0, closes: undefined }, { code: 'stopped', results: { figures: [] } }, 7_500));
  test('a server that stops in the middle', () =>
    ends({ silentAfter: 5_000, closes: undefined }, { code: 'stopped' }, 12_500));
  test('a server that stops early', () => ends({ silentAfter: 3_000, closes: undefined }, { code: 'stopped' }, 10_500));
  test('a server that breaks off in the middle', () =>
    ends({ closes: { code: 1006, at: 5_000 } }, { code: 'stopped' }, 7_500));
  test('a budget of bytes that ends', () =>
    ends({ closes: { code: 1013, at: 3_000 } }, { code: 'refused', status: 429 }, 5_500));
  test('a budget of bytes that ends, with a WebSocket that has never opened', () =>
    ends({ opens: 3, closes: { code: 1013, at: 3_000 } }, { code: 'refused', status: 429 }, 10_500));
  test('a server that would go on for ever', async () => {
    serve({ closes: undefined });
    const { results, took } = await check();
    expect(figureOf(results!.figures, 'throughput', 'up')! / 80e6).toBeCloseTo(1, 2);
    expect(took).toBeLessThan(22_500);
  });
  test('a server that stops during the upload: the download is known', async () => {
    const { sockets } = serve();
    const running = check({ plan: { patience: 2 } });
    const stop = setInterval(() => {
      for (const s of sockets) if (s.direction === 'upload') Object.assign(s, { onmessage: null });
      if (sockets.length === 8) clearInterval(stop);
    }, 5);
    const { error } = await running;
    expect(error).toMatchObject({ code: 'stopped', results: { scores: { gaming: {} } } });
    expect(figureOf(error!.results!.figures, 'throughput', 'down')! / 80e6).toBeCloseTo(1, 2);
    expect(figureOf(error!.results!.figures, 'throughput', 'up')).toBeUndefined();
  });
});

test.each([5, 400, 1_520, 5_000, 13_000, 21_470])('a page ends it after %i ms', async (at) => {
  const { sockets } = serve();
  const { error, took } = await check({}, at);
  expect(error).toMatchObject({ name: 'CheckError', code: 'aborted' });
  expect(took).toBeLessThanOrEqual(at + 40);
  for (const s of sockets) expect(s.readyState).toBe(3);
});

test('texts without end, and texts that are too long, close their connection', async () => {
  const { sockets } = serve({ measures: () => 'x'.repeat(65_537) });
  const { error } = await check();
  expect(error).toMatchObject({ code: 'stopped' });
  expect(sockets.every(({ readyState }) => readyState === 3)).toBe(true);
});

test('what is out of its bounds is refused with words', () => {
  const make = (options: object) => () => new NetworkCheck({ server: 'https://p.test', ...options });
  expect(make({ server: 'wss://p.test' })).toThrow(TypeError);
  expect(make({ server: 'nothing' })).toThrow(TypeError);
  expect(make({ plan: { connections: 0 } })).toThrow(/connections is 0/);
  expect(make({ plan: { connections: 1.5 } })).toThrow(RangeError);
  expect(make({ plan: { seconds: Number.NaN } })).toThrow(/seconds/);
  expect(make({ plan: { seconds: 2, rampUp: 2 } })).toThrow(/ramp-up/);
});
