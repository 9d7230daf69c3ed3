import { expect, test } from 'vitest';
import { packagerArgs, roomy } from './packager.ts';

test('a packager keeps the pace of the clock, encodes nothing and keeps what has left the window', () => {
  const args = packagerArgs('/fixtures/live/index.m3u8', { window: 5, head: 8 });
  const after = (option: string) => args[args.indexOf(option) + 1];
  expect(args.indexOf('-re')).toBeLessThan(args.indexOf('-i'));
  expect(after('-i')).toBe('/fixtures/live/index.m3u8');
  expect(after('-c')).toBe('copy');
  expect(after('-window_size')).toBe('5');
  expect(Number(after('-extra_window_size'))).toBeGreaterThan(100);
});

test('three segments are between a player and the edge', () => {
  const mpd =
    '<MPD type="dynamic" minimumUpdatePeriod="PT2S" suggestedPresentationDelay="PT2S" timeShiftBufferDepth="PT10S">';
  expect(roomy(mpd)).toBe(mpd.replace('Delay="PT2S"', 'Delay="PT6S"'));
  expect(roomy('<MPD type="static">')).toBe('<MPD type="static">');
});
