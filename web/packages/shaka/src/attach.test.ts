import type { Leeway } from '@leeway/core';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { FakeMedia, fakeLeeway, TestClock } from '../../hlsjs/src/testing.ts';
import { attachShaka, attachShakaClass } from './attach.ts';
import { isShaka, type ShakaPlayer } from './shaka.ts';
import { newPlayer, newStream, shaka, startOrigin } from './testing.ts';

const { NetworkingEngine } = shaka.net;
const { SEGMENT, MANIFEST } = NetworkingEngine.RequestType as { SEGMENT: number; MANIFEST: number };
const manifest = 'https://a/m.m3u8';

let detach: (() => void) | undefined;
afterEach(() => detach?.());

function setUp() {
  const clock = new TestClock();
  const player = newPlayer();
  const request = (type: number, uri: string, context?: object) =>
    (player.getNetworkingEngine() as unknown as InstanceType<typeof NetworkingEngine>).request(
      type,
      NetworkingEngine.makeRequest([uri], NetworkingEngine.defaultRetryParameters()),
      context,
    ).promise;
  return { clock, player, request, ...fakeLeeway(clock) };
}

describe('attaching', () => {
  test('follows the source, and gives everything back', async () => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    const register = vi.spyOn(NetworkingEngine, 'registerScheme');
    const filters = vi.spyOn(player.getNetworkingEngine()!, 'registerRequestFilter');
    const gone = vi.spyOn(player.getNetworkingEngine()!, 'unregisterRequestFilter');
    detach = attachShaka(leeway, shaka, player);
    expect(attachShaka(leeway, shaka, player)).toBe(detach);
    player.load(manifest);
    player.say('loaded');
    player.load('../b/m.m3u8');
    expect(opened.map(({ manifest }) => manifest)).toEqual([manifest, 'https://page.example.com/b/m.m3u8']);
    expect(opened[0]!.closed).toBe(true);
    const { stream, segments } = newStream(origin.url('/'), 3);
    const shared = request(SEGMENT, origin.url('/0.ts'), { stream, segment: segments[0] });
    await vi.waitFor(() => expect(opened[1]!.request).toBeDefined());
    opened[1]!.fromOrigin();
    await shared;
    detach();
    expect(opened[1]!.closed).toBe(true);
    opened[1]!.request = undefined;
    expect((await request(SEGMENT, origin.url('/1.ts'), { stream, segment: segments[1] })).data.byteLength).toBe(1_000);
    expect(opened[1]!.request).toBeUndefined();
    expect(gone.mock.calls).toEqual(filters.mock.calls);
    // What Shaka had registered itself, as it had.
    const { HttpFetchPlugin, NetworkingEngine: engine } = shaka.net;
    expect(register).toHaveBeenLastCalledWith('https', HttpFetchPlugin.parse, engine.PluginPriority.PREFERRED, true);
  });

  test.each([
    'before',
    'after',
  ])("a page's own plug-in that was there %s the player was attached stays", async (when) => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    const { parse } = shaka.net.HttpFetchPlugin;
    const { APPLICATION, PREFERRED } = NetworkingEngine.PluginPriority;
    const own = vi.fn(parse);
    const register = () => NetworkingEngine.registerScheme('http', own, APPLICATION, true);
    onTestFinished(() => {
      NetworkingEngine.unregisterScheme('http');
      NetworkingEngine.registerScheme('http', parse, PREFERRED, true);
    });
    if (when === 'before') register();
    detach = attachShaka(leeway, shaka, player);
    if (when === 'after') register();
    player.load(manifest);
    const { stream, segments } = newStream(origin.url('/'), 3);
    await request(SEGMENT, origin.url('/0.ts'), { stream, segment: segments[0] });
    detach();
    await request(SEGMENT, origin.url('/1.ts'), { stream, segment: segments[1] });
    expect([own.mock.calls.length, opened[0]!.request]).toEqual([2, undefined]);
  });

  test('leaves manifests, captions and other players alone', async () => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    detach = attachShaka(leeway, shaka, player);
    player.load(manifest);
    const { stream, segments } = newStream(origin.url('/'), 3);
    const context = { stream, segment: segments[0] };
    await request(MANIFEST, origin.url('/m.m3u8'));
    await request(SEGMENT, origin.url('/0.vtt'), { ...context, stream: { ...stream, type: 'text' } });
    await setUp().request(SEGMENT, origin.url('/0.ts'), context);
    expect(origin.asked.map(({ url }) => url)).toEqual(['/m.m3u8', '/0.vtt', '/0.ts']);
    expect(opened[0]).toMatchObject({ request: undefined, bypassed: undefined });
  });

  test('what it preloads is of another title, and comes as without Leeway', async () => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    detach = attachShaka(leeway, shaka, player);
    player.load(manifest);
    const { stream, segments } = newStream(origin.url('/next/'), 3);
    const context = { stream, segment: segments[0], isPreload: true };
    expect((await request(SEGMENT, origin.url('/next/0.ts'), context)).data.byteLength).toBe(1_000);
    expect(opened[0]).toMatchObject({ request: undefined, bypassed: undefined });
  });

  test('a playback of DASH is shared; one of which the kind is not known is not opened, and plays as before', async () => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    detach = attachShaka(leeway, shaka, player);
    const { stream, segments } = newStream(origin.url('/'), 3);
    player.load('https://a/m.x', 'UNKNOWN');
    await request(SEGMENT, origin.url('/0.m4s'), { stream, segment: segments[0] });
    expect(origin.asked).toHaveLength(1);
    expect(opened).toEqual([]);
    player.load('https://a/m.mpd', 'DASH');
    const shared = request(SEGMENT, origin.url('/1.m4s'), { stream, segment: segments[1] });
    await vi.waitFor(() => expect(opened[0]!.request).toBeDefined());
    opened[0]!.fromOrigin();
    await shared;
    expect(opened[0]!.manifest).toBe('https://a/m.mpd');
  });

  test('a player that plays already is taken up', () => {
    const { leeway, player, opened } = setUp();
    player.load(manifest);
    detach = attachShaka(leeway, shaka, player, { title: 't' });
    expect(opened.map(({ manifest }) => manifest)).toEqual([manifest]);
  });

  test('reports what the viewer saw', () => {
    const { leeway, clock, player, opened } = setUp();
    const media = new FakeMedia();
    player.media = media as unknown as HTMLMediaElement;
    detach = attachShaka(leeway, shaka, player);
    player.load(manifest);
    player.say('variantchanged', 'variantchanged');
    clock.time += 700;
    media.paused = false;
    media.fire('play', 'playing');
    clock.time += 1_000;
    media.currentTime = 1;
    media.fire('timeupdate');
    opened[0]!.onCollect!();
    const sum = (name: 'startup_ms' | 'played_ms' | 'played_bits' | 'switches') =>
      opened[0]!.observed.reduce((all, delta) => all + (delta[name] ?? 0), 0);
    expect([sum('startup_ms'), sum('played_ms'), sum('played_bits'), sum('switches')]).toEqual([700, 1_000, 1.5e6, 1]);
    player.say('unloading');
    expect(opened[0]!.closed).toBe(true);
  });

  test('the core hears of the picture when no segment is on its way, since it begins links then', async () => {
    const { leeway, player, opened, request } = setUp();
    const origin = await startOrigin();
    const media = new FakeMedia();
    player.media = media as unknown as HTMLMediaElement;
    detach = attachShaka(leeway, shaka, player);
    player.load(manifest);
    const { stream, segments } = newStream(origin.url('/'), 3);
    const first = request(SEGMENT, origin.url('/0.ts'), { stream, segment: segments[0] });
    await vi.waitFor(() => expect(opened[0]!.request).toBeDefined());
    media.fire('playing');
    expect(opened[0]!.observed).toEqual([]);
    opened[0]!.fromOrigin();
    await first;
    expect(opened[0]!.observed).toMatchObject([{ startup_ms: expect.any(Number) }]);
    // Once; and one that is given up has ended as well.
    player.say('loading');
    player.load(manifest);
    opened[1]!.request = undefined;
    const second = request(SEGMENT, origin.url('/1.ts'), { stream, segment: segments[1] });
    second.catch(() => {});
    await vi.waitFor(() => expect(opened[1]!.request).toBeDefined());
    media.fire('playing');
    expect(opened[1]!.observed).toEqual([]);
    opened[1]!.reject(new Error('aborted'));
    await vi.waitFor(() => expect(opened[1]!.observed).toHaveLength(1));
  });

  test('a mistake says how it goes', () => {
    const { leeway, player } = setUp();
    expect(() => attachShaka({} as Leeway, shaka, player)).toThrow(/createLeeway/);
    expect(() => attachShaka(leeway, {} as typeof shaka, player)).toThrow(/window.shaka/);
    expect(() => attachShaka(leeway, shaka, {} as ShakaPlayer)).toThrow(/new shaka.Player/);
    const old = { ...shaka, Player: { version: 'v4.16.2', prototype: shaka.Player.prototype } };
    expect([isShaka(shaka), isShaka(undefined), isShaka(class {}), isShaka(old)]).toEqual([true, false, false, false]);
  });
});

