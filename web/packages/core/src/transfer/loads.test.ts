import { expect, it } from 'vitest';
import { createCache } from '../cache/cache.ts';
import type { Certificate } from '../certificate/index.ts';
import type { ByteRange, OriginResult, SegmentResult } from '../ports.ts';
import { pieceSize } from '../segment/index.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createCredit } from './credit.ts';
import { createLine } from './line.ts';
import { createLoads } from './loads.ts';
import { type Load, newSegment } from './segments.ts';
import type { Shared } from './shared.ts';

const pieces = 8;
const length = pieces * pieceSize;
const ref = { url: 'https://video.example.com/film/1.ts', startMs: 0, durationMs: 4_000 };

/** A segment of which half is in hand, and the other half is asked of the origin. */
const setUp = () => {
  const clock = new FakeClock();
  const s = newSegment('id', 'name', ref, 'r', 1_000_000);
  s.certificate = { length } as Certificate;
  s.state = 'held';
  const cache = createCache(
    2 * length,
    () => true,
    () => {},
  );
  cache.open(s.id, length);
  for (let n = 0; n < pieces / 2; n++) cache.put(s.id, n, new Uint8Array(pieceSize));
  const shared = {
    clock,
    stats: createStats(),
    line: createLine(clock),
    credit: createCredit(clock),
    segments: { byId: new Map() },
    cache,
    peers: { all: () => [], cancel: () => {}, outdone: () => {}, announce: () => {} },
    off: null,
    stopped: false,
    nowUs: () => clock.now() * 1000,
    emit: () => {},
    settled: (p: Promise<unknown>) => void p,
    changed: () => {},
  } as unknown as Shared;
  const asked: { range?: ByteRange; answer: (result: OriginResult) => void }[] = [];
  const results: SegmentResult[] = [];
  const loads = createLoads(shared, { fromOrigin: async () => true, played: () => {}, lost: () => {} });
  loads.ask(s, {
    request: {
      ...ref,
      origin: (_signal: AbortSignal, _tell: unknown, range?: ByteRange) =>
        new Promise<OriginResult>((answer) => asked.push({ range, answer })),
    },
    onProgress: () => {},
    resolve: (result: SegmentResult) => results.push(result),
    reject: () => {},
    startedMs: 0,
  } as unknown as Load);
  loads.startOrigin(s, 'urgent');
  /** The origin sends what it was asked for last. */
  const answer = async () => {
    const { range, answer } = asked.at(-1)!;
    const size = range ? range.last - range.first + 1 : length;
    answer({ data: new ArrayBuffer(size), status: range ? 206 : 200, url: ref.url });
    await settle();
  };
  return { shared, asked, results, answer };
};

it('has the schedule decide about the rest once a part has come', async () => {
  const { asked, results, answer } = setUp();
  expect(asked.map(({ range }) => range)).toEqual([{ first: length / 2, last: length - 1 }]);
  await answer();
  expect([asked.length, results.length]).toEqual([1, 0]);
});

it.each([
  ['the engine has stopped', { stopped: true }],
  ['peer delivery is off', { off: 'policy' }],
])('asks the origin for the whole once a part has come and %s', async (_, state) => {
  const { shared, asked, results, answer } = setUp();
  Object.assign(shared, state);
  await answer();
  expect(asked.map(({ range }) => !!range)).toEqual([true, false]);
  await answer();
  expect(results).toMatchObject([{ source: 'origin', bytes: { origin: length } }]);
});
