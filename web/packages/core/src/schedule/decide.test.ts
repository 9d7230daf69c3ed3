import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { long } from '../testing/long.ts';
import { createRecorder, replay } from '../testing/recorder.ts';
import type { Action } from './action.ts';
import { decide } from './decide.ts';
import type { ScheduleInput } from './input.ts';
import { rank } from './rank.ts';

vi.mock('./rank.ts', async (original) => {
  const module = await original<typeof import('./rank.ts')>();
  return { ...module, rank: vi.fn(module.rank) };
});

interface Vectors {
  ranks: { segment: string; piece: number; peer: string; rank: number }[];
  cases: { name: string; why: string; input: ScheduleInput; actions: Action[] }[];
}
const file = new URL('../../../../../spec/vectors/schedule.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;

describe('vectors of the schedule', () => {
  it('ranks', () => {
    for (const v of vectors.ranks) expect(rank(v.segment, v.piece, v.peer)).toBe(v.rank);
  });

  it.each(vectors.cases)('$name', ({ input, actions }) => {
    const before = JSON.stringify(input);
    expect(decide(input)).toEqual(actions);
    expect(JSON.stringify(input)).toBe(before);
  });

  it('have names of their own, and a sentence', () => {
    expect(new Set(vectors.cases.map((c) => c.name)).size).toBe(vectors.cases.length);
    expect(vectors.cases.every((c) => c.why.endsWith('.'))).toBe(true);
  });
});

describe('recorder', () => {
  it('keeps the last inputs, which replay to the same actions', () => {
    const recorder = createRecorder(3);
    for (const { input } of vectors.cases) recorder.record(input, decide(input));
    expect(recorder.dump().split('\n')).toHaveLength(3);
    expect(replay(recorder.dump())).toEqual([]);
    const forged = recorder.dump().replaceAll('"race"', '"near"');
    expect(replay(forged).length).toBeGreaterThan(0);
  });
});

describe('a segment of many pieces', () => {
  it('costs a hash a piece at most, and none while no seed takes a piece', () => {
    const ranked = (queued: number) => {
      vi.mocked(rank).mockClear();
      const asked = decide(long(queued)).filter((a) => a.type === 'request').length;
      return { asked, hashes: vi.mocked(rank).mock.calls.length };
    };
    expect(ranked(131_072)).toEqual({ asked: 0, hashes: 0 });
    expect(ranked(0)).toEqual({ asked: 8, hashes: 500 });
  });
});
