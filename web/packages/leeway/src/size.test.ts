import { expect, test } from 'vitest';
import { budget, measure } from '../build.mjs';

test('the drop-in stays within its budget', async () => {
  const { bytes, brotli } = await measure();
  console.log(`leeway.js: ${bytes} bytes, ${brotli} after brotli (at most ${budget})`);
  expect(brotli).toBeLessThanOrEqual(budget);
}, 60_000);
