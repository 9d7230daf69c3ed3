import { expect, it } from 'vitest';
import { formatBytes, formatClock, formatRate, formatSeconds, percent } from './format';
import { RateMeter } from './rates';
import { explainSegment } from './reasons';

it('writes bytes, rates and times as a person reads them', () => {
  expect([0, 999, 1000, 16_384, 999_600, 12_345_678].map(formatBytes)).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '16 kB',
    '1.0 MB',
    '12 MB',
  ]);
  expect([1000, 187_500, 2_500_000].map(formatRate)).toEqual(['8 kbit/s', '1.5 Mbit/s', '20 Mbit/s']);
  expect([412, 12_340].map(formatSeconds)).toEqual(['0.41 s', '12.3 s']);
  expect([0, 64_000, 3_725_000].map(formatClock)).toEqual(['0:00', '1:04', '1:02:05']);
});

it('says all and nothing only when it is so', () => {
  expect(percent(999, 1000)).toBe(99);
  expect(percent(1, 1000)).toBe(1);
  expect(percent(5, 5)).toBe(100);
  expect(percent(0, 0)).toBe(0);
});

it('smooths bursts into a rate and falls silent', () => {
  const meter = new RateMeter(1000);
  meter.take(0, 0);
  const burst = meter.take(100_000, 500);
  expect(burst).toBeGreaterThan(0);
  expect(burst).toBeLessThan(200_000);
  let rate = burst;
  for (let at = 1000; at <= 12_000; at += 500) rate = meter.take(100_000, at);
  expect(rate).toBe(0);
});

it('names every source of a segment and why it was not a viewer', () => {
  expect(explainSegment({ peer: 5, seed: 0, origin: 0 }, undefined)).toBe('from other viewers');
  expect(explainSegment({ peer: 0, seed: 0, origin: 9 }, 'urgent')).toBe('from the origin: it was needed at once');
  expect(explainSegment({ peer: 2000, seed: 1000, origin: 0 }, 'no-holder')).toBe(
    '2.0 kB from other viewers, 1.0 kB from the seed: no other viewer had it yet',
  );
});
