import { expect, it } from 'vitest';
import { Numbers } from './neighbors';

it('gives each number once, however quickly it is asked', () => {
  const first = new Numbers(1);
  expect([first.next(), first.next(), first.next(), first.next()]).toEqual([2, 3, 4, 5]);
});

it('leaves out what another window has given, and what a window has', () => {
  const second = new Numbers(2);
  second.hear(3);
  second.hear(7);
  second.hear(4);
  expect([second.next(), second.next()]).toEqual([8, 9]);
});
