import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Ahead, prefetch } from './prefetch.ts';

const file = new URL('../../../../../spec/vectors/prefetch.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
  cases: { name: string; why: string; input: Ahead; segments: number }[];
};

test.each(cases)('$name: $why', ({ input, segments }) => {
  expect(prefetch(input)).toBe(segments);
});
