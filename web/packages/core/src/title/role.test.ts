import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Line } from '../environment.ts';
import { roleOf } from './role.ts';

const file = new URL('../../../../../spec/vectors/role.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
  cases: { name: string; why: string; policy: Parameters<typeof roleOf>[0]; line: Line; role: string }[];
};

test.each(cases)('$name: $why', ({ policy, line, role }) => {
  expect(roleOf(policy, line)).toBe(role);
});
