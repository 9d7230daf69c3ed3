import { afterEach, expect, it, vi } from 'vitest';
import { cacheBytes } from './memory.ts';

afterEach(() => vi.unstubAllGlobals());

it.each([
  [undefined, 64],
  [0.25, 16],
  [0.5, 16],
  [1, 16],
  [2, 32],
  [4, 64],
  [8, 64],
  [32, 64],
])('a device with %s GiB keeps %i MiB in memory', (deviceMemory, mib) => {
  vi.stubGlobal('navigator', { deviceMemory });
  expect(cacheBytes()).toBe(mib << 20);
});
