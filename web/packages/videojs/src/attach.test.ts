import type { Leeway } from '@leeway/core';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeMedia, fakeLeeway, settle, TestClock } from '../../hlsjs/src/testing.ts';
import { attachVideojs, attachVideojsAll } from './attach.ts';
import { FakePlayer, newPlaylist, newVideojs, OriginXhr } from './testing.ts';
import { isVideojs, type VideojsPlayer, type XhrOptions } from './videojs.ts';

const manifest = 'https://a/m.m3u8';
const segment: XhrOptions = { uri: 'https://cdn/5.ts', requestType: 'segment', headers: {} };

beforeEach(() => {
  OriginXhr.made = [];
  vi.stubGlobal('document', { baseURI: 'https://page.example.com/watch/' });
});

function setUp() {
  const clock = new TestClock();
  const videojs = newVideojs();
  const player = new FakePlayer(videojs);
  const ask = (options: XhrOptions) => player.vhs!.xhr(options, () => {});
  return { clock, videojs, player, ask, ...fakeLeeway(clock) };
}

describe('attaching', () => {
  test('follows the source, and gives everything back', async () => {
    const { leeway, videojs, player, opened, ask } = setUp();
    const { xhr } = videojs.Vhs;
    const detach = attachVideojs(leeway, videojs, player);
    expect(attachVideojs(leeway, videojs, player)).toBe(detach);
    const first = player.src(manifest);
    player.say('loadstart');
    expect(opened).toHaveLength(1);
    const second = player.src('../b/m.m3u8');
    expect(opened.map((one) => one.manifest)).toEqual([manifest, 'https://page.example.com/b/m.m3u8']);
    expect(opened[0]!.closed).toBe(true);
    ask(segment);
    expect(opened[1]!.request).toMatchObject({ url: 'https://cdn/5.ts', startMs: 20_000 });
    detach();
    expect(opened[1]!.closed).toBe(true);
    expect(videojs.Vhs.xhr).toBe(xhr);
    expect(player.vhs!.xhr).toBe(second);
    expect([...player.listeners.values()].every((set) => set.size === 0)).toBe(true);
    opened[1]!.request = undefined;
    ask(segment);
    expect(opened[1]!.request).toBeUndefined();
    expect(OriginXhr.made).toHaveLength(1);
    expect(first.ended).toEqual([]);
  });

  test('a player that is reset plays its title no more', () => {
    const { leeway, videojs, player, opened } = setUp();
    attachVideojs(leeway, videojs, player);
    player.src(manifest);
    player.vhs = undefined;
    player.say('playerreset');
    expect(opened.map(({ closed }) => closed)).toEqual([true]);
    player.src(manifest);
    expect(opened.map(({ closed }) => closed)).toEqual([true, false]);
  });

  test("VHS goes by the browser's estimate of the line until peers have sent a part of a segment, and afterwards again", async () => {
    const { leeway, clock, videojs, player, opened, ask } = setUp();
    const detach = attachVideojs(leeway, videojs, player);
    player.src(manifest);
    const { options_: settings } = player.vhs!;
    settings.useNetworkInformationApi = true;
    ask(segment);
    opened[0]!.fromOrigin();
    clock.time += 100;
    OriginXhr.made[0]!.answer(1_000);
    await settle();
    expect(settings.useNetworkInformationApi).toBe(true);
    ask(segment);
    opened[0]!.resolve({ data: new ArrayBuffer(9), source: 'peer', bytes: { origin: 0, seed: 4, peer: 5 } });
    await settle();
    expect(settings.useNetworkInformationApi).toBe(false);
    detach();
    expect(settings.useNetworkInformationApi).toBe(true);
  });

  test('leaves playlists, keys, captions and other players alone', () => {
    const { leeway, videojs, player, opened, ask } = setUp();
    attachVideojs(leeway, videojs, player);
    player.src(manifest);
    for (const requestType of ['hls-playlist', 'segment-key', undefined]) ask({ ...segment, requestType });
    ask({ ...segment, uri: 'https://cdn/5.vtt' });
    const other = new FakePlayer(videojs);
    other.src(manifest);
    other.vhs!.xhr(segment, () => {});
    expect(OriginXhr.made).toHaveLength(5);
    expect(opened[0]).toMatchObject({ request: undefined, bypassed: undefined });
  });

  test('the hooks of the page stay, for one player and for all', () => {
    const { leeway, videojs, player, opened } = setUp();
    const all = new Set();
    Object.assign(videojs.Vhs.xhr, { _requestCallbackSet: all });
    attachVideojs(leeway, videojs, player);
    expect((videojs.Vhs.xhr as unknown as { _requestCallbackSet: unknown })._requestCallbackSet).toBe(all);
    Object.assign(videojs.Vhs.xhr, { onRequest: 1 });
    const xhr = player.src(manifest);
    xhr.hooks.add((options) => ({ ...options, uri: `${options.uri}?token=1` }));
    player.vhs!.xhr(segment, () => {});
    // The name is that of the playlist; the origin is asked as the hook says.
    expect(opened[0]!.request!.url).toBe('https://cdn/5.ts');
    opened[0]!.fromOrigin();
    expect(OriginXhr.made[0]!.options).toMatchObject({ uri: 'https://cdn/5.ts?token=1', timeout: 45_000 });
  });

  test('a page that sends requests itself goes on with it', async () => {
    const { leeway, videojs, player, opened, ask } = setUp();
    const sent: XhrOptions[] = [];
    videojs.Vhs.xhr = (options, callback) => {
      sent.push(options);
      return new OriginXhr(options, callback);
    };
    attachVideojs(leeway, videojs, player);
    player.src(manifest);
    ask({ ...segment, requestType: 'hls-playlist' });
    ask(segment);
    opened[0]!.fromOrigin();
    await settle();
    expect(sent.map(({ requestType }) => requestType)).toEqual(['hls-playlist', 'segment']);
  });

  test('DASH is not opened, and plays as before', () => {
    const { leeway, videojs, player, opened, ask } = setUp();
    attachVideojs(leeway, videojs, player);
    player.src('https://a/m.mpd', newPlaylist(9), 'application/dash+xml');
    ask(segment);
    expect(OriginXhr.made).toHaveLength(1);
    expect(opened).toEqual([]);
  });

  test('a player that plays already is taken up', () => {
    const { leeway, videojs, player, opened } = setUp();
    player.src(manifest);
    attachVideojs(leeway, videojs, player, { title: 't' });
    expect(opened.map((one) => one.manifest)).toEqual([manifest]);
  });

  test('reports what the viewer saw', () => {
    const { leeway, videojs, clock, player, opened } = setUp();
    const media = new FakeMedia();
    player.media = media;
    attachVideojs(leeway, videojs, player);
    player.src(manifest);
    clock.time += 700;
    media.paused = false;
    media.fire('play', 'playing');
    clock.time += 1_000;
    media.currentTime = 1;
    media.fire('timeupdate');
    opened[0]!.onCollect!();
    const sum = (name: 'startup_ms' | 'played_ms' | 'played_bits' | 'switches') =>
      opened[0]!.observed.reduce((all, delta) => all + (delta[name] ?? 0), 0);
    expect([sum('startup_ms'), sum('played_ms'), sum('played_bits'), sum('switches')]).toEqual([700, 1_000, 1.5e6, 0]);
  });

  test('counts bits and switches of the picture on the screen, not of what VHS fetches meanwhile', () => {
    const { leeway, videojs, clock, player, opened } = setUp();
    const media = new FakeMedia();
    player.media = media;
    attachVideojs(leeway, videojs, player);
    // Its loader is at a rendition of 1.5 Mbit/s.
    player.src(manifest);
    player.cues.push({ startTime: 4, endTime: 8, value: { bandwidth: 1_500_000 } });
    player.cues.push({ startTime: 0, endTime: 4, value: { bandwidth: 500_000 } });
    media.fire('playing');
    const seen: [switches: number, bits: number][] = [];
    for (const time of [1, 2, 3, 4, 5, 9]) {
      clock.time += 1_000;
      media.currentTime = time;
      media.fire('timeupdate');
      opened[0]!.onCollect!();
      const { switches = 0, played_bits = 0 } = opened[0]!.observed.at(-1)!;
      seen.push([switches, played_bits]);
    }
    const low: (typeof seen)[number] = [0, 500_000];
    // Where there is no cue it is what it was. The last step is a seek.
    expect(seen).toEqual([low, low, low, [1, 1_500_000], [0, 1_500_000], [0, 0]]);
  });

  test('a mistake says how it goes', () => {
    const { leeway, videojs, player } = setUp();
    expect(() => attachVideojs({} as Leeway, videojs, player)).toThrow(/createLeeway/);
    expect(() => attachVideojs(leeway, {} as typeof videojs, player)).toThrow(/window.videojs/);
    expect(() => attachVideojs(leeway, videojs, {} as VideojsPlayer)).toThrow(/needs a player/);
    expect(() => attachVideojsAll(leeway, {} as typeof videojs)).toThrow(/window.videojs/);
    const old = { ...videojs, VERSION: '7.21.0' };
    expect([isVideojs(videojs), isVideojs(undefined), isVideojs(old)]).toEqual([true, false, false]);
  });
});

describe('all players of a page', () => {
  test('those that are there and those to come, until it is undone', () => {
    const { leeway, videojs, player, opened } = setUp();
    videojs.all.push(player);
    player.src(manifest);
    const { xhr } = videojs.Vhs;
    const undo = attachVideojsAll(leeway, videojs);
    const later = new FakePlayer(videojs);
    for (const f of videojs.setUp) f(later);
    later.src('https://a/later.m3u8');
    expect(opened.map((one) => one.manifest)).toEqual([manifest, 'https://a/later.m3u8']);
    player.say('dispose');
    expect(opened[0]!.closed).toBe(true);
    expect(videojs.Vhs.xhr).not.toBe(xhr);
    undo();
    expect(opened[1]!.closed).toBe(true);
    expect(videojs.Vhs.xhr).toBe(xhr);
    expect(videojs.setUp.size).toBe(0);
  });
});
