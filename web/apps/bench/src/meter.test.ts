import { expect, it } from 'vitest';
import { createMeter } from './meter.ts';

it('counts bytes, and the longest gap between two arrivals', () => {
  let now = 0;
  const meter = createMeter(() => now);
  for (const at of [1000, 1020, 1500, 1510]) {
    now = at;
    meter.add(7);
  }
  expect(meter.read()).toEqual({ bytes: 28, silence: 480 });
});

it('knows a silence that lasts, and none before the first byte', () => {
  let now = 900;
  const meter = createMeter(() => now);
  expect(meter.read().silence).toBe(0);
  meter.add(1);
  now = 2000;
  expect(meter.read().silence).toBe(1100);
});
