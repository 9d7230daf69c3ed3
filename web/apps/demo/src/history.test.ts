import { describe, expect, it } from 'vitest';
import { columnMs, columns, History, roundUp, without } from './history';

const bytes = (origin: number, seed = 0, peer = 0) => ({ origin, seed, peer });

describe('rates over time', () => {
  it('adds all viewers by source, in bytes per second', () => {
    const history = new History();
    for (let at = 500; at <= 20_000; at += 500) {
      const grown = at / 1000;
      history.take(at, [
        { id: 'a', ageMs: at, bytes: bytes(1000 * grown, 2000 * grown) },
        { id: 'b', ageMs: at, bytes: bytes(0, 0, 4000 * grown) },
      ]);
    }
    const points = history.points(20_000);
    expect(points).toHaveLength(10);
    for (const p of points) {
      expect(p.origin).toBeCloseTo(1000);
      expect(p.seed).toBeCloseTo(2000);
      expect(p.peer).toBeCloseTo(4000);
    }
    expect(without(points.at(-1)!)).toBeCloseTo(7000);
    expect(history.total).toEqual(bytes(20_000, 40_000, 80_000));
  });

  it('counts a viewer that came later from its first byte, and an older one from when it is heard of', () => {
    const history = new History();
    history.take(10_000, [
      { id: 'later', ageMs: 1000, bytes: bytes(300) },
      { id: 'older', ageMs: 60_000, bytes: bytes(9_000_000) },
    ]);
    expect(history.total.origin).toBe(300);
    history.take(11_000, [
      { id: 'later', ageMs: 2000, bytes: bytes(400) },
      { id: 'older', ageMs: 61_000, bytes: bytes(9_000_050) },
    ]);
    expect(history.total.origin).toBe(450);
  });

  it('spreads what a throttled window tells late over the time in between', () => {
    const history = new History();
    history.take(10_000, [{ id: 'a', ageMs: 10_000, bytes: bytes(0) }]);
    history.take(30_000, [{ id: 'a', ageMs: 30_000, bytes: bytes(20_000) }]);
    const points = history.points(30_000);
    expect(points.at(-1)!.origin).toBeCloseTo(1000);
    expect(points.at(-3)!.origin).toBeCloseTo(1000);
    expect(points[0]!.origin).toBe(0);
  });

  it('takes a counter that falls for a new beginning', () => {
    const history = new History();
    history.take(1000, [{ id: 'a', ageMs: 1000, bytes: bytes(500) }]);
    history.take(2000, [{ id: 'a', ageMs: 2000, bytes: bytes(100) }]);
    history.take(3000, [{ id: 'a', ageMs: 3000, bytes: bytes(150) }]);
    expect(history.total.origin).toBe(550);
  });

  it('keeps three minutes, and what left is still in the total', () => {
    const history = new History();
    let at = 0;
    for (; at <= 2 * columns * columnMs; at += 1000) history.take(at, [{ id: 'a', ageMs: at, bytes: bytes(at) }]);
    expect(history.points(at)).toHaveLength(columns);
    const total = history.total.origin;
    history.take(at + 60_000, []);
    expect(history.total.origin).toBe(total);
    expect(without(history.points(at + 60_000).at(-1)!)).toBe(0);
  });

  it('ends the axis at a round figure', () => {
    const mbit = (n: number) => (n * 1e6) / 8;
    for (const [rate, top] of [
      [0, 1],
      [0.4, 1],
      [1.2, 2],
      [4.9, 6],
      [7, 8],
      [12, 20],
      [61, 80],
    ] as const) {
      expect(roundUp(mbit(rate))).toBeCloseTo(mbit(top));
    }
  });
});
