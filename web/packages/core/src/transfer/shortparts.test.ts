import { expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { createShortParts } from './shortparts.ts';

const setUp = () => {
  const clock = new FakeClock();
  const line = createLine(clock);
  return { clock, line, parts: createShortParts({ clock, line }) };
};

it('makes a measurement of as many parts as it takes', () => {
  const { line, parts } = setUp();
  expect(parts.needed(1e6)).toBe(true);
  parts.came(30_000, 30);
  parts.came(30_000, 30);
  expect(line.estimate()).toBeUndefined();
  expect(parts.needed(1e6)).toBe(true);
  parts.came(40_000, 40);
  expect(line.estimate()).toBeCloseTo(8e6, 0);
  expect(parts.needed(1e6)).toBe(false);
});

it('makes another a minute later, which stands for that time, where a choice may depend on it', () => {
  const { clock, line, parts } = setUp();
  parts.came(80_000, 80);
  line.bypassed(80_000, 80); // one of this length is the line's to take
  clock.sleep(59_000);
  expect(parts.needed(3e6)).toBe(false);
  clock.sleep(1_000);
  expect(parts.needed(2e6)).toBe(false); // four times as much is carried
  expect(parts.needed(3e6)).toBe(true);
  expect(parts.needed(1e6)).toBe(true); // until it is made
  parts.came(33_000, 66);
  parts.came(33_000, 66);
  expect(parts.needed(3e6)).toBe(false);
  // 4 Mbit/s for a sixteenth of a minute, behind 8 Mbit/s for a tenth of a second.
  expect(line.estimate()).toBeGreaterThan(4e6);
  expect(line.estimate()).toBeLessThan(4.5e6);
});
