import { beforeEach, expect, test, vi } from 'vitest';
import { FakeMedia, FakePlayback, settle, TestClock } from '../../hlsjs/src/testing.ts';
import { type Asked, createXhr } from './loader.ts';
import { placeOf } from './position.ts';
import { FakePlayer, newPlaylist, newVideojs, OriginXhr, pendingOf, sourceXhr } from './testing.ts';
import type { VhsPlaylist, VhsSegment, XhrOptions, XhrRequest } from './videojs.ts';

beforeEach(() => {
  OriginXhr.made = [];
});

const segment: XhrOptions = { uri: 'https://cdn/5.ts', requestType: 'segment', headers: {} };
const bytes = (origin: number, peer: number) => ({ origin, seed: 0, peer });

/** VHS's function with ours in it, as `attachVideojs` puts it there. */
function setUp(playlist: VhsPlaylist = newPlaylist(40)) {
  const clock = new TestClock();
  const videojs = newVideojs();
  const player = new FakePlayer(videojs);
  player.src('https://a/m.m3u8', playlist);
  const vhs = player.vhs!;
  const media = new FakeMedia();
  const playback = new FakePlayback();
  const [caught, ownSamples] = [vi.fn(), vi.fn()];
  let asking: Asked | undefined;
  videojs.Vhs.xhr = createXhr(videojs, videojs.Vhs.xhr, clock, () => asking);
  const xhr = sourceXhr(videojs);
  const load = (options = segment) => {
    const place = placeOf(vhs, options)!;
    asking = { vhs, media: media as unknown as HTMLMediaElement, place, playback, ownSamples, caught };
    const events: string[] = [];
    const request = xhr(options, () => events.push('callback'));
    for (const type of ['progress', 'loadend']) request.addEventListener(type, (event) => events.push(event.type));
    return { request: request as XhrRequest & { aborted?: boolean }, events };
  };
  return { clock, vhs, media, playback, caught, ownSamples, ended: xhr.ended, hooked: xhr.hooked, load };
}

test('asks by name, range, position and rendition', async () => {
  const { media, playback, load } = setUp(newPlaylist(8, true));
  media.buffered = { length: 1 };
  media.currentTime = 12;
  media.playbackRate = 2;
  load({ ...segment, uri: 'https://cdn/film.mp4', headers: { Range: 'bytes=500-599' } });
  expect(playback.request).toMatchObject({
    url: 'https://cdn/film.mp4',
    range: { first: 500, last: 599 },
    startMs: 20_000,
    durationMs: 4_000,
    rendition: 'main-0-low',
    track: 'main',
    bitrate: 1_500_000,
    adaptive: true,
    live: false,
    zeroMs: 0,
    playlist: 'https://cdn/low.m3u8',
    upcoming: [
      { url: 'https://cdn/film.mp4', startMs: 24_000, durationMs: 4_000, range: { first: 600, last: 699 } },
      { range: { first: 700, last: 799 } },
    ],
  });
  expect(playback.request!.deadlineMs()).toBe(4_000);
  expect(OriginXhr.made).toEqual([]);
});

test('what waits for nothing has no deadline to give', () => {
  const { playback, load } = setUp();
  load({ uri: 'https://cdn/init.mp4', requestType: 'segment-media-initialization', headers: {} });
  expect(playback.request).toMatchObject({ url: 'https://cdn/init.mp4', upcoming: [] });
  expect(playback.request!.deadlineMs()).toBe(0);
});

test.each([
  ['by its clock', 1_800_000_000_000, 1_799_999_980_000],
  ['by its numbers', undefined, 75 * 4_000 - 20_000],
  ['by its numbers where its clock is none', Number.NaN, 75 * 4_000 - 20_000],
])('a moment of a live stream is one that all its viewers mean: %s', (_, programDateTime, zeroMs) => {
  const playlist = { ...newPlaylist(40), endList: false, mediaSequence: 70 };
  Object.assign(playlist.segments[5]!, { programDateTime });
  const { playback, load } = setUp(playlist);
  load();
  expect(playback.request).toMatchObject({ startMs: 20_000, live: true, zeroMs });
});

