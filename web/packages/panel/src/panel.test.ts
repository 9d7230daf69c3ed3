import { readFileSync } from 'node:fs';
import type { Leeway } from '@leeway/core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCounts } from './counts.ts';
import { isSwitchedOff, remember } from './memory.ts';
import { readRecording, tablesOf } from './recording.ts';
import { bytes, rate, tail } from './text.ts';

afterEach(() => vi.unstubAllGlobals());

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [9_949, '9.9 kB'],
  [9_951, '10 kB'],
  [999_499, '999 kB'],
  [999_500, '1.0 MB'],
  [12_345_678, '12 MB'],
  [5e15, '5000 TB'],
])('%d bytes are %s', (n, text) => expect(bytes(n)).toBe(text));

it('rates that are unknown, and URLs, are short', () => {
  expect([rate(0), rate(1500), tail('https://a/b/c/d.ts?x=/y#z')]).toEqual(['–', '1.5 kB/s', 'c/d.ts']);
});

describe('the memory of the switch', () => {
  it('stores something while it is off alone', () => {
    const stored = new Map<string, string>();
    vi.stubGlobal('localStorage', {
      getItem: (k: string) => stored.get(k) ?? null,
      setItem: (k: string, v: string) => stored.set(k, v),
      removeItem: (k: string) => stored.delete(k),
    });
    expect(isSwitchedOff()).toBe(false);
    remember(true);
    expect([isSwitchedOff(), [...stored]]).toEqual([true, [['leeway', 'off']]]);
    remember(false);
    expect([isSwitchedOff(), stored.size]).toEqual([false, 0]);
  });

  it('is that of the page where it may not store', () => {
    const refuse = () => {
      throw new Error('sandboxed');
    };
    vi.stubGlobal('localStorage', { getItem: refuse, setItem: refuse, removeItem: refuse });
    expect(isSwitchedOff()).toBe(false);
    remember(true);
    expect(isSwitchedOff()).toBe(true);
    remember(false);
    expect(isSwitchedOff()).toBe(false);
  });
});

it('counts what viewers and servers sent, also of titles that ended or were opened anew', () => {
  const title = (manifest: string, peer: number, origin: number, direct: number) => ({
    manifest,
    totals: {
      bytes: { origin, seed: 1, peer, peer_relay: 2, seed_relay: 3 },
      uploaded: { direct, relay: 4 },
    },
  });
  let titles = [title('a', 10, 20, 30)];
  const count = createCounts({ stats: () => ({ titles }) } as unknown as Leeway);
  expect(count()).toEqual({ taken: 12, given: 34, served: 24 });
  expect(count()).toEqual({ taken: 12, given: 34, served: 24 });
  titles = [title('a', 15, 20, 30), title('b', 100, 0, 0)];
  expect(count()).toEqual({ taken: 17 + 102, given: 34 + 4, served: 24 + 4 });
  titles = [];
  expect(count()).toEqual({ taken: 119, given: 38, served: 28 });
  titles = [title('a', 1, 5, 0)];
  expect(count()).toEqual({ taken: 119 + 3, given: 38 + 4, served: 28 + 9 });
});

it('counts once what came before the tracker named the title', () => {
  const title = (origin: number, name?: string) => ({
    manifest: 'a',
    ...(name && { title: name }),
    totals: { bytes: { origin, seed: 0, peer: 0, peer_relay: 0, seed_relay: 0 }, uploaded: { direct: 0, relay: 0 } },
  });
  let titles = [title(100)];
  const count = createCounts({ stats: () => ({ titles }) } as unknown as Leeway);
  expect(count().served).toBe(100);
  titles = [title(150, 'film')];
  expect(count().served).toBe(150);
  titles = [title(40)]; // opened anew
  expect(count().served).toBe(190);
  titles = [title(60, 'film')];
  expect(count().served).toBe(210);
});

describe('a recording of the schedule', () => {
  it.each(['recorded-go.jsonl', 'recorded-ts.jsonl'])('%s has all that is shown', (name) => {
    const steps = readRecording(readFileSync(new URL(`../../../../spec/vectors/${name}`, import.meta.url), 'utf8'));
    expect(steps.length).toBeGreaterThan(20);
    const cells = steps.flatMap((step) => tablesOf(step, steps[0]!)).flatMap(([, , rows]) => rows.flat());
    expect(cells.filter((cell) => /undefined|NaN|null/.test(cell))).toEqual([]);
  });

  it('has the pieces of one request in one row, and times from where one looks', () => {
    const ask = { type: 'request', segment: 'aabbccddee', peer: '1122334455', lane: 0, reason: 'near' };
    const segment = { id: 'aabbccddee', deadline_us: 9e6, asked_us: 4e6, certificate: 'held', pieces: 9, have: [3] };
    const input = {
      now_us: 5e6,
      off: null,
      segments: [{ ...segment, origin: 'idle' }],
      peers: [{ id: '1122334455', role: 'viewer', rate: 1500, queued: 16384 }],
    };
    const actions = [
      { ...ask, piece: 0 },
      { ...ask, piece: 2 },
      { type: 'wake', at_us: 6.5e6 },
    ];
    const [step] = readRecording(JSON.stringify({ input, actions }));
    const first = { input: { ...input, now_us: 2e6 }, actions: [] };
    const [decided, segments, peers] = tablesOf(step!, first);
    expect(decided!.slice(0, 1)).toEqual(['At 3.0 s']);
    expect(decided![2]).toEqual([
      ['request', 'aabbccdd', '11223344', 'near', '0, 2'],
      ['wake', '', '', 'in 1.5 s', ''],
    ]);
    expect(segments![2]).toEqual([['aabbccdd', '1.0 s ago', 'in 4.0 s', 'held', '1 / 9', 'idle']]);
    expect(peers![2]).toEqual([['11223344', 'viewer', '1.5 kB/s', '16 kB']]);
  });

  it('is no other file', () => {
    for (const text of ['<html>', '{"input":{}}', '[]', '7']) expect(() => readRecording(text)).toThrow();
  });
});
