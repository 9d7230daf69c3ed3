import { expect, it } from 'vitest';
import { createCapacity } from './capacity.ts';

it('is exact for a steady line from the first sample on', () => {
  const c = createCapacity();
  expect(c.estimate()).toBeUndefined();
  c.sample(65_535, 10, 1);
  expect(c.estimate()).toBeUndefined();
  for (let n = 0; n < 5; n++) {
    c.sample(500_000, 1000, n);
    expect(c.estimate()).toBeCloseTo(4_000_000);
  }
});

it('falls faster than it rises', () => {
  const c = createCapacity();
  for (let n = 0; n < 10; n++) c.sample(1_000_000, 2000, n);
  c.sample(1_000_000, 8000, 11);
  expect(c.estimate()!).toBeLessThan(1_700_000);
  for (let n = 0; n < 2; n++) c.sample(1_000_000, 1000, 12);
  expect(c.estimate()!).toBeLessThan(4_500_000);
});