describe('all players of a page', () => {
  test('are attached at their next event, also those that were there; and let go', async () => {
    const { leeway, player, opened } = setUp();
    const { dispatchEvent } = shaka.Player.prototype;
    player.load('https://a/0.m3u8');
    detach = attachShakaClass(leeway, shaka);
    expect(opened).toEqual([]);
    player.say('adaptation');
    const late = newPlayer();
    late.load('https://a/1.m3u8');
    expect(opened.map(({ manifest }) => manifest)).toEqual(['https://a/0.m3u8', 'https://a/1.m3u8']);
    await late.destroy();
    detach();
    expect(opened.map(({ closed }) => closed)).toEqual([true, true]);
    newPlayer().load('https://a/2.m3u8');
    expect(opened).toHaveLength(2);
    expect(shaka.Player.prototype.dispatchEvent).toBe(dispatchEvent);
  });

  test('each has its own segments, also one to which Shaka gives the filters of another, as to that of interstitials', async () => {
    const { leeway, player, opened } = setUp();
    const origin = await startOrigin();
    const filters = vi.spyOn(player.getNetworkingEngine()!, 'registerRequestFilter');
    detach = attachShakaClass(leeway, shaka);
    player.load(manifest);
    const ad = setUp();
    ad.player.say('configurationchanged');
    ad.player.getNetworkingEngine()!.registerRequestFilter(filters.mock.calls[0]![0]);
    ad.player.load('https://a/ad.m3u8');
    const { stream, segments } = newStream(origin.url('/ad/'), 3);
    const shared = ad.request(SEGMENT, origin.url('/ad/0.ts'), { stream, segment: segments[0] });
    await vi.waitFor(() => expect(opened.map(({ request }) => !!request)).toEqual([false, true]));
    opened[1]!.fromOrigin();
    expect((await shared).data.byteLength).toBe(1_000);
  });

  test('a defect while attaching is caught, and the event passes', () => {
    const { leeway, player, caught } = setUp();
    detach = attachShakaClass(leeway, shaka);
    player.getNetworkingEngine = () => {
      throw new Error('defect');
    };
    const heard = vi.fn();
    player.addEventListener('loading', heard);
    player.say('loading');
    expect(heard).toHaveBeenCalledOnce();
    expect(caught[0]).toBe('shaka attach');
  });
});
