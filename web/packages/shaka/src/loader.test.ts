import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeMedia, settle } from '../../hlsjs/src/testing.ts';
import { timing } from './loader.ts';
import { bytes, newStream, loading as setUp } from './testing.ts';

describe('the plug-in', () => {
  test('asks by name, range, position and rendition', async () => {
    const { player, load, asked, playback, origin } = await setUp();
    const media = new FakeMedia();
    media.buffered = { length: 1 };
    media.currentTime = 12;
    media.playbackRate = 2;
    player.media = media as unknown as HTMLMediaElement;
    const { stream, segments } = newStream('https://cdn/', 8, true);
    const { promise } = load({ stream, segment: segments[5]! }, { headers: { Range: 'bytes=500-599' } });
    await asked();
    const { request } = playback;
    expect(request).toMatchObject({
      url: 'https://cdn/film.mp4',
      range: { first: 500, last: 599 },
      startMs: 20_000,
      durationMs: 4_000,
      rendition: 'video-7',
      track: 'video',
      bitrate: 1_500_000,
      adaptive: true,
      live: false,
      upcoming: [
        { url: 'https://cdn/film.mp4', startMs: 24_000, durationMs: 4_000, range: { first: 600, last: 699 } },
        { range: { first: 700, last: 799 } },
      ],
    });
    expect(request!.deadlineMs()).toBe(4_000);
    expect(request!.playlist).toBeUndefined();
    expect(origin.asked).toEqual([]);
    playback.resolve({ data: new ArrayBuffer(100), source: 'peer', bytes: bytes(0, 100) });
    expect((await promise).data.byteLength).toBe(100);
  });

  test('names the playlist of a segment, or the representation of an MPD, and fetches what is beside it', async () => {
    const { player, load, asked, playback, origin, stream } = await setUp();
    playback.manifest = 'https://a/film/master?v=2';
    const seen = async (originalId: string | null, type: string) => {
      player.type = type;
      playback.request = undefined;
      load({ stream: { ...stream, originalId } }, { headers: { Range: 'bytes=0-9', 'x-own': '1' } });
      await asked();
      const { playlist, representation } = playback.request!;
      return [playlist, representation];
    };
    expect(await seen('v1/720p.m3u8?t=1', 'HLS')).toEqual(['https://a/film/v1/720p.m3u8?t=1', undefined]);
    expect(await seen('video/1', 'DASH')).toEqual(['https://a/film/master?v=2', 'video/1']);
    // A stream of several periods or places has no one representation. Another stream has none at all.
    expect(await seen('a,b', 'DASH')).toEqual([undefined, undefined]);
    expect(await seen(null, 'DASH')).toEqual([undefined, undefined]);
    const list = await playback.request!.beside!(
      origin.url('/film.mpd.1.leeway'),
      new AbortController().signal,
      () => {},
    );
    expect(list.data.byteLength).toBe(1_000);
    const { url, headers } = origin.asked.at(-1)!;
    expect([url, headers.range, headers['x-own']]).toEqual(['/film.mpd.1.leeway', undefined, '1']);
  });

  test.each(['live', 'event'] as const)('a moment of a stream is one that all its viewers mean: %s', async (kind) => {
    const { player, load, asked, playback } = await setUp();
    player[kind] = true;
    const { promise } = load();
    await asked();
    expect(playback.request).toMatchObject({ live: true, zeroMs: 1_800_000_000_000 });
    playback.resolve({ data: new ArrayBuffer(10), source: 'peer', bytes: bytes(0, 10) });
    await promise;
  });

  test('leaves a range without an end to Shaka, and counts it', async () => {
    const { load, playback, samples } = await setUp();
    await load({}, { headers: { Range: 'bytes=500-' } }).promise;
    expect(playback.request).toBeUndefined();
    expect(playback.bypassed?.[0]).toBe(1_000);
    // As many samples as Shaka makes itself, of what the network took.
    expect(samples.reduce((sum, sample) => sum + sample.bytes, 0)).toBe(1_000);
  });

  test('shares what Shaka fetches ahead of a film, and gives it no bytes before all are there', async () => {
    const { load, asked, playback } = await setUp();
    const streamDataCallback = vi.fn(async () => {});
    const { promise } = load({}, { streamDataCallback });
    await asked();
    playback.fromOrigin();
    expect((await promise).data.byteLength).toBe(1_000);
    expect(streamDataCallback).not.toHaveBeenCalled();
  });

  test('a part of a segment that is still being made cannot wait', async () => {
    const { load, asked, playback, segments } = await setUp();
    const { promise } = load({ segment: { ...segments[5]!, isPartial: () => true } });
    await asked();
    expect(playback.request).toMatchObject({ durationMs: 4_000, upcoming: [] });
    expect(playback.request!.deadlineMs()).toBe(0);
    playback.resolve({ data: new ArrayBuffer(10), source: 'peer', bytes: bytes(0, 10) });
    await promise;
  });

  test('the origin is asked with the request as filters left it, and its answer handed on', async () => {
    const { load, asked, playback, origin } = await setUp();
    const { promise } = load({}, { headers: { 'x-own': '1', 'CMCD-Request': 'bl=(21300)' } });
    await asked();
    playback.fromOrigin();
    const response = await promise;
    const headers = { 'x-own': '1', 'cmcd-request': 'bl=(21300)' };
    expect(origin.asked).toMatchObject([{ url: '/5.ts?CMCD=x', headers }]);
    expect(response).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    expect(playback.request!.url).toBe(origin.url('/5.ts'));
    expect(playback.origin).toMatchObject({ unshared: true, status: 200 });
  });

  test('a part of a segment is fetched by its range, beside the headers of the page', async () => {
    const { load, asked, playback, origin } = await setUp();
    const { promise } = load({}, { headers: { 'x-own': '1' } });
    await asked();
    const part = { first: 16_384, last: 49_151 };
    const { next } = origin.hold();
    const fetched = playback.request!.origin(new AbortController().signal, () => {}, part);
    (await next).answer.writeHead(206).end(Buffer.alloc(32_768));
    expect((await fetched).data.byteLength).toBe(32_768);
    expect(origin.asked[0]!.headers).toMatchObject({ 'x-own': '1', range: 'bytes=16384-49151' });
    playback.resolve({ data: new ArrayBuffer(10), source: 'peer', bytes: bytes(0, 10) });
    await promise;
  });

  test('a token that the origin renews is kept, also where peers sent the rest of the segment', async () => {
    const { load, asked, playback, origin } = await setUp();
    const { promise } = load();
    await asked();
    const { next } = origin.hold();
    const part = playback.request!.origin(new AbortController().signal, () => {}, { first: 0, last: 9 });
    (await next).answer.writeHead(206, { 'CTA-Common-Access-Token': 'renewed' }).end(Buffer.alloc(10));
    await part;
    playback.resolve({ data: new ArrayBuffer(20), source: 'peer', bytes: bytes(10, 10) });
    await promise;
    playback.request = undefined;
    const second = load();
    await asked();
    playback.fromOrigin();
    await second.promise;
    expect(origin.asked.at(-1)!.headers).toMatchObject({ 'cta-common-access-token': 'renewed' });
  });

  test('an error of the origin reaches Shaka as it came', async () => {
    const { load, asked, playback, origin } = await setUp();
    const { next } = origin.hold();
    const { promise } = load();
    await asked();
    playback.fromOrigin();
    (await next).answer.writeHead(404).end();
    await expect(promise).rejects.toMatchObject({ code: 1001, data: expect.arrayContaining([404]) });
  });

  test('what fails within the library is asked for again, as Shaka does it', async () => {
    const { load, asked, playback } = await setUp({ maxAttempts: 2, baseDelay: 0 });
    const { promise } = load();
    await asked();
    const { request } = playback;
    playback.reject(new Error('engine'));
    await vi.waitFor(() => expect(playback.request).not.toBe(request));
    playback.resolve({ data: new ArrayBuffer(10), source: 'peer', bytes: bytes(0, 10) });
    expect((await promise).data.byteLength).toBe(10);
  });

  test('a defect of the library falls back to Shaka', async () => {
    const { load, playback, caught } = await setUp();
    playback.load = () => {
      throw new Error('defect');
    };
    expect((await load().promise).data.byteLength).toBe(1_000);
    expect(caught).toHaveBeenCalledWith('loader', expect.any(Error));
  });

  test('an abort ends both, and Shaka is told that it was one', async () => {
    const { load, asked, playback, origin } = await setUp();
    const { next } = origin.hold();
    const pending = load();
    await asked();
    const controller = new AbortController();
    const fetched = playback.request!.origin(controller.signal, () => {});
    fetched.catch(() => {});
    const { answer } = await next;
    const gone = new Promise((resolve) => answer.on('close', resolve));
    const ended = expect(pending.promise).rejects.toMatchObject({ code: 7001 });
    void pending.abort();
    expect(playback.aborts).toBe(1);
    // As the core does it.
    controller.abort();
    playback.reject(new Error('aborted'));
    await ended;
    await gone;
    await expect(fetched).rejects.toMatchObject({ code: 7001 });
  });
});

