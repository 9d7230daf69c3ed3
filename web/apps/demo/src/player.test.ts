import { afterEach, expect, it, vi } from 'vitest';
import type { PageOptions } from './film';
import { Player } from './player';
import type { Driver, Listener, Start } from './players/driver';

/** What a page has, as far as a player listens to it. */
const page = new EventTarget();
vi.stubGlobal('document', page);
afterEach(() => vi.restoreAllMocks());

it('a page that is frozen amid a stall does not wait until it is back', () => {
  let now = 1000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const video = new EventTarget();
  const player = new Player(video as HTMLVideoElement);
  for (const name of ['playing', 'waiting']) video.dispatchEvent(new Event(name));
  now += 2000;
  page.dispatchEvent(new Event('freeze'));
  now += 3_600_000;
  expect(player.experience()).toMatchObject({ stalls: 1, stallMs: 2000 });
});

it('has received what it has forgotten, too', () => {
  const player = new Player(new EventTarget() as HTMLVideoElement);
  const heard: Listener[] = [];
  const start: Start = (_video, _src, _options, listener) => {
    heard.push(listener);
    return {} as Driver;
  };
  player.play(start, '', {} as PageOptions);
  for (let sn = 0; sn < 3; sn++) {
    heard[0]!.segment({ url: `${sn}`, level: 0, sn, startMs: 2000 * sn, durationMs: 2000, bytes: 100 });
    player.segments.shift(); // as the page does with what has left a live stream
  }
  expect(player.received).toBe(300);
});
