import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mapping } from './nat.ts';

const file = new URL('../../../../../spec/vectors/nat.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
  cases: { name: string; answered: string[]; mappings: number; translated: boolean | null; mapping: string }[];
};

test.each(cases)('$name', (c) => {
  expect(mapping(c.answered, c.mappings, c.translated)).toBe(c.mapping);
});