describe('the times that Shaka keeps', () => {
  test('of the whole segment, waiting for peers included', async () => {
    const { load, asked, playback, clock } = await setUp({ timeout: 30_000 });
    const { promise } = load();
    const ended = expect(promise).rejects.toMatchObject({ code: 1003 });
    await asked();
    await clock.advance(29_999);
    expect(playback.aborts).toBe(0);
    await clock.advance(1);
    expect(playback.aborts).toBe(1);
    playback.reject(new Error('aborted'));
    await ended;
  });

  test('of an origin that is asked after a wait for peers, as much as without them', async () => {
    const { load, asked, playback, origin, clock } = await setUp({ timeout: 30_000 });
    const { next } = origin.hold();
    const { promise } = load();
    const ended = expect(promise).rejects.toMatchObject({ code: 1003 });
    await asked();
    await clock.advance(20_000);
    playback.fromOrigin();
    await next;
    await clock.advance(29_999);
    expect(playback.aborts).toBe(0);
    await clock.advance(1);
    expect(playback.aborts).toBe(1);
    playback.reject(new Error('aborted'));
    await ended;
  });

  test('to the first bytes of the origin, and between two', async () => {
    for (const stalls of [false, true]) {
      const { load, asked, playback, origin, clock } = await setUp({ connectionTimeout: 10_000, stallTimeout: 5_000 });
      const { next } = origin.hold();
      const { promise } = load();
      await asked();
      const progress = vi.spyOn(playback, 'progress');
      playback.fromOrigin();
      const { answer } = await next;
      const ended = expect(promise).rejects.toMatchObject({ code: 1003 });
      if (stalls) {
        // Shaka tells of progress every 100 ms of its own clock.
        const send = setInterval(() => answer.write(Buffer.alloc(20_000)), 60);
        answer.writeHead(200, { 'Content-Length': 1 << 20 });
        await vi.waitFor(() => expect(progress).toHaveBeenCalled());
        clearInterval(send);
      }
      const limit = stalls ? 5_000 : 10_000;
      const gone = new Promise((resolve) => answer.on('close', resolve));
      await clock.advance(limit - 1);
      await settle();
      expect(answer.closed).toBe(false);
      await clock.advance(1);
      await gone;
      await ended;
    }
  });
});

