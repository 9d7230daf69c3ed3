import { describe, expect, it } from 'vitest';
import { arrange, detailed, labelHeight, maxOthers, type Participant } from './layout';

function participants(others: number): Participant[] {
  const viewers = Array.from({ length: others }, (_, i): Participant => ({ id: `v${i}`, kind: 'viewer' }));
  return [{ id: 'origin', kind: 'origin' }, { id: 'seed', kind: 'seed' }, { id: 'you', kind: 'you' }, ...viewers];
}

describe('the arrangement', () => {
  const sizes: [number, number][] = [
    [490, 400],
    [300, 170],
    [396, 210],
    [700, 560],
  ];
  for (const [width, height] of sizes) {
    it(`keeps all circles inside ${width} × ${height} and apart`, () => {
      for (let n = 0; n <= 5; n++) {
        const places = [...arrange(participants(n), width, height).values()];
        expect(places).toHaveLength(n + 3);
        for (const p of places) {
          expect(p.x - p.w / 2).toBeGreaterThanOrEqual(0);
          expect(p.x + p.w / 2).toBeLessThanOrEqual(width);
          expect(p.y - p.h / 2).toBeGreaterThanOrEqual(0);
          expect(p.y + p.h / 2).toBeLessThanOrEqual(height);
        }
        for (const [i, a] of places.entries()) {
          for (const b of places.slice(i + 1)) {
            const apart = Math.abs(a.x - b.x) >= (a.w + b.w) / 2 || Math.abs(a.y - b.y) >= (a.h + b.h) / 2;
            expect(apart, `${n} others: ${JSON.stringify([a, b])}`).toBe(true);
          }
        }
      }
    });
  }

  it('has room for the rates of eight viewers at the size of a desktop, and knows where it has not', () => {
    const [width, height] = [660, 336];
    expect(detailed(7, width, height)).toBe(true);
    const viewers = [...arrange(participants(7), width, height)].filter(([id]) => id.startsWith('v')).map(([, p]) => p);
    for (const [i, a] of viewers.entries()) {
      for (const b of viewers.slice(i + 1)) {
        const [upper, lower] = a.y < b.y ? [a, b] : [b, a];
        const beside = Math.abs(a.x - b.x) >= lower.w / 2 + 48;
        expect(beside || lower.y - lower.h / 2 >= upper.y + upper.h / 2 + labelHeight, JSON.stringify([a, b])).toBe(
          true,
        );
      }
    }
    expect(detailed(12, width, height)).toBe(false);
    expect(detailed(7, 366, 210)).toBe(false);
    expect(detailed(5, 366, 210)).toBe(true);
  });

  it('draws no more than it has room for', () => {
    expect(arrange(participants(40), 490, 400).size).toBe(maxOthers + 3);
  });
});