/** A low-latency playlist: of four segments the third has two parts, and the last is made. */
function newParts(mediaSequence: number, made: number): VhsPlaylist {
  const playlist = { ...newPlaylist(4), endList: false, mediaSequence };
  const part = (name: string) => ({ resolvedUri: `https://cdn/${name}.m4s`, duration: 2 });
  const [, , third, last] = playlist.segments as [VhsSegment, VhsSegment, VhsSegment, VhsSegment];
  third.parts = [part('2.0'), part('2.1')];
  last.parts = Array.from({ length: made }, (_, i) => part(`3.${i}`));
  return playlist;
}

test('a part is asked for as one, with what the playlist lists', () => {
  const playlist = newParts(70, 1);
  const { vhs, media, playback, load } = setUp(playlist);
  media.buffered = { length: 1 };
  media.currentTime = 9;
  const [, , third] = playlist.segments as [VhsSegment, VhsSegment, VhsSegment];
  const loader = vhs.playlistController_!.mainSegmentLoader_;
  const part = third.parts![1]!;
  loader.pendingSegment_ = { ...pendingOf(playlist, 2), startOfSegment: 10, duration: 2, part, partIndex: 1 };
  load({ ...segment, uri: part.resolvedUri });
  const request = playback.request!;
  expect(request).toMatchObject({
    url: 'https://cdn/2.1.m4s',
    startMs: 10_000,
    durationMs: 2_000,
    live: true,
    upcoming: [],
    part: { sequence: 72, index: 1 },
  });
  expect(request.deadlineMs()).toBe(1_000);
  const names = () => request.part!.listed().map(({ sequence, index }) => `${sequence}.${index}`);
  expect(names()).toEqual(['72.0', '72.1', '73.0']);
  expect(request.part!.listed()[2]).toMatchObject({ url: 'https://cdn/3.0.m4s', durationMs: 2_000 });
  // VHS has another object for each playlist that comes.
  loader.playlist_ = newParts(71, 2);
  expect(names()).toEqual(['73.0', '73.1', '74.0', '74.1']);
  loader.playlist_ = null;
  expect(names()).toEqual([]);
});

test('a part that is a range has it, and the segments that VHS loads by parts are not fetched whole', () => {
  const playlist = newParts(70, 0);
  const [, , third] = playlist.segments as [VhsSegment, VhsSegment, VhsSegment];
  const part = { ...third.parts![0]!, byterange: { offset: 900, length: 500 } };
  third.parts![0] = part;
  const { vhs, playback, load } = setUp(playlist);
  const loader = vhs.playlistController_!.mainSegmentLoader_;
  loader.pendingSegment_ = pendingOf(playlist, 0);
  load({ ...segment, uri: 'https://cdn/0.ts' });
  expect(playback.request!.part).toBeUndefined();
  expect(playback.request!.upcoming).toMatchObject([{ url: 'https://cdn/1.ts' }]);
  loader.pendingSegment_ = { ...pendingOf(playlist, 2), part, partIndex: 0 };
  load({ ...segment, uri: part.resolvedUri, headers: { Range: 'bytes=900-1399' } });
  expect(playback.request!.part!.listed()[0]!.range).toEqual({ first: 900, last: 1_399 });
});

test('a sound by itself is a track of its own', () => {
  const { vhs } = setUp();
  vhs.playlistController_!.audioSegmentLoader_.pendingSegment_ = pendingOf(newPlaylist(3), 1);
  expect(placeOf(vhs, { ...segment, uri: 'https://cdn/1.ts' })).toMatchObject({ track: 'audio' });
  expect(placeOf(vhs, { ...segment, uri: 'https://cdn/9.ts' })).toBeUndefined();
  expect(placeOf(vhs, { ...segment, headers: { Range: 'bytes=0-9' } })).toBeUndefined();
});

