/** The entry of the package as a developer meets it first: in Node, and with something left out. */
import { expect, test } from 'vitest';
import { createLeeway, type LeewayOptions, type Notice } from './index.ts';

test('without a page, start() says so in one notice, and everything else can be called', () => {
  const leeway = createLeeway({ tracker: 'wss://tracker.example.com' });
  const notices: Notice[] = [];
  leeway.on('notice', (notice) => notices.push(notice));
  leeway.start();
  expect(notices).toEqual([{ code: 'no-webrtc', message: expect.any(String), hint: expect.any(String) }]);
  expect(leeway.state).toBe('off');
  const playback = leeway.open('https://video.example.com/m.m3u8');
  expect(playback.active).toBe(false);
  playback.close();
  leeway.stop();
  expect(leeway.stats()).toMatchObject({ state: 'stopped', session: null, titles: [] });
});

test.each([
  undefined,
  {},
  { tracker: '' },
])('no tracker (%j) is a mistake that says how it goes', (options: unknown) => {
  const make = () => createLeeway(options as LeewayOptions);
  expect(make).toThrow(TypeError);
  expect(make).toThrow(/createLeeway needs { tracker: "wss:/);
});
