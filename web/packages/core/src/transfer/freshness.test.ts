import { expect, test } from 'vitest';
import { createFreshness } from './freshness.ts';
import type { Shared } from './shared.ts';

/** A line of so many bits per second, measured at 0 or never. */
const freshness = (now: { ms: number }, estimate: number | undefined) =>
  createFreshness({
    clock: { now: () => now.ms },
    line: { estimate: () => estimate, sampledAt: () => (estimate === undefined ? undefined : 0) },
    segments: { byId: new Map() },
  } as unknown as Shared);

test.each([
  ['measured of late', 59_999, 1_000_000, false],
  ['measured long ago', 60_000, 1_000_000, true],
  ['measured long ago, four times what is played', 60_000, 4_000_000, false],
  ['measured long ago, less than four times what is played', 60_000, 3_999_999, true],
  ['never measured', 0, undefined, true],
])('%s', (_, ms, estimate, stale) => {
  const f = freshness({ ms }, estimate);
  expect(f.stale(1_000_000, () => false)).toBe(false);
  expect(f.stale(1_000_000, () => true)).toBe(stale);
  expect(f.stale(1_000_000, () => true)).toBe(false);
});