test('what peers send is a sample of what the line can carry', async () => {
  const { vhs, playback, ownSamples, ended, load } = setUp();
  const { request, events } = load();
  expect(ownSamples).not.toHaveBeenCalled();
  playback.bps = 8_000_000;
  const data = new ArrayBuffer(100);
  playback.resolve({ data, source: 'peer', bytes: bytes(0, 100) });
  await settle();
  expect(request).toMatchObject({ response: data, status: 200, bandwidth: 8_000_000, responseType: 'arraybuffer' });
  expect(ownSamples).toHaveBeenCalled();
  expect(events).toEqual(['callback', 'loadend']);
  expect(ended).toMatchObject([{ error: null }]);
  playback.bps = undefined;
  const again = load();
  playback.resolve({ data, source: 'peer', bytes: bytes(0, 100) });
  await settle();
  expect(again.request.bandwidth).toBe(vhs.bandwidth);
});

test('what the origin sends is a sample by its own time, and asks with the headers of VHS', async () => {
  const { clock, playback, ownSamples, load } = setUp();
  const { request } = load({ ...segment, timeout: 0, headers: {} });
  clock.time += 5_000;
  playback.fromOrigin();
  const [origin] = OriginXhr.made as [OriginXhr];
  clock.time += 100;
  // What is there at the first look took its time, too.
  origin.progress(400, 1_000);
  clock.time += 60;
  origin.responseURL = 'https://edge/5.ts';
  origin.answer(1_000, 200, { 'cache-control': 'private, no-store' });
  await settle();
  expect(playback.origin).toMatchObject({ status: 200, url: 'https://edge/5.ts', transferMs: 100, unshared: true });
  expect(request.bandwidth).toBe(50_000);
  expect(ownSamples).not.toHaveBeenCalled();
});

test('a segment is given up neither for a wait nor for peers that are slow: VHS is told what comes from when the origin is asked', async () => {
  const { clock, playback, load } = setUp();
  const { request } = load();
  const asked = request.requestTime!;
  const start = clock.time;
  const seen: number[] = [];
  // As VHS makes it of the bytes and the date.
  request.addEventListener('progress', ({ loaded, target }) => {
    seen.push((loaded * 8_000) / (asked + clock.time - start - target.requestTime!));
  });
  clock.time += 3_000;
  playback.progress(16_000, 800_000);
  expect(seen).toEqual([]);
  clock.time += 1_000;
  playback.fromOrigin();
  clock.time += 1_000;
  OriginXhr.made[0]!.progress(500_000, 800_000);
  expect(seen).toEqual([4_000_000]);
});

test('a part of a segment is asked for by a range', async () => {
  const { playback, load } = setUp();
  load();
  const done = playback.request!.origin(new AbortController().signal, () => {}, { first: 10, last: 19 });
  expect(OriginXhr.made[0]!.options.headers).toEqual({ Range: 'bytes=10-19' });
  OriginXhr.made[0]!.answer(10, 206);
  expect((await done).status).toBe(206);
});

test("a packager's list is asked for as the segment is, whole", async () => {
  const { playback, load } = setUp(newPlaylist(8, true));
  load({ ...segment, uri: 'https://cdn/film.mp4', headers: { Range: 'bytes=500-599', 'X-Token': '1' } });
  const list = playback.request!.beside!('https://cdn/low.m3u8.leeway', new AbortController().signal, () => {});
  expect(OriginXhr.made[0]!.options).toMatchObject({ uri: 'https://cdn/low.m3u8.leeway', timeout: 45_000 });
  expect(OriginXhr.made[0]!.options.headers).toEqual({ 'X-Token': '1' });
  OriginXhr.made[0]!.answer(20);
  expect((await list).data.byteLength).toBe(20);
});

test("the origin's errors are the player's, as they came", async () => {
  const { playback, ended, load } = setUp();
  load();
  const refused = playback.request!.origin(new AbortController().signal, () => {});
  OriginXhr.made[0]!.answer(3, 503);
  playback.reject(await refused.catch((error) => error));
  await settle();
  expect(ended[0]).toMatchObject({ error: { message: 'XHR Failed: 503' }, request: { status: 503 } });
  load();
  const failed = playback.request!.origin(new AbortController().signal, () => {});
  const error = new Error('Internal XMLHttpRequest Error');
  OriginXhr.made[1]!.fail(error);
  playback.reject(await failed.catch((reason) => reason));
  await settle();
  expect(ended[1]!.error).toBe(error);
  load();
  playback.reject(new Error('a defect'));
  await settle();
  expect(ended[2]!.error!.message).toBe('a defect');
});

