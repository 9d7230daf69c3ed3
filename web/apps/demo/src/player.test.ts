import { expect, it } from 'vitest';
import type { PageOptions } from './film';
import { Player } from './player';
import type { Driver, Listener, Start } from './players/driver';

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
