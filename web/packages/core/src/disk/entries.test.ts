import { expect, it } from 'vitest';
import { type Entry, mostEntries, parseEntries, printEntries } from './entries.ts';

const entry = (n: number): Entry => ({
  id: n.toString(16).padStart(32, '0'),
  bytes: n,
  used: 2,
  site: 'demo',
  name: `/${n}"\n`,
  keyId: 'aa',
  issuedAt: 3,
  notAfter: 4,
});

it('a list is read as it was written, the last entry of an ID alone, and of too many the last', () => {
  const all = [entry(1), entry(2)];
  expect(parseEntries(printEntries(all))).toEqual(all);
  expect(parseEntries(printEntries([entry(1), { ...entry(1), used: 9 }]))).toEqual([{ ...entry(1), used: 9 }]);
  const many = Array.from({ length: mostEntries + 3 }, (_, n) => entry(n));
  expect(parseEntries(printEntries(many))).toEqual(many.slice(3));
});

it('what is no entry is left out', () => {
  const good = JSON.parse(printEntries([entry(1)]))[0];
  const bad = [
    null,
    7,
    [],
    {},
    good.slice(1),
    ...[0, 1, 2, 3, 4, 5, 6, 7].map((at) => good.with(at, [good[at]])),
    good.with(0, '../list'),
    good.with(1, -1),
    good.with(2, 1.5),
    good.with(6, 2 ** 60),
  ];
  for (const one of bad) expect(parseEntries(JSON.stringify([good, one])).length, JSON.stringify(one)).toBeLessThan(2);
  for (const text of ['', 'x', '{}', '7', 'null', '[[', '[1,2']) expect(parseEntries(text)).toEqual([]);
});
