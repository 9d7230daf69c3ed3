import type { Leeway } from '@leeway/core';
import type { HlsIFramesOnly } from 'hls.js';
import { beforeEach, describe, expect, test } from 'vitest';
import { attachHls, attachHlsClass, isHlsClass } from './attach.ts';
import type { HlsClass, HlsPlayer } from './hls.ts';
import { FakeHls, FakeMedia, fakeLeeway, PreviousLoader, TestClock } from './testing.ts';

class Page extends FakeHls {}

function setUp() {
  const clock = new TestClock();
  return { clock, hls: new FakeHls(), media: new FakeMedia(), ...fakeLeeway(clock) };
}

function show(hls: FakeHls, media: FakeMedia): void {
  hls.media = media as unknown as HTMLMediaElement;
  hls.trigger('hlsMediaAttaching');
}

beforeEach(() => {
  PreviousLoader.made = [];
});

describe('attaching', () => {
  test('wraps the loader that is there, follows the source, and gives everything back', () => {
    const { leeway, opened, hls } = setUp();
    // As hls.js has it by default.
    Object.assign(hls.config, { fLoader: undefined, startFragPrefetch: false });
    const had = { ...hls.config };
    const detach = attachHls(leeway, hls);
    expect(attachHls(leeway, hls)).toBe(detach);
    hls.loadSource('https://a/m.m3u8');
    hls.loadSource('https://a/m.m3u8');
    hls.loadSource('https://b/m.m3u8');
    expect(opened.map(({ manifest }) => manifest)).toEqual(['https://a/m.m3u8', 'https://b/m.m3u8']);
    expect(opened[0]!.closed).toBe(true);
    new hls.config.fLoader!(hls.config);
    expect(PreviousLoader.made).toHaveLength(1);
    detach();
    expect(Object.entries(hls.config)).toEqual(Object.entries(had));
    expect(hls.listening()).toBe(0);
    expect(opened[1]!.closed).toBe(true);
  });

  test('keeps a loader that the page had set itself', () => {
    const { leeway, hls } = setUp();
    class Own extends PreviousLoader {}
    hls.config.fLoader = Own;
    const detach = attachHls(leeway, hls);
    new hls.config.fLoader(hls.config);
    expect(PreviousLoader.made[0]).toBeInstanceOf(Own);
    detach();
    expect(hls.config.fLoader).toBe(Own);
  });

  test('the first segment need not wait for the media source, while there is an element that it is for', () => {
    const { leeway, hls, media } = setUp();
    hls.config.startFragPrefetch = false;
    const detach = attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    expect(hls.config.startFragPrefetch).toBe(false);
    show(hls, media);
    expect(hls.config.startFragPrefetch).toBe(true);
    hls.trigger('hlsMediaDetaching');
    expect(hls.config.startFragPrefetch).toBe(false);
    detach();
    attachHls(leeway, hls);
    expect(hls.config.startFragPrefetch).toBe(true);
    hls.trigger('hlsDestroying');
    expect(hls.config.startFragPrefetch).toBe(false);
  });

  test('a player that is destroyed is let go', () => {
    const { leeway, hls, opened } = setUp();
    attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    hls.trigger('hlsDestroying');
    expect(opened[0]!.closed).toBe(true);
    expect(hls.listening()).toBe(0);
  });

  test('a class brings players that exist and players to come', () => {
    const { leeway, opened } = setUp();
    const early = new Page();
    early.loadSource('https://a/m.m3u8');
    const original = Page.prototype.trigger;
    const undo = attachHlsClass(leeway, Page);
    early.trigger('hlsAnything');
    const late = new Page();
    late.loadSource('https://b/m.m3u8');
    expect(opened.map(({ manifest }) => manifest)).toEqual(['https://a/m.m3u8', 'https://b/m.m3u8']);
    undo();
    expect(Page.prototype.trigger).toBe(original);
    expect(opened.every(({ closed }) => closed)).toBe(true);
    expect(early.config.fLoader).toBeUndefined();
  });

  test('a class does not bring back a player that is destroyed, whose last events come afterwards', () => {
    const { leeway, opened } = setUp();
    const known = new Page();
    const unknown = new Page();
    unknown.loadSource('https://b/m.m3u8');
    const undo = attachHlsClass(leeway, Page);
    known.loadSource('https://a/m.m3u8');
    for (const hls of [known, unknown]) {
      // As hls.js does it.
      hls.trigger('hlsDestroying');
      hls.trigger('hlsMediaDetaching');
      hls.trigger('hlsMediaDetached');
      expect([hls.listening(), hls.config.fLoader]).toEqual([0, undefined]);
    }
    expect(opened.map(({ manifest, closed }) => [manifest, closed])).toEqual([['https://a/m.m3u8', true]]);
    undo();
  });

  test('a class does not bring its players of I-frames, which show thumbnails', () => {
    const { leeway, opened } = setUp();
    const name = 'loadMediaAt' satisfies keyof HlsIFramesOnly;
    class Frames extends Page {
      [name]() {}
    }
    const undo = attachHlsClass(leeway, Page);
    const frames = new Frames();
    frames.url = 'https://a/m.m3u8';
    frames.trigger('hlsManifestLoaded');
    expect(opened).toEqual([]);
    expect(frames.config.fLoader).toBeUndefined();
    undo();
  });

  test('what is no player, or the class of players, or no library, is refused with what to do', () => {
    const { leeway, hls } = setUp();
    const player = FakeHls as unknown as HlsPlayer;
    expect(() => attachHls(leeway, player)).toThrow(
      new TypeError('attachHls(leeway, hls) needs a player, not the class: new Hls(), or attachHlsClass(leeway, Hls).'),
    );
    const others: unknown[] = [
      undefined,
      null,
      {},
      { config: {}, on() {}, off() {} },
      { config: { loader: class {} } },
    ];
    for (const other of others) {
      expect(() => attachHls(leeway, other as HlsPlayer)).toThrow(
        /^attachHls\(leeway, hls\) needs a player of hls\.js/,
      );
    }
    expect(() => attachHls(undefined as unknown as Leeway, hls)).toThrow(/what createLeeway\(\) returned/);
    expect(() => attachHlsClass(leeway, hls as unknown as HlsClass)).toThrow(/needs the class Hls/);
    expect(hls.listening()).toBe(0);
  });

  test('knows a class by its shape', () => {
    expect(isHlsClass(Page)).toBe(true);
    for (const other of [undefined, null, {}, () => {}, class {}]) expect(isHlsClass(other)).toBe(false);
  });
});

