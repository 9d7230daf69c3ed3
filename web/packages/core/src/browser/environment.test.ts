import { afterEach, expect, test, vi } from 'vitest';
import { browserEnvironment } from './environment.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

// One page has one clock, which has shown nothing before the first case and remembers what it showed.
test.each([
  ['steps of 16.7 ms, as a Firefox that resists fingerprinting has', [100, 100, 116.667, 133.334, 133.334, 250], true],
  ['steps of 100 ms', [1_000, 1_100, 1_100, 1_200], true],
  ['steps of a millisecond', [2_000, 2_000, 2_001], false],
  ['a fine one that was asked seldom since', [3_000, 4_000], false],
])('a clock with %s', (_, readings, coarse) => {
  const { clock } = browserEnvironment();
  const now = vi.spyOn(performance, 'now');
  for (const at of readings) {
    now.mockReturnValueOnce(at);
    clock.now();
  }
  expect(clock.coarse!()).toBe(coarse);
});
