import { expect, it } from 'vitest';
import { complete, createCache } from './cache.ts';

const of = (limit: number, pinned: string[] = []) => {
  const gone: string[] = [];
  return {
    gone,
    cache: createCache(
      limit,
      (id) => pinned.includes(id),
      (id) => gone.push(id),
    ),
  };
};

it('keeps pieces, the last one shorter, and knows when a segment is complete', () => {
  const { cache } = of(1 << 20);
  const e = cache.open('a', 16384 + 3);
  expect(cache.put('a', 1, new Uint8Array([1, 2, 3]))).toBe(true);
  expect(cache.put('a', 1, new Uint8Array([9, 9, 9]))).toBe(false);
  expect(complete(e)).toBe(false);
  expect(cache.piece('a', 0)).toBeUndefined();
  expect([...cache.piece('a', 1)!]).toEqual([1, 2, 3]);
  cache.put('a', 0, new Uint8Array(16384));
  expect(complete(cache.get('a'))).toBe(true);
  expect(cache.bytes()).toBe(16387);
});

it('evicts the least recently used segment, whole, but never what is waited for', () => {
  const { cache, gone } = of(30, ['b']);
  for (const id of ['a', 'b', 'c']) cache.open(id, 10);
  cache.put('a', 0, new Uint8Array(10));
  cache.piece('a', 0);
  cache.open('d', 10);
  expect(gone).toEqual(['c']);
  cache.open('e', 20);
  expect(gone).toEqual(['c', 'a', 'd']);
  expect([...cache.ids()]).toEqual(['b', 'e']);
  expect(cache.bytes()).toBe(30);
});

it('drops without an event', () => {
  const { cache, gone } = of(30);
  cache.open('a', 10);
  cache.drop('a');
  expect([cache.bytes(), gone.length, cache.has('a', 0)]).toEqual([0, 0, false]);
});