describe("Shaka's estimate of the line", () => {
  // Shaka adds what its response filters took: nothing, by a clock that stands.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  test('takes the time of what the origin alone has sent', async () => {
    const { load, asked, playback, samples, origin, clock } = await setUp();
    const { next } = origin.hold();
    const { promise } = load();
    await asked();
    playback.fromOrigin();
    const { answer } = await next;
    await clock.advance(400);
    answer.end(Buffer.alloc(50_000));
    await promise;
    expect(samples).toEqual([{ ms: 400, bytes: 50_000 }]);
  });

  test('hears of the bytes as they come from a page without an engine, to the end of the fetch', async () => {
    const { load, asked, playback, samples, origin } = await setUp();
    playback.alone = true;
    const { next } = origin.hold();
    const { promise } = load();
    await asked();
    playback.fromOrigin();
    const { answer } = await next;
    vi.setSystemTime(Date.now() + 200);
    answer.write(Buffer.alloc(40_000));
    await vi.waitFor(() => expect(samples).not.toEqual([]));
    playback.alone = false;
    answer.end(Buffer.alloc(40_000));
    await promise;
    expect(samples.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(80_000);
  });

  test('of a live stream is told when a segment is whole', async () => {
    const { player, load, asked, playback, samples, origin, clock } = await setUp();
    player.live = playback.alone = true;
    const { next } = origin.hold();
    const { promise } = load();
    await asked();
    playback.fromOrigin();
    const { answer } = await next;
    await clock.advance(400);
    answer.end(Buffer.alloc(40_000));
    await promise;
    expect(samples).toEqual([{ ms: 400, bytes: 40_000 }]);
  });

  test('takes the capacity of the line for what peers have sent, and nothing without one', async () => {
    const { load, asked, playback, samples } = await setUp();
    for (const bps of [8_000_000, undefined]) {
      playback.request = undefined;
      playback.bps = bps;
      const { promise } = load();
      await asked();
      playback.resolve({ data: new ArrayBuffer(500_000), source: 'peer', bytes: bytes(100, 499_900) });
      expect((await promise).fromCache).toBe(bps ? undefined : true);
    }
    expect(samples).toEqual([{ ms: 500, bytes: 500_000 }]);
  });

  test('is told the truth', () => {
    expect(timing(1_000, 70, 8_000)).toEqual({ timeMs: 70 });
    expect(timing(1_000, undefined, 8_000)).toEqual({ timeMs: 1_000 });
    expect(timing(1_000)).toEqual({ timeMs: 0, fromCache: true });
  });
});
