import { expect, it } from 'vitest';
import { Arrivals } from './arrivals.ts';

it('dates a message by the beat that was sent after it, and never before the least transit', () => {
  const arrivals = new Arrivals();
  // Sent by a clock that is 1,000,000 µs ahead; 20 ms on the way, found at once.
  arrivals.found(20_000, 1_000_000);
  // 20 ms on the way, found 30 ms late. A beat of 45 ms says that it was there.
  arrivals.found(70_000, 1_020_000);
  expect(arrivals.dated(70_000, 1_020_000, 45_000)).toBe(45_000);
  // A beat that was overtaken says 31 ms, when it was on its way.
  expect(arrivals.dated(70_000, 1_020_000, 31_000)).toBe(40_000);
  // A later beat says nothing.
  expect(arrivals.dated(70_000, 1_020_000, 90_000)).toBe(70_000);
  // The path becomes shorter.
  arrivals.found(105_000, 1_100_000);
  expect(arrivals.dated(170_000, 1_120_000, 0)).toBe(125_000);
});

it("lives with a sender's clock that wraps", () => {
  const arrivals = new Arrivals();
  const zero = 2 ** 32 - 10_000;
  arrivals.found(50_000, zero);
  arrivals.found(100_000, (zero + 20_000) % 2 ** 32);
  expect(arrivals.dated(100_000, (zero + 20_000) % 2 ** 32, 0)).toBe(70_000);
});