describe('observations', () => {
  test('startup, time and bits played, stalls and switches', async () => {
    const { leeway, opened, hls, media, clock } = setUp();
    attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    show(hls, media);
    media.paused = false;
    media.fire('play');
    clock.time += 800;
    media.fire('playing');
    hls.trigger('hlsLevelSwitched');
    for (let i = 0; i < 8; i++) {
      clock.time += 250;
      media.currentTime += 0.25;
      media.fire('timeupdate');
    }
    hls.trigger('hlsLevelSwitched');
    hls.currentLevel = 1;
    media.fire('waiting');
    clock.time += 1_500;
    media.fire('waiting');
    media.currentTime += 0.25;
    clock.time += 250;
    media.fire('timeupdate');
    opened[0]!.onCollect!();
    // The first picture is told at once, the rest when it is asked for.
    expect(opened[0]!.observed[0]).toEqual({
      startup_ms: 800,
      stalls: 0,
      stall_ms: 0,
      played_ms: 0,
      played_bits: 0,
      switches: 0,
    });
    expect(opened[0]!.observed.slice(1)).toEqual([
      {
        stalls: 1,
        stall_ms: 1_750,
        played_ms: 2_250,
        played_bits: 2 * 500_000 + 0.25 * 1_500_000,
        switches: 1,
      },
    ]);
    opened[0]!.onCollect!();
    expect(opened[0]!.observed[2]).toMatchObject({ stalls: 0, played_ms: 0 });
    expect(opened[0]!.observed[2]).not.toHaveProperty('startup_ms');
  });

  test('the first picture of a player that plays already is told, and no time that it took', () => {
    const { leeway, opened, hls, media, clock } = setUp();
    Object.assign(media, { paused: false, currentTime: 30, readyState: 4 });
    hls.url = 'https://a/m.m3u8';
    hls.media = media as unknown as HTMLMediaElement;
    attachHls(leeway, hls);
    clock.time += 250;
    media.currentTime += 0.25;
    media.fire('timeupdate');
    expect(opened[0]!.observed).toMatchObject([{ startup_ms: 0 }]);
    // The next film is as any.
    hls.trigger('hlsMediaDetaching');
    media.readyState = 0;
    media.currentTime = 0;
    show(hls, media);
    hls.loadSource('https://b/m.m3u8');
    clock.time += 600;
    media.fire('playing');
    expect(opened[1]!.observed).toMatchObject([{ startup_ms: 600 }]);
  });

  test('how far a live stream is behind its clock is told, where it has one', () => {
    const { leeway, opened, hls, media, clock } = setUp();
    attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    show(hls, media);
    media.paused = false;
    media.fire('playing');
    const play = (live: boolean, playingDate: Date | null) => {
      Object.assign(hls, { playingDate });
      Object.assign(hls.levels[hls.currentLevel]!, { details: { live, fragments: [] } });
      for (let i = 0; i < 4; i++) {
        clock.time += 250;
        media.currentTime += 0.25;
        media.fire('timeupdate');
      }
      opened[0]!.onCollect!();
      return opened[0]!.observed.at(-1)!;
    };
    const told = play(true, new Date(Date.now() - 7_000));
    expect(told.live_ms).toBe(1_000);
    expect(told.live_lag! / told.live_ms!).toBeCloseTo(7, 0);
    // A film, a stream without a clock, and a machine whose clock is behind say nothing.
    for (const nothing of [play(false, new Date(0)), play(true, null), play(true, new Date(Date.now() + 60_000))]) {
      expect(nothing).not.toHaveProperty('live_ms');
    }
  });

  test('a stall lasts no longer than the player has the media', () => {
    const { leeway, opened, hls, media, clock } = setUp();
    attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    show(hls, media);
    media.paused = false;
    media.fire('playing', 'waiting');
    clock.time += 1_000;
    hls.trigger('hlsMediaDetaching');
    clock.time += 60_000;
    opened[0]!.onCollect!();
    expect(opened[0]!.observed.at(-1)).toMatchObject({ stalls: 1, stall_ms: 1_000 });
  });

  test('seeks, pauses and the end are no stalls, and jumps are not played', () => {
    const { leeway, opened, hls, media, clock } = setUp();
    attachHls(leeway, hls);
    hls.loadSource('https://a/m.m3u8');
    show(hls, media);
    media.paused = false;
    media.fire('playing');
    media.seeking = true;
    media.currentTime = 300;
    media.fire('seeking', 'waiting');
    clock.time += 2_000;
    media.seeking = false;
    media.fire('timeupdate');
    media.paused = true;
    media.fire('pause', 'waiting');
    expect(opened[0]!.paused).toBe(true);
    media.paused = false;
    media.fire('play');
    expect(opened[0]!.paused).toBe(false);
    media.currentTime = 599.8;
    media.fire('waiting');
    opened[0]!.onCollect!();
    expect(opened[0]!.observed[0]).toMatchObject({ stalls: 0, played_ms: 0 });
  });
});
