import { expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { createShortParts } from './shortparts.ts';

it('makes a measurement of as many parts as it takes, which stands for the time since the last', () => {
  const clock = new FakeClock();
  const line = createLine(clock);
  const came = createShortParts({ clock, line });
  expect([came(30_000, 30), came(30_000, 30), line.estimate()]).toEqual([false, false, undefined]);
  expect(came(40_000, 40)).toBe(true);
  expect(line.estimate()).toBeCloseTo(8e6, 0);
  expect(line.sampledAt()).toBe(clock.now());
  expect(came(80_000, 1)).toBe(true); // the line's own
  expect(line.estimate()).toBeCloseTo(8e6, 0);
  clock.sleep(60_000);
  expect([came(33_000, 66), came(33_000, 66)]).toEqual([false, true]);
  // 4 Mbit/s for a sixteenth of a minute, behind 8 Mbit/s for a tenth of a second.
  expect(line.estimate()).toBeGreaterThan(4e6);
  expect(line.estimate()).toBeLessThan(4.5e6);
});
