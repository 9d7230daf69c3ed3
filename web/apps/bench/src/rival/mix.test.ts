import Hls from 'hls.js';
import { expect, it } from 'vitest';
import { type Library, mix } from './mix.ts';

/** An engine that notes which player it would follow. */
function engine() {
  let playing: () => unknown = () => undefined;
  class Loader {}
  return {
    Loader,
    getConfigForHlsJs: () => ({ fLoader: Loader, pLoader: Loader }),
    bindHls: (get: () => unknown) => {
      playing = get;
    },
    playing: () => playing(),
  };
}

it('the player of a page loads by the engine, and the engine follows it', () => {
  const loaded: string[] = [];
  class Player {
    static DefaultConfig: Record<string, unknown> = { maxBufferLength: 30 };
    readonly config = { ...Player.DefaultConfig };
    loadSource(url: string) {
      loaded.push(url);
    }
  }
  const page: { Hls?: typeof Player } = {};
  const rival = engine();
  mix(page, rival);
  expect(page.Hls).toBeUndefined();
  page.Hls = Player;
  page.Hls = Player; // as a page does that makes a second player
  expect(page.Hls).toBe(Player);
  const player = new Player();
  expect(player.config).toEqual({ maxBufferLength: 30, fLoader: rival.Loader, pLoader: rival.Loader });
  expect(rival.playing()).toBeUndefined();
  player.loadSource('/a.m3u8');
  expect(rival.playing()).toBe(player);
  expect(loaded).toEqual(['/a.m3u8']);
});

it('hls.js has what is used of it', () => {
  expect(Hls.DefaultConfig).toBeTypeOf('object');
  expect((Hls as unknown as Library).prototype.loadSource).toBeTypeOf('function');
});
