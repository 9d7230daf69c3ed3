import { expect, it } from 'vitest';
import { createHoldings } from './holdings.ts';

const id = (n: number) => n.toString(16).padStart(32, '0');

it('keeps the last announcement of a segment', () => {
  const h = createHoldings();
  h.apply([{ segment: id(1), state: 1, pieces: 10, bitmap: new Uint8Array([0xa5, 0x40]) }], 5);
  expect(h.holds[id(1)]).toEqual([0, 2, 5, 7, 9]);
  expect(h.heard[id(1)]).toBe(5);
  h.apply([{ segment: id(1), state: 2, pieces: 10 }], 6);
  expect(h.holds[id(1)]).toBe('complete');
  h.remove(id(1), 3);
  h.remove(id(1), 4);
  expect(h.holds[id(1)]).toEqual([0, 1, 2, 5, 6, 7, 8, 9]);
  h.apply([{ segment: id(1), state: 0, pieces: 0 }], 7);
  expect(h.size()).toBe(0);
});

it('forgets the oldest announced beyond 4096 segments', () => {
  const h = createHoldings();
  for (let n = 0; n < 4100; n++) h.apply([{ segment: id(n), state: 2, pieces: 1 }], n);
  expect([h.size(), h.holds[id(3)], h.holds[id(4)]]).toEqual([4096, undefined, 'complete']);
});
