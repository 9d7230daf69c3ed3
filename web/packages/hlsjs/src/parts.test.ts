/** Requests of a player of low latency, for parts of segments (spec/parts.md). */

import { beforeEach, expect, test, vi } from 'vitest';
import type { FragmentContext, FragmentLike, HlsLike, LoaderCallbacks, PartLike } from './hls.ts';
import { wrapLoader } from './loader.ts';
import { FakeHls, FakeMedia, FakePlayback, PreviousLoader, settle, TestClock } from './testing.ts';

const partSeconds = 0.5;

const fragment = (sn: number, more: object = {}): FragmentLike => ({
  sn,
  start: sn * 2,
  duration: 2,
  level: 1,
  type: 'main',
  url: `https://cdn/${sn}.m4s`,
  baseurl: `https://cdn/index.m3u8?t=1&_HLS_msn=${sn}&_HLS_part=1`,
  ...more,
});

/** As the class of hls.js: where it begins is asked of its fragment, which is moved when its timestamps are known. */
const part = (of: FragmentLike, index: number, more: object = {}): PartLike => ({
  fragment: of,
  index,
  duration: partSeconds,
  url: `https://cdn/${of.sn}.${index}.m4s`,
  get start() {
    return of.start + index * partSeconds;
  },
  ...more,
});

function setUp(more: object = {}) {
  const clock = new TestClock();
  const hls = new FakeHls();
  const media = new FakeMedia();
  media.buffered = { length: 1 };
  hls.media = media as unknown as HTMLMediaElement;
  const playback = new FakePlayback();
  const whole = fragment(5);
  const growing = fragment(6, { url: '' });
  const details = {
    live: true,
    targetduration: 2,
    fragments: [fragment(4), whole],
    partList: [0, 1, 2, 3].map((i) => part(whole, i)).concat(part(growing, 0)),
  };
  hls.levels[1]!.details = details;
  const Loader = wrapLoader(PreviousLoader, {
    hls: hls as unknown as HlsLike,
    clock,
    playback: () => playback,
    caught(where, error) {
      throw new Error(where, { cause: error });
    },
  });
  const loader = new Loader(hls.config);
  const asked = part(growing, 0, more);
  const { byteRangeStartOffset, byteRangeEndOffset } = asked;
  const context: FragmentContext = {
    frag: growing,
    part: asked,
    url: asked.url,
    headers: {},
    rangeStart: byteRangeStartOffset ?? 0,
    rangeEnd: byteRangeEndOffset ?? 0,
  };
  const callbacks = {
    onSuccess: vi.fn(),
    onError: vi.fn(),
    onTimeout: vi.fn(),
    onAbort: vi.fn(),
  } satisfies LoaderCallbacks;
  loader.load(context, { loadPolicy: { maxLoadTimeMs: 20_000 } }, callbacks);
  return { clock, hls, media, playback, details, growing, loader, callbacks, request: playback.request! };
}

beforeEach(() => {
  PreviousLoader.made = [];
});

test('a part is asked for as one, with what the playlist lists', () => {
  const { request, details, growing, media } = setUp();
  media.currentTime = 10.75;
  expect(request).toMatchObject({
    url: 'https://cdn/6.0.m4s',
    startMs: 12_000,
    durationMs: 500,
    track: 'main',
    playlist: 'https://cdn/index.m3u8?t=1&_HLS_msn=6&_HLS_part=1',
    live: true,
    // The segments after it are not loaded: their parts are.
    upcoming: [],
    part: { sequence: 6, index: 0 },
  });
  expect(request.deadlineMs()).toBe(1_250);
  const names = () => request.part!.listed().map(({ sequence, index }) => `${sequence}.${index}`);
  expect(names()).toEqual(['5.0', '5.1', '5.2', '5.3', '6.0']);
  expect(request.part!.listed()[1]).toEqual({
    sequence: 5,
    index: 1,
    url: 'https://cdn/5.1.m4s',
    startMs: 10_500,
    durationMs: 500,
  });
  // Meanwhile the playlist has grown, and the timeline has moved.
  details.partList = [...details.partList.slice(2), part(growing, 1)];
  growing.start += 0.25;
  expect(names()).toEqual(['5.2', '5.3', '6.0', '6.1']);
  expect(request.deadlineMs()).toBe(1_500);
});

test('of a part that is a range of its segment the range is told, and the ranges of the others', () => {
  const { request, details, growing } = setUp({
    url: 'https://cdn/6.m4s',
    byteRangeStartOffset: 0,
    byteRangeEndOffset: 900,
  });
  details.partList = [
    part(growing, 0, { url: 'https://cdn/6.m4s', byteRangeStartOffset: 0, byteRangeEndOffset: 900 }),
    part(growing, 1, { url: 'https://cdn/6.m4s', byteRangeStartOffset: 900, byteRangeEndOffset: 1_400 }),
  ];
  expect(request).toMatchObject({ url: 'https://cdn/6.m4s', range: { first: 0, last: 899 } });
  expect(request.part!.listed().map(({ range }) => range)).toEqual([
    { first: 0, last: 899 },
    { first: 900, last: 1_399 },
  ]);
});

test('of a playlist without parts, or that is gone, nothing is listed', () => {
  const { request, hls, details } = setUp();
  Object.assign(details, { partList: null });
  expect(request.part!.listed()).toEqual([]);
  delete hls.levels[1]!.details;
  expect(request.part!.listed()).toEqual([]);
});

test('runs of its pieces are fetched at once, each by a loader of its own that is done with at its end', async () => {
  const { request, loader, playback } = setUp();
  const stop = new AbortController();
  const runs = [
    { first: 0, last: 16_383 },
    { first: 49_152, last: 65_535 },
  ].map((run) => request.origin(stop.signal, () => {}, run));
  const [, first, second] = PreviousLoader.made;
  expect([first, second].map((made) => made!.context)).toMatchObject([
    { rangeStart: 0, rangeEnd: 16_384 },
    { rangeStart: 49_152, rangeEnd: 65_536 },
  ]);
  second!.succeed(16_384);
  await expect(runs[1]).resolves.toMatchObject({ transferMs: 150 });
  await settle();
  expect([first!.destroyed, second!.destroyed]).toEqual([false, true]);
  // The player takes the request back.
  playback.reject = () => {};
  loader.destroy();
  expect(playback.aborts).toBe(1);
  stop.abort();
  await expect(runs[0]).rejects.toBeDefined();
  await settle();
  expect([first!.aborted, first!.destroyed]).toEqual([1, true]);
  // A loader of the page may have thrown away what it would abort.
  expect(second!.aborted).toBe(0);
});

test('pieces from the origin by runs are told as the line’s capacity, all of the part by its own timing', async () => {
  for (const whole of [false, true]) {
    PreviousLoader.made = [];
    const { clock, request, playback, callbacks } = setUp();
    playback.bps = 8_000_000;
    const { signal } = new AbortController();
    const fetched = request.origin(signal, () => {}, whole ? undefined : { first: 0, last: 49_999 });
    PreviousLoader.made[1]!.succeed(50_000);
    const { data } = await fetched;
    playback.resolve({ data, source: 'origin', reason: 'urgent', bytes: { origin: 50_000, seed: 0, peer: 0 } });
    await settle();
    const [, stats, , network] = callbacks.onSuccess.mock.calls[0]!;
    const capacity = { start: clock.time - 100, first: clock.time - 50, end: clock.time };
    expect(stats.loading).toEqual(whole ? { start: 100, first: 150, end: 300 } : capacity);
    expect(network).toBe(whole ? 'xhr' : null);
  }
});
