import { expect, it } from 'vitest';
import { createFetcher, type Fetcher } from './fetcher.ts';

it('shares items among lanes, and says how long all of them took', () => {
  let now = 1000;
  const asked: [number, number, number][] = [];
  const took: number[] = [];
  const fetcher: Fetcher = createFetcher(
    () => now,
    (lane, item, bytes) => asked.push([lane.link, item, bytes]),
    (ms) => took.push(ms),
  );
  const lanes = [7, 9].map((link) => ({ link, channel: 0 }));
  fetcher.begin({ lanes, bytes: 55, item: 10, ahead: 2 });
  expect(asked).toEqual([
    [7, 0, 10],
    [9, 1, 10],
    [7, 2, 10],
    [9, 3, 10],
  ]);
  for (const link of [9, 9, 7, 7, 9, 9]) {
    expect(took).toEqual([]);
    now += 20;
    fetcher.arrived({ link, channel: 0 });
  }
  expect(asked.slice(4)).toEqual([
    [9, 4, 10],
    [9, 5, 5],
  ]);
  expect(took).toEqual([120]);
});
