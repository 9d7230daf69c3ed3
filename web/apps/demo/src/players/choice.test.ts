import { describe, expect, it } from 'vitest';
import { sourceFor } from '../film';
import { readPlayer } from './choice';

describe('the player of a query', () => {
  it.each([
    [null, 'hlsjs'],
    ['', 'hlsjs'],
    ['shaka', 'shaka'],
    ['dash.js', 'dashjs'],
    ['Video.js', 'videojs'],
  ])('%j is %s', (text, player) => {
    expect(readPlayer(text)).toEqual({ player });
  });

  it.each(['flash', 'constructor', '<b>'.repeat(50)])('%j is none: hls.js plays, and the page says so', (text) => {
    const { player, refused } = readPlayer(text);
    expect(player).toBe('hlsjs');
    expect(refused).toMatch(
      /no player “.{1,31}”, so hls\.js plays\. There are hls\.js, Shaka, dash\.js and Video\.js\.$/,
    );
  });
});

it('each player gets the form of the film that it plays, or a sentence', () => {
  const film = { src: '/f/master.m3u8', dash: '/f/dash/master.mpd', lowLatency: false, title: '', attribution: '' };
  const page = 'http://127.0.0.1:8080/';
  expect(sourceFor(film, 'shaka', page)).toEqual({ src: film.src });
  expect(sourceFor(film, 'dashjs', page)).toEqual({ src: film.dash });
  expect(sourceFor({ ...film, lowLatency: true }, 'shaka', page)).toEqual({ src: film.dash });
  expect(sourceFor({ ...film, lowLatency: true }, 'hlsjs', page)).toEqual({ src: film.src });
  expect(sourceFor({ ...film, dash: '' }, 'dashjs', page)).toEqual({
    error: 'The film does not play: dash.js plays no HLS. Choose hls.js, Shaka or Video.js.',
  });
  // What a name does not say, the player finds out.
  expect(sourceFor({ ...film, src: 'https://a.example/play?id=1', dash: '' }, 'dashjs', page)).toEqual({
    src: 'https://a.example/play?id=1',
  });
});
