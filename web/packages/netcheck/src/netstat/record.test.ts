import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Arrival } from './arrival.ts';
import { pattern, patternFigures } from './record.ts';

/** Loss and order by the words of the RFCs. */
function naive(sent: number, order: number[]) {
  const first = order.filter((s, i) => s >= 0 && s < sent && order.indexOf(s) === i);
  const reordered = first.flatMap((s, i) => {
    const earliest = first.findIndex((other, j) => j < i && other > s);
    let before = 0;
    while (before < i && first[i - 1 - before]! > s) before++;
    return earliest < 0 ? [] : [{ sequence: s, extent: i - earliest, before }];
  });
  const lost = Array.from({ length: sent }, (_, s) => s).filter((s) => !first.includes(s));
  return { lost, reordered };
}

test('a record says what the definitions say', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      fc.array(fc.integer({ min: -2, max: 45 }), { maxLength: 60 }),
      (sent, order) => {
        const p = pattern({ sent, arrivals: order.map((s, i): Arrival => [s, s, i]) });
        const want = naive(sent, order);
        expect(p.reordered.map(({ sequence, extent, before }) => ({ sequence, extent, before }))).toEqual(
          want.reordered,
        );
        expect(p.distances).toEqual(want.lost.map((s, i) => (i === 0 ? 0 : s - want.lost[i - 1]!)));
        const inPeriods = p.periods.flatMap((x) => Array.from({ length: x.length }, (_, i) => x.first + i));
        expect(inPeriods).toEqual(want.lost);
        expect(p.lost + p.first.length).toBe(sent);
        expect(p.first.length + p.duplicates + p.foreign).toBe(order.length);
      },
    ),
  );
});

test('a path that only reorders loses nothing', () => {
  const arrivals = Array.from({ length: 1000 }, (_, i): Arrival => [i ^ 3, (i ^ 3) * 1000, i * 1000]);
  const figures = patternFigures(pattern({ sent: 1000, arrivals }), 'up');
  expect(figures.find((f) => f.name === 'loss')).toMatchObject({ value: 0, unit: 'ratio', direction: 'up' });
  expect(figures.find((f) => f.name === 'reorder_extent')).toMatchObject({ value: 3 });
  expect(figures.some((f) => f.name === 'loss_distance')).toBe(false);
});

test('a record of 65,536 messages in reverse takes no time that grows with its square', () => {
  const n = 1 << 16;
  const p = pattern({ sent: n, arrivals: Array.from({ length: n }, (_, i): Arrival => [n - 1 - i, 0, i]) });
  expect(p.reordered.at(-1)).toMatchObject({ sequence: 0, extent: n - 1, before: n - 1 });
  expect(patternFigures(p, 'up').find((f) => f.name === 'reorder_extent')).toMatchObject({ value: n - 1 });
});
