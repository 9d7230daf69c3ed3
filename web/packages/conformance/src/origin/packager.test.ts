import { appendFile, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { follow, packagerArgs, roomy } from './packager.ts';

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

test('segments of low latency can be asked for before they are whole', () => {
  const args = packagerArgs('/fixtures/chunks/index.m3u8', { window: 5, head: 8 }, true);
  const after = (option: string) => args[args.indexOf(option) + 1];
  expect([after('-ldash'), after('-streaming'), after('-use_timeline'), after('-frag_duration')]).toEqual([
    '1',
    '1',
    '0',
    '0.5',
  ]);
  expect(packagerArgs('index.m3u8', { window: 5, head: 8 })).not.toContain('-ldash');
});

test('a segment that is being made is given as far as it is there, until it is whole', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leeway-follow-'));
  const path = join(folder, 'seg.m4s.tmp');
  await writeFile(path, 'one ');
  let whole = false;
  const body = follow(await open(path), () => whole);
  expect(String((await body.next()).value)).toBe('one ');
  const next = body.next();
  await appendFile(path, 'two');
  expect(String((await next).value)).toBe('two');
  whole = true;
  expect((await body.next()).done).toBe(true);
  await rm(folder, { recursive: true });
});
