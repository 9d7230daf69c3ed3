import { bench, describe } from 'vitest';
import { long } from '../testing/long.ts';
import { decide } from './decide.ts';
import { rank } from './rank.ts';

// The baseline is a hash for each of the 500 pieces.
const ranks = () => {
  for (let n = 0; n < 500; n++) rank('5'.repeat(32), n, '1'.repeat(32));
};

describe.each([
  ['whose seed is busy', 131_072],
  ['whose seed takes eight', 0],
])('a segment of 500 pieces %s', (_, queued) => {
  const input = long(queued);
  bench('ranks', ranks);
  bench('decide', () => {
    decide(input);
  });
});
