import type { Leeway, Observation } from '@leeway/core';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { settle } from '../../hlsjs/src/testing.ts';
import { attachDashjs, attachDashjsClass } from './attach.ts';
import type { CommonRequest, DashNamespace, FragmentRequest } from './dashjs.ts';
import { upcomingOf } from './position.ts';
import { bytes, FakeLoader, FakePlayer, manifest, setUp } from './testing.ts';

beforeEach(() => {
  FakeLoader.made = [];
  vi.stubGlobal('document', { baseURI: 'https://a/watch/' });
});

describe('a player', () => {
  test('opens with its MPD, asks by name, and closes with its source', () => {
    const { player, opened, attach } = setUp();
    attach();
    player.ask({ type: 'MPD', mediaType: null, representation: null });
    expect(opened[0]!.manifest).toBe(manifest);
    player.ask();
    expect(opened[0]!.request).toMatchObject({
      url: 'https://cdn/v1/005.m4s',
      ...{ startMs: 8_000, durationMs: 4_000, rendition: 'video-1', bitrate: 800_000, adaptive: true, live: false },
      ...{ playlist: manifest, representation: '1', track: 'video' },
    });
    expect(opened[0]!.request!.upcoming.slice(0, 2)).toEqual([
      { url: 'https://cdn/v1/006.m4s', startMs: 12_000, durationMs: 4_000 },
      { url: 'https://cdn/v1/007.m4s', startMs: 16_000, durationMs: 4_000 },
    ]);
    for (const query of ['?CMCD=a%3Db', '?CMCD=a&v=1', '?v=1&CMCD=a']) {
      player.ask({ url: `https://cdn/v1/005.m4s${query}` });
      const name = query === '?CMCD=a%3Db' ? '' : '?v=1';
      expect(opened[0]!.request!.url).toBe(`https://cdn/v1/005.m4s${name}`);
    }
    for (const query of ['', '?name=a%20b&sig=x~y', '?CMCD=mine%20own&v=1']) {
      player.ask({ url: `https://cdn/v1/005.m4s${query}` }, 'XHRLoader', true);
      expect(opened[0]!.request!.url).toBe(`https://cdn/v1/005.m4s${query}`);
    }
    player.ask({ type: 'InitializationSegment', range: '0-99', url: 'https://cdn/i.mp4' });
    expect(opened[0]!.request).toMatchObject({ url: 'https://cdn/i.mp4', range: { first: 0, last: 99 }, upcoming: [] });
    expect(opened[0]!.request!.deadlineMs()).toBe(0);
    player.listeners.streamTeardownComplete!();
    expect(opened[0]!.closed).toBe(true);
  });

  test("is opened behind its MPD's request, or as it is attached if that was before", () => {
    const late = setUp();
    late.attach();
    expect(late.opened[0]!.manifest).toBe(manifest);

    const { player, opened, attach } = setUp();
    const { getSource } = player;
    player.getSource = () => {
      throw new Error('no source');
    };
    attach();
    expect(opened).toEqual([]);
    player.getSource = getSource;
    let before: number | undefined;
    player.loaders.XHRLoader!.sent = () => {
      before = opened.length;
    };
    player.ask({ type: 'MPD', mediaType: null, representation: null });
    expect([before, opened.length]).toEqual([0, 1]);
  });

  test.each([
    [true, 1_800_000_000_000],
    [false, 0],
  ])('says when the timeline began, if it is live: %s', (live, zeroMs) => {
    const { player, opened, attach } = setUp();
    player.isDynamic = () => live;
    attach();
    for (const loader of ['XHRLoader', 'FetchLoader']) {
      player.ask({}, loader);
      expect(opened[0]!.request).toMatchObject({ live, zeroMs, startMs: 8_000 });
    }
    // Nothing is known of when it began.
    player.ask({ representation: { id: '1', bandwidth: 800_000 } });
    expect(opened[0]!.request!.zeroMs).toBe(0);
  });

  test('is told of bytes from peers as the line would have brought them', async () => {
    const { player, opened, attach } = setUp();
    attach();
    const { customData, response } = player.ask();
    opened[0]!.bps = 8_000_000;
    opened[0]!.progress(400, 1_000);
    opened[0]!.resolve({ data: new ArrayBuffer(1_000), source: 'peer', bytes: bytes(0, 1_000) });
    await settle();
    expect(customData.onprogress.mock.calls.map(([{ loaded, time, noTrace }]) => [loaded, time, noTrace])).toEqual([
      [400, undefined, true],
      [0, 1, false],
      [1_000, 1, false],
    ]);
    expect(customData.onloadend).toHaveBeenCalledOnce();
    expect(response).toMatchObject({ status: 200, url: 'https://cdn/v1/005.m4s?CMCD=x' });
    expect(response.data!.byteLength).toBe(1_000);
  });

  test('is not told that what was there at once came from the cache of its browser', async () => {
    const { player, opened, attach } = setUp();
    attach();
    // dash.js leaves out a sample whose request took less than the threshold of its type.
    const took = async (ms: number, peer: number) => {
      const { customData } = player.ask();
      const { request } = customData;
      customData.onloadend.mockImplementation(() => {
        Object.assign(request, { startDate: new Date(5_000 - ms), endDate: new Date(5_000) });
      });
      opened[0]!.bps = 8_000_000;
      if (peer) opened[0]!.resolve({ data: new ArrayBuffer(peer), source: 'peer', bytes: bytes(0, peer) });
      else {
        opened[0]!.fromOrigin();
        FakeLoader.made.at(-1)!.answer(200, 1_000);
      }
      await settle();
      expect(customData.onprogress.mock.lastCall![0]).toMatchObject({ loaded: 1_000, noTrace: false });
      return +request.endDate! - +request.startDate!;
    };
    expect(await took(2, 1_000)).toBe(10);
    expect(await took(700, 1_000)).toBe(700);
    // An answer of the origin that is as quick is the browser's cache, unless the browser says otherwise.
    expect(await took(2, 0)).toBe(2);
    const entries = vi.spyOn(performance, 'getEntriesByName');
    for (const [transferSize, ms] of [
      [0, 2],
      [1_300, 10],
    ]) {
      entries.mockReturnValue([{ transferSize } as PerformanceResourceTiming]);
      expect(await took(2, 0)).toBe(ms);
    }
    expect(entries.mock.lastCall).toEqual(['https://cdn/v1/005.m4s?CMCD=x']);
    entries.mockRestore();
  });

  test('fetches from the origin by loaders of its own, parts too, and hands on what fails', async () => {
    const { player, opened, attach } = setUp();
    attach();
    const { customData, response } = player.ask();
    const failed = opened[0]!.request!.origin(new AbortController().signal, () => {}, { first: 5, last: 9 });
    const loader = FakeLoader.made.at(-1)!;
    expect(loader.request.url).toBe('https://cdn/v1/005.m4s?CMCD=x');
    expect(loader.request.headers).toEqual({ 'CMCD-Request': 'bl=(21300)', Range: 'bytes=5-9' });
    loader.answer(404, 10);
    const error = await failed.catch((e) => e);
    opened[0]!.reject(error);
    await settle();
    expect(response).toMatchObject({ status: 404, data: null });
    expect(customData.onloadend).toHaveBeenCalledOnce();
    const stop = new AbortController();
    const fetched = opened[0]!.request!.origin(stop.signal, () => {});
    stop.abort();
    await expect(fetched).rejects.toBeDefined();
    expect(FakeLoader.made.at(-1)!.aborted).toBe(1);
    const list = opened[0]!.request!.beside!('https://a/list', new AbortController().signal, () => {});
    FakeLoader.made.at(-1)!.answer(200, 7, { 'cache-control': 'no-store' });
    expect(await list).toMatchObject({ status: 200, unshared: true });
  });

  test("has the origin's headers also where peers sent the rest of the segment: tokens are renewed in them", async () => {
    const { player, opened, attach } = setUp();
    attach();
    const { response } = player.ask();
    const part = opened[0]!.request!.origin(new AbortController().signal, () => {}, { first: 0, last: 99 });
    FakeLoader.made.at(-1)!.answer(206, 100, { 'common-access-token': 'next' });
    await part;
    opened[0]!.resolve({ data: new ArrayBuffer(1_000), source: 'peer', bytes: bytes(100, 900) });
    await settle();
    expect(response).toMatchObject({ status: 200, headers: { 'common-access-token': 'next' } });
    expect(response.data!.byteLength).toBe(1_000);
    const { response: byPeers } = player.ask();
    opened[0]!.resolve({ data: new ArrayBuffer(1_000), source: 'peer', bytes: bytes(0, 1_000) });
    await settle();
    expect(byPeers.headers).toEqual({});
  });

  test('times what the origin sends by its rate after the first look, which finds bytes already', async () => {
    const { clock, player, opened, attach } = setUp();
    attach();
    const { customData } = player.ask();
    const measured = async (first: number) => {
      const fetched = opened[0]!.request!.origin(new AbortController().signal, () => {});
      const loader = FakeLoader.made.at(-1)!;
      clock.time += 50;
      loader.request.customData.onprogress?.({ loaded: first, total: 1_000, lengthComputable: true });
      clock.time += 75;
      loader.answer(200, 1_000);
      return (await fetched).transferMs;
    };
    expect(await measured(250)).toBe(100);
    // What little came later says nothing: the core takes what it saw itself.
    expect(await measured(900)).toBeUndefined();
    opened[0]!.bps = 80_000;
    opened[0]!.resolve({ data: new ArrayBuffer(1_000), source: 'origin', bytes: bytes(1_000, 0) });
    await settle();
    expect(customData.onprogress.mock.lastCall![0]).toMatchObject({ loaded: 1_000, time: 100, noTrace: false });
  });

  test('fetches by itself what is not shared, which is counted: captions, and without peer delivery', () => {
    const { player, opened, attach } = setUp();
    attach();
    player.ask({ mediaType: 'text' });
    expect(player.loaders.XHRLoader!.request.url).toContain('CMCD');
    opened[0]!.active = false;
    player.ask();
    player.loaders.XHRLoader!.answer(200, 60);
    expect(opened[0]!.bypassed?.[0]).toBe(60);
    expect(opened[0]!.request).toBeUndefined();
  });

  test("is not counted the origin's errors, nor a segment that breaks off: it asks for those again", () => {
    const { player, opened, attach } = setUp();
    attach();
    const { XHRLoader, FetchLoader } = player.loaders as Record<string, FakeLoader>;
    opened[0]!.active = false;
    player.ask();
    XHRLoader!.answer(404, 60);
    player.ask();
    XHRLoader!.request.customData.onloadend!();
    // It has the status before the bytes.
    player.ask({}, 'FetchLoader');
    FetchLoader!.request.customData.onprogress!({ loaded: 40, total: 60, lengthComputable: true, noTrace: true });
    FetchLoader!.response.status = 200;
    FetchLoader!.request.customData.onloadend!();
    expect(opened[0]!.bypassed).toBeUndefined();
  });

  test('gets thumbnails by ranges and callbacks of events, which it asks a loader for itself, as that has them', () => {
    const { player, opened, caught, attach } = setUp();
    attach();
    const loader = player.loaders.XHRLoader!;
    const onloadend = vi.fn();
    const event = { target: { response: new ArrayBuffer(9) } };
    for (const customData of [{ request: { range: '0-99' }, onloadend }, {}]) {
      loader.load({ url: 'https://a/1', method: 'get', headers: {}, customData } as unknown as CommonRequest, {});
      loader.request.customData.onloadend!(event);
    }
    expect([onloadend.mock.calls, caught]).toEqual([[[event]], []]);
    expect(opened[0]).toMatchObject({ request: undefined, bypassed: undefined });
  });

  test('is seen to switch by the picture on the screen, whose bits are those that are played', () => {
    const { clock, player, opened, attach } = setUp();
    attach();
    const rendered = player.listeners.qualityChangeRendered as unknown as (event: object) => void;
    const shows = (mediaType: string, bandwidth: number) => rendered({ mediaType, newRepresentation: { bandwidth } });
    player.media.fire('playing');
    // The first of each kind, and the first of a further period.
    shows('video', 400_000);
    shows('audio', 64_000);
    shows('video', 400_000);
    clock.time += 1_000;
    player.media.currentTime = 1;
    player.media.fire('timeupdate');
    shows('video', 900_000);
    opened[0]!.onCollect!();
    const [{ switches, played_bits }] = opened[0]!.observed.slice(-1) as [Observation];
    expect([switches, played_bits]).toEqual([1, 400_000]);
  });

  test('is watched from when it has a view, also where it has loaded before', () => {
    const { clock, player, opened, attach } = setUp();
    const { getVideoElement } = player;
    player.getVideoElement = () => {
      throw new Error('no view');
    };
    attach();
    player.ask({ type: 'MPD', mediaType: null, representation: null });
    player.ask();
    expect(opened).toHaveLength(1);
    clock.time += 60_000;
    player.getVideoElement = getVideoElement;
    player.listeners.playbackInitialized!();
    clock.time += 700;
    player.media.paused = false;
    player.media.fire('play', 'playing');
    opened[0]!.onCollect!();
    expect([opened.length, opened[0]!.paused]).toEqual([1, false]);
    expect(opened[0]!.observed.find(({ startup_ms }) => startup_ms)).toMatchObject({ startup_ms: 700 });
  });

  test('gets its settings back', () => {
    const { player, opened, attach } = setUp();
    const detach = attach();
    expect(attach()).toBe(detach);
    player.ask();
    const { throughput } = player.settings.streaming.abr;
    const uses = () => [throughput.useResourceTimingApi, ...Object.values(throughput.useNetworkInformationApi)];
    expect(uses()).toEqual([false, false, false]);
    detach();
    expect(uses()).toEqual([true, true, true]);
    expect([opened[0]!.closed, Object.keys(player.listeners)]).toEqual([true, []]);
    player.ask();
    expect(opened).toHaveLength(1);
  });

  test('a mistake says how it goes', () => {
    const { leeway, player } = setUp();
    expect(() => attachDashjs({} as Leeway, player)).toThrow(/createLeeway/);
    expect(() => attachDashjs(leeway, {} as FakePlayer)).toThrow(/MediaPlayer/);
    expect(() => attachDashjsClass(leeway, {} as DashNamespace)).toThrow(/window.dashjs/);
  });
});

