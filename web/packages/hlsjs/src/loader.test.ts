import { deadlineMs } from '@leeway/core';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { FragmentContext, HlsLike, LoaderCallbacks } from './hls.ts';
import { reportCapacity, wrapLoader } from './loader.ts';
import { upcomingOf } from './position.ts';
import { FakeHls, FakeMedia, FakePlayback, newStats, PreviousLoader, settle, TestClock } from './testing.ts';

const frag = (sn: number | 'initSegment', more: object = {}) => ({
  sn,
  start: typeof sn === 'number' ? sn * 4 : 0,
  duration: 4,
  level: 1,
  type: 'main',
  url: `https://cdn/${sn}.ts`,
  ...more,
});

function setUp(context: Partial<FragmentContext> = {}) {
  const clock = new TestClock();
  const hls = new FakeHls();
  const playback = new FakePlayback();
  const caught = vi.fn();
  const Loader = wrapLoader(PreviousLoader, {
    hls: hls as unknown as HlsLike,
    clock,
    playback: () => playback,
    caught,
  });
  const loader = new Loader(hls.config);
  const own: FragmentContext = { frag: frag(5), part: null, url: 'https://cdn/5.ts', headers: {}, ...context };
  const callbacks = {
    onSuccess: vi.fn(),
    onError: vi.fn(),
    onTimeout: vi.fn(),
    onAbort: vi.fn(),
    onProgress: vi.fn(),
  } satisfies LoaderCallbacks;
  const load = () => loader.load(own, { loadPolicy: { maxLoadTimeMs: 20_000 } }, callbacks);
  // What hls.js does before it loads.
  const stats = loader.stats;
  return { clock, hls, playback, caught, loader, own, callbacks, load, stats };
}

beforeEach(() => {
  PreviousLoader.made = [];
});

