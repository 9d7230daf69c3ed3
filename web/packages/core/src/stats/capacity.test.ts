import { describe, expect, it } from 'vitest';
import { createCapacity } from './capacity.ts';

/** Megabits per second. */
const told = (c: ReturnType<typeof createCapacity>) => c.told()! / 1e6;

describe('capacity', () => {
  it('says at most a sixteenth too much of a steady line, less with every second measured', () => {
    const c = createCapacity();
    expect(c.estimate()).toBeUndefined();
    c.sample(65_535, 10, 0, 1);
    expect(c.estimate()).toBeUndefined();
    const margins = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => {
      c.sample(500_000, 1000, 0, n);
      return told(c) / 4 - 1;
    });
    expect(c.estimate()).toBeCloseTo(4_000_000);
    expect(margins[0]).toBeCloseTo(0.0625 * 0.5 ** (1 / 3));
    expect(margins[9]).toBeCloseTo(0.0625 * 0.5 ** (10 / 3));
  });

  it('is the mean of a line that wavers, not its lower end', () => {
    const c = createCapacity();
    for (let n = 0; n < 40; n++) c.sample(1_000_000, n % 2 ? 1_800 : 2_200, 0, n);
    expect(told(c)).toBeGreaterThan(3.9);
    expect(told(c)).toBeLessThan(4.1);
  });

  it('falls faster than it rises', () => {
    const c = createCapacity();
    for (let n = 0; n < 10; n++) c.sample(1_000_000, 2000, 0, n);
    c.sample(1_000_000, 8000, 0, 11);
    expect(told(c)).toBeLessThan(1.7);
    for (let n = 0; n < 2; n++) c.sample(1_000_000, 1000, 0, 12);
    expect(told(c)).toBeLessThan(4.5);
  });

  it('takes a sample after a long time for more, however short it is', () => {
    const after = (ms: number) => {
      const c = createCapacity();
      for (let n = 0; n < 10; n++) c.sample(1_000_000, 2000, 0, n);
      c.sample(1_000_000, 200, 0, ms);
      return told(c);
    };
    expect(after(100)).toBeLessThan(5);
    expect(after(60_000)).toBeGreaterThan(10);
  });

  it('is moved by a transfer that shared the line only out of what that one shows', () => {
    const c = createCapacity();
    c.sample(500_000, 2000, 500_000);
    expect(c.told()).toBeUndefined();
    for (let n = 0; n < 10; n++) c.sample(1_000_000, 2000, 0, n);
    const before = told(c);
    // Half of the line, or all of a line beside a wider one: both are possible.
    c.sample(500_000, 2000, 500_000);
    c.sample(500_000, 1000, 5_000_000);
    expect(told(c)).toBe(before);
    expect(c.sampledAt()).toBe(9);
    // More than was known came from the origin alone.
    c.sample(2_000_000, 2000, 200_000);
    expect(told(c)).toBeGreaterThan(before + 0.3);
    // All that came is less.
    for (let n = 0; n < 5; n++) c.sample(200_000, 4000, 200_000);
    expect(told(c)).toBeLessThan(1.3);
  });

  it('a transfer of the player itself is a sample, and no reason to put the next look off', () => {
    const c = createCapacity();
    c.sample(200_000, 800, 0);
    expect(told(c)).toBeCloseTo(2 * (1 + 0.0625 * 0.5 ** (0.8 / 3)));
    expect(c.sampledAt()).toBeUndefined();
  });
});