test('all players of a page are attached as they are made, and let go', () => {
  const { leeway, opened } = setUp();
  const MediaPlayer = Object.assign(() => ({ create: () => new FakePlayer(), own: 1 }), { events: { ERROR: 'error' } });
  const dashjs = { MediaPlayer };
  const undo = attachDashjsClass(leeway, dashjs);
  expect([dashjs.MediaPlayer.events.ERROR, dashjs.MediaPlayer().own]).toEqual(['error', 1]);
  const player = dashjs.MediaPlayer().create();
  player.initialize();
  player.ask();
  expect(opened).toHaveLength(1);
  undo();
  expect([dashjs.MediaPlayer, opened[0]!.closed]).toEqual([MediaPlayer, true]);
});

test('a player loads by the loader that the page gives it before it initializes it', () => {
  const { leeway, opened } = setUp();
  const dashjs = { MediaPlayer: () => ({ create: () => new FakePlayer() }) };
  attachDashjsClass(leeway, dashjs);
  const player = dashjs.MediaPlayer().create();
  const load = vi.fn();
  player.extend('XHRLoader', () => ({ load }));
  player.initialize();
  player.ask();
  expect([load.mock.calls.length, opened[0]!.request]).toEqual([1, undefined]);
  // The other loader is shared as before.
  player.ask({}, 'FetchLoader');
  expect(opened[0]!.request).toMatchObject({ url: 'https://cdn/v1/005.m4s' });
});