describe('the fragment loader', () => {
  test('fetches a part of a fragment with the loader that was there, by its range', async () => {
    const { load, playback, own } = setUp({ headers: { 'x-own': '1' } });
    load();
    const controller = new AbortController();
    const fetched = playback.request!.origin(controller.signal, () => {}, { first: 16_384, last: 49_151 });
    const made = PreviousLoader.made.at(-1)!;
    expect(made.context).toMatchObject({
      url: `${own.url}#cmcd`,
      headers: { 'x-own': '1' },
      rangeStart: 16_384,
      rangeEnd: 49_152,
    });
    made.callbacks!.onSuccess(
      { url: own.url, data: new ArrayBuffer(32_768), code: 206 },
      made.stats,
      made.context!,
      null,
    );
    expect((await fetched).data.byteLength).toBe(32_768);
    // The fragment's own context stays as it was: the next request may be for all of it.
    expect(own.rangeEnd).toBeUndefined();
  });

  test('fetches what is beside the playlist with the loader that was there', async () => {
    const list = 'https://cdn/index.m3u8.leeway?t=1';
    const { load, playback, own, stats } = setUp({ headers: { 'x-own': '1' }, rangeStart: 100, rangeEnd: 300 });
    load();
    playback.request!.origin(new AbortController().signal, () => {}).catch(() => {});
    const media = PreviousLoader.made.at(-1)!;
    const controller = new AbortController();
    const progress = vi.fn();
    const fetched = playback.request!.beside!(list, controller.signal, progress);
    const made = PreviousLoader.made.at(-1)!;
    expect(made).not.toBe(media);
    expect(made.context).toMatchObject({ url: `${list}#cmcd`, headers: { 'x-own': '1' }, rangeEnd: 0 });
    made.succeed(500);
    expect((await fetched).data.byteLength).toBe(500);
    // It is no part of the fragment: neither its context nor its timing.
    expect([own.url, own.rangeEnd, stats.loaded]).toEqual(['https://cdn/5.ts', 300, 0]);
    const again = playback.request!.beside!(list, controller.signal, progress);
    controller.abort();
    await expect(again).rejects.toBeDefined();
    expect([PreviousLoader.made.at(-1)!.aborted, media.aborted]).toEqual([1, 0]);
  });

  test('asks by name, range, position and rendition', () => {
    const { load, playback, hls } = setUp({
      rangeStart: 100,
      rangeEnd: 300,
      frag: frag(5, { baseurl: 'https://cdn/index.m3u8?t=1' }),
    });
    const media = new FakeMedia();
    media.buffered = { length: 1 };
    media.currentTime = 12;
    media.playbackRate = 2;
    hls.media = media as unknown as HTMLMediaElement;
    hls.levels[1]!.details = {
      fragments: [frag(4), frag(5), frag(6, { byteRangeStartOffset: 0, byteRangeEndOffset: 10 }), frag(7)],
    };
    load();
    expect(playback.request).toMatchObject({
      url: 'https://cdn/5.ts',
      range: { first: 100, last: 299 },
      startMs: 20_000,
      durationMs: 4_000,
      rendition: 'main-1',
      playlist: 'https://cdn/index.m3u8?t=1',
      bitrate: 1_500_000,
      adaptive: true,
      upcoming: [
        { url: 'https://cdn/6.ts', startMs: 24_000, durationMs: 4_000, range: { first: 0, last: 9 } },
        { url: 'https://cdn/7.ts' },
      ],
    });
    expect(playback.request!.deadlineMs()).toBe(4_000);
    media.currentTime = 22;
    expect(playback.request!.deadlineMs()).toBe(0);
  });

  test.each([
    ['by its clock', { programDateTime: 1_800_000_000_000 }, { live: true, targetduration: 6 }, 1_799_999_980_000],
    ['by its numbers', {}, { live: true, targetduration: 6 }, 5 * 6_000 - 20_000],
    ['without one, as all begin alike', { programDateTime: 1_800_000_000_000 }, { live: false, targetduration: 6 }, 0],
    [
      'by numbers that are a date',
      { sn: 20_261_129_184_500 },
      { live: true, targetduration: 6 },
      2_775_107_000_000 - 20_000,
    ],
  ])('a moment of a stream is one that all its viewers mean: %s', (_, more, details, zeroMs) => {
    const { load, playback, hls } = setUp({ frag: frag(5, more) });
    hls.levels[1]!.details = { fragments: [frag(5)], ...details };
    load();
    expect(playback.request).toMatchObject({ startMs: 20_000, live: details.live, zeroMs });
  });

  test('hands a peer’s segment on as a sample of the line’s capacity', async () => {
    const { load, playback, callbacks, stats, own, clock } = setUp();
    load();
    clock.time += 900;
    playback.bps = 8_000_000;
    const data = new ArrayBuffer(100_000);
    playback.resolve({ data, source: 'peer', bytes: { origin: 0, seed: 0, peer: 100_000 } });
    await settle();
    expect(callbacks.onProgress).toHaveBeenCalledExactlyOnceWith(stats, own, data, null);
    expect(callbacks.onSuccess).toHaveBeenCalledExactlyOnceWith({ url: own.url, data, code: 200 }, stats, own, null);
    expect(stats.loading).toEqual({ start: 10_900 - 100 - 50, first: 10_900 - 100, end: 10_900 });
    expect(stats).toMatchObject({ loaded: 100_000, total: 100_000, aborted: false });
    expect(clock.timers.size).toBe(0);
  });

  test('of origin and peers at the same time, the one ahead tells how far the segment is', () => {
    const { load, playback, stats } = setUp();
    load();
    playback.fromOrigin();
    playback.progress(40_000, 100_000);
    playback.progress(65_536, 100_000);
    playback.progress(50_000, 100_000);
    expect(stats).toMatchObject({ loaded: 65_536, total: 100_000 });
  });

  test('a wait for peers, and how slow they are, is nothing that hls.js gives a fragment up for', () => {
    const { load, playback, stats, clock } = setUp();
    load();
    clock.time += 900;
    playback.progress(16_384, 100_000);
    expect(stats).toMatchObject({ loaded: 0, loading: { start: 10_000, first: 0 } });
    clock.time += 3_000;
    playback.fromOrigin();
    clock.time += 100;
    playback.progress(40_000, 100_000);
    expect(stats).toMatchObject({ loaded: 40_000, total: 100_000, loading: { start: 13_900, first: 14_000 } });
  });

  test('an origin’s segment beside which peers sent is told as the line’s capacity, not as its own timing', async () => {
    const { load, playback, stats, clock } = setUp();
    playback.bps = 8_000_000;
    load();
    playback.fromOrigin();
    playback.crowded = true;
    PreviousLoader.made[1]!.succeed(100_000);
    await settle();
    expect(stats.loading).toEqual({ start: clock.time - 150, first: clock.time - 100, end: clock.time });
    expect(stats).toMatchObject({ loaded: 100_000, total: 100_000, aborted: false });
  });

  test('without an estimate a peer’s segment is no sample', () => {
    const stats = newStats();
    reportCapacity(stats, 10, 500, undefined, 50);
    // hls.js takes the time to the first byte of it all the same.
    expect(stats).toMatchObject({
      aborted: true,
      loaded: 10,
      total: 10,
      loading: { start: 450, first: 500, end: 500 },
    });
  });

  test('fetches from the origin by the loader that was there, and reports its timing', async () => {
    const { load, playback, callbacks, stats, own, clock } = setUp();
    playback.bps = 1;
    load();
    playback.fromOrigin();
    const origin = PreviousLoader.made[1]!;
    expect(origin.context!.url).toBe('https://cdn/5.ts#cmcd');
    expect(own.url).toBe('https://cdn/5.ts');
    origin.stats.loaded = 7;
    origin.stats.total = 70;
    await clock.advance(100);
    expect(stats).toMatchObject({ loaded: 7, total: 70 });
    origin.succeed(70);
    await settle();
    expect(callbacks.onSuccess).toHaveBeenCalledWith(
      { url: own.url, data: expect.any(ArrayBuffer), code: 206 },
      stats,
      own,
      'xhr',
    );
    expect(stats.loading).toEqual({ start: 100, first: 150, end: 300 });
    expect(playback.origin?.transferMs).toBe(150);
    expect(stats.aborted).toBe(false);
    expect(clock.timers.size).toBe(0);
  });

  test('tells what the origin wants not stored, whatever loader asked', async () => {
    const xhr = (header: string | null) => ({ getResponseHeader: () => header });
    for (const [details, unshared] of [
      [xhr('max-age=0, No-Store'), true],
      [xhr('public, no-cache'), false],
      [xhr(null), false],
      [new Response('', { headers: { 'Cache-Control': 'no-store' } }), true],
      [new Response(''), false],
      [{ getResponseHeader: () => { throw new Error('closed'); } }, false], // biome-ignore format: one a line
      [null, false],
    ] as const) {
      const { load, playback } = setUp();
      load();
      playback.fromOrigin();
      PreviousLoader.made.at(-1)!.succeed(70, details);
      await settle();
      expect(playback.origin?.unshared).toBe(unshared);
    }
  });

  test('the origin’s errors and timeouts reach hls.js as they are', async () => {
    for (const kind of ['error', 'timeout'] as const) {
      PreviousLoader.made = [];
      const { load, playback, callbacks, own, stats } = setUp();
      load();
      playback.fromOrigin();
      const { callbacks: inner, stats: innerStats } = PreviousLoader.made[1]!;
      if (kind === 'error') inner!.onError({ code: 404, text: 'Not Found' }, own, 'xhr', innerStats);
      else inner!.onTimeout(innerStats, own, 'xhr');
      await settle();
      if (kind === 'error') {
        expect(callbacks.onError).toHaveBeenCalledExactlyOnceWith({ code: 404, text: 'Not Found' }, own, 'xhr', stats);
      } else {
        expect(callbacks.onTimeout).toHaveBeenCalledExactlyOnceWith(stats, own, 'xhr');
      }
      expect(callbacks.onSuccess).not.toHaveBeenCalled();
    }
  });

  test('an abort is told once and ends the transfer', async () => {
    const { load, loader, playback, callbacks, stats, own, clock } = setUp();
    load();
    loader.abort();
    loader.destroy();
    playback.resolve({ data: new ArrayBuffer(1), source: 'peer', bytes: { origin: 0, seed: 0, peer: 1 } });
    await settle();
    expect(callbacks.onAbort).toHaveBeenCalledExactlyOnceWith(stats, own, null);
    expect(callbacks.onSuccess).not.toHaveBeenCalled();
    expect(playback.aborts).toBe(1);
    expect(stats.aborted).toBe(true);
    expect(clock.timers.size).toBe(0);
  });

  test('an origin fetch that the engine stops ends there', async () => {
    const { load, playback, callbacks } = setUp();
    load();
    const controller = new AbortController();
    playback.fromOrigin(controller.signal);
    playback.reject = () => {};
    controller.abort();
    await settle();
    expect(PreviousLoader.made[1]!.aborted).toBe(1);
    expect(callbacks.onAbort).not.toHaveBeenCalled();
  });

  test('nothing waits longer than the player’s policy', async () => {
    const { load, playback, callbacks, clock } = setUp();
    load();
    await clock.advance(20_000);
    expect(callbacks.onTimeout).toHaveBeenCalledOnce();
    expect(playback.aborts).toBe(1);
  });

  test.each([0, Number.POSITIVE_INFINITY])('a policy of %s ms is no limit', async (maxLoadTimeMs) => {
    const { loader, own, callbacks, clock } = setUp();
    loader.load(own, { loadPolicy: { maxLoadTimeMs } }, callbacks);
    await clock.advance(600_000);
    expect(callbacks.onTimeout).not.toHaveBeenCalled();
  });

  test('an origin that is asked after a wait for peers has the time that it has without them, not more', async () => {
    const { load, playback, callbacks, clock } = setUp();
    load();
    await clock.advance(15_000);
    playback.fromOrigin();
    await clock.advance(19_900);
    expect(callbacks.onTimeout).not.toHaveBeenCalled();
    await clock.advance(100);
    expect(callbacks.onTimeout).toHaveBeenCalledOnce();
    expect(playback.aborts).toBe(1);
  });

  test('leaves bandwidth tests, subtitles and everything without peer delivery to the player', async () => {
    for (const more of [{ bitrateTest: true }, { type: 'subtitle' }, undefined]) {
      PreviousLoader.made = [];
      const { load, playback, callbacks, loader, stats } = setUp({ frag: frag(5, more) });
      if (!more) playback.active = false;
      load();
      expect(playback.request).toBeUndefined();
      const plain = PreviousLoader.made[0]!;
      plain.succeed(30);
      expect(callbacks.onSuccess).toHaveBeenCalledOnce();
      expect(loader.stats).toBe(stats);
      expect(loader.context).toBe(plain.context);
      expect(playback.bypassed).toEqual([30, 150]);
      loader.abort();
      expect(plain.aborted).toBe(1);
    }
  });

  test('a defect of ours leaves the fragment to the player', () => {
    const { load, playback, caught } = setUp();
    playback.load = () => {
      throw new Error('defect');
    };
    load();
    expect(PreviousLoader.made[0]!.callbacks).toBeDefined();
    expect(caught).toHaveBeenCalledOnce();
  });

  test('init segments are due now, and nothing comes after them', () => {
    const { load, playback, hls } = setUp({ frag: { ...frag('initSegment'), duration: 0 } });
    const media = new FakeMedia();
    media.buffered = { length: 1 };
    media.currentTime = 30;
    hls.media = media as unknown as HTMLMediaElement;
    hls.levels[1]!.details = { fragments: [frag(5)] };
    load();
    expect(playback.request!.deadlineMs()).toBe(0);
    expect(playback.request).toMatchObject({ upcoming: [], durationMs: 0, part: null });
  });
});

describe('positions', () => {
  test('with nothing buffered, whatever is asked is due', () => {
    expect(deadlineMs(null, 100)).toBe(0);
    expect(deadlineMs(new FakeMedia() as unknown as HTMLMediaElement, 100)).toBe(0);
  });

  test('a fragment of a playlist that is gone has nothing after it', () => {
    expect(upcomingOf(new FakeHls() as unknown as HlsLike, frag(5))).toEqual([]);
  });
});