test("hooks of the page are told the origin's answer, and of bytes from peers that there was none", async () => {
  const { playback, hooked, load } = setUp();
  const heard = async () => {
    await settle();
    const { request, response } = hooked.at(-1)!;
    const xhr = request as unknown as XMLHttpRequest;
    return [response.headers, xhr.getResponseHeader('X-Cache'), xhr.getAllResponseHeaders()];
  };
  const headers = { 'x-cache': 'HIT', age: '7' };
  load();
  playback.fromOrigin();
  OriginXhr.made[0]!.answer(10, 200, headers);
  expect(await heard()).toEqual([headers, 'HIT', 'x-cache: HIT\r\nage: 7\r\n']);
  // A part is no answer to what VHS asked for, and the rest came from a peer.
  load();
  void playback.request!.origin(new AbortController().signal, () => {}, { first: 0, last: 9 });
  OriginXhr.made[1]!.answer(10, 206, headers);
  await settle();
  playback.resolve({ data: new ArrayBuffer(20), source: 'peer', bytes: bytes(10, 10) });
  expect(await heard()).toEqual([{}, null, '']);
  load();
  playback.fromOrigin();
  OriginXhr.made[2]!.answer(3, 503, headers);
  expect(await heard()).toEqual([headers, 'HIT', 'x-cache: HIT\r\nage: 7\r\n']);
});

test('an abort ends the load and the fetch, and calls no callback', async () => {
  const { clock, playback, ended, load } = setUp();
  const { request, events } = load();
  const abort = new AbortController();
  const fetched = playback.request!.origin(abort.signal, () => {});
  request.abort();
  expect([playback.aborts, request.aborted, events, clock.timers.size]).toEqual([1, true, ['loadend'], 0]);
  abort.abort();
  await expect(fetched).rejects.toThrow();
  expect(OriginXhr.made[0]!.aborted).toBe(true);
  await expect(playback.request!.origin(abort.signal, () => {})).rejects.toThrow();
  playback.resolve({ data: new ArrayBuffer(1), source: 'peer', bytes: bytes(0, 1) });
  await settle();
  expect([ended, events]).toEqual([[], ['loadend']]);
});

test('the time of a request is bounded, waiting for peers included', async () => {
  const { clock, playback, ended, load } = setUp();
  const { request } = load({ ...segment, timeout: 3_000 });
  await clock.advance(2_999);
  expect(ended).toEqual([]);
  await clock.advance(1);
  expect(ended).toMatchObject([{ request: { timedout: true } }]);
  expect(playback.aborts).toBe(1);
  expect(request.status).toBe(0);
});

test('an origin that is asked after a wait for peers has the time that it has without them', async () => {
  const { clock, playback, ended, load } = setUp();
  load({ ...segment, timeout: 3_000 });
  await clock.advance(2_500);
  playback.fromOrigin();
  await clock.advance(2_900);
  expect(ended).toEqual([]);
  OriginXhr.made[0]!.answer(1_000);
  await settle();
  expect(ended).toMatchObject([{ error: null }]);
  expect(clock.timers.size).toBe(0);
  // Not more.
  load({ ...segment, timeout: 3_000 });
  playback.fromOrigin();
  await clock.advance(3_000);
  expect(ended[1]).toMatchObject({ request: { timedout: true } });
});

test('a playback that is off, or a defect, leaves the request to the player', async () => {
  const { playback, caught, ended, load } = setUp();
  playback.active = false;
  load();
  OriginXhr.made[0]!.progress(1, 10);
  OriginXhr.made[0]!.answer(10);
  expect(playback.request).toBeUndefined();
  expect(playback.bypassed).toEqual([10, 0]);
  // What the origin answers with an error VHS asks for again.
  load();
  OriginXhr.made[1]!.answer(20, 404);
  expect([playback.bypassed, ended.length]).toEqual([[10, 0], 2]);
  playback.active = true;
  playback.load = () => {
    throw new Error('a defect');
  };
  load();
  expect(caught).toHaveBeenCalledWith('loader', expect.any(Error));
  OriginXhr.made[2]!.answer(10);
  expect(ended).toHaveLength(3);
});