test('what follows is known by the timeline, and not where the template does not lead to the segment', () => {
  const next = (SegmentTemplate: object, more: Partial<FragmentRequest>) =>
    upcomingOf({
      ...{ type: 'MediaSegment', mediaType: 'video', url: '', range: null, startTime: 0, duration: 2, index: 1 },
      representation: {
        ...{ id: 'a', bandwidth: 5, index: 0 },
        adaptation: {
          index: 0,
          period: {
            index: 0,
            mpd: { manifest: { Period: [{ AdaptationSet: [{ Representation: [{ SegmentTemplate }] }] }] } },
          },
        },
      },
      ...more,
    }).map(({ url, durationMs }) => [url, durationMs]);
  const timeline = { media: '$$$Bandwidth$-$Time$', SegmentTimeline: { S: [{ t: 7, d: 2, r: 1 }, { d: 3 }] } };
  expect(next(timeline, { url: 'https://b/$5-9' })).toEqual([['https://b/$5-11', 3_000]]);
  expect(next(timeline, { url: 'https://b/other' })).toEqual([]);
  expect(next(timeline, { url: 'https://b/$5-9', range: '0-9' })).toEqual([]);
  expect(next({ media: '$Number$', SegmentTimeline: { S: [{ d: 1, r: -1 }] } }, { url: 'https://b/2' })).toHaveLength(
    32,
  );
  expect(next({}, { url: 'https://b/2', representation: null })).toEqual([]);
});
