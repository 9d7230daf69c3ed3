/**
 * Whatever of Leeway fails, a page is no worse off than without it: every failure on every line, and beside it the same world
 * by the origin alone. `leeway-lab bench outage` has the same cells in Chromium.
 */
import { describe, expect, it, vi } from 'vitest';
import { Film } from './film.ts';
import { type Access, type Failure, handAt, type Watched, watch } from './page.ts';
import { signer } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const lines: Access[] = [
  { name: '2 Mbit/s', rate: 2_000_000, rttMs: 30 },
  { name: '4 Mbit/s', rate: 4_000_000, rttMs: 30 },
  { name: '20 Mbit/s', rate: 20_000_000, rttMs: 30 },
  { name: '20 Mbit/s, then 0.2', rate: 20_000_000, rttMs: 30, low: 200_000 },
  { name: '4 Mbit/s, 300 ms', rate: 4_000_000, rttMs: 300 },
];

const failures: Failure[] = [
  { name: 'nothing fails' },
  { name: 'tracker refuses', door: 'refuses' },
  { name: 'tracker blackholes', door: 'blackholes' },
  { name: 'tracker is silent', door: 'silent' },
  { name: 'tracker answers after 5 s', door: 'late' },
  { name: 'tracker closes behind its welcome', door: 'closes' },
  { name: 'tracker answers 403', door: 'forbids' },
  { name: 'tracker dies in mid-play', door: 'dies' },
  { name: 'no seed', peers: 'none' },
  { name: 'seed is silent', peers: 'silent-seed' },
  { name: 'peers send 1 kB/s', peers: 'slow' },
  { name: 'no engine script', engine: 'missing' },
  { name: 'engine script takes 10 s', engine: 'slow' },
  { name: 'no link opens', shut: true },
];

/** Films of 1.4 Mbit/s; what is left for the last piece differs. */
const films = [100, 1_800, 9_000].map((last) => new Film(26, 4_000, 42 * 16_384 + last));
const seeds = [0, 1, 2];

/** The library's scripts, and what four peers send before they are left alone: a message or two, and certificates. */
const ownBytes = 100_000;

/** What the first script takes of the line, and what else a page is about before its first picture. */
const firstMs = ({ rate }: Access) => 20 + (20_000 * 8_000) / rate;

const alone = new Map<string, Promise<Watched>>();
const without = (line: Access, seed: number) => {
  const key = `${line.name} ${seed}`;
  if (!alone.has(key)) alone.set(key, watch(films[seed]!, signer, line, undefined, seed));
  return alone.get(key)!;
};

describe.each(failures)('$name', (failure) => {
  it.each(lines)('$name', async (line) => {
    for (const seed of seeds) {
      const mine = await watch(films[seed]!, signer, line, failure, seed);
      const theirs = await without(line, seed);
      // A second is waited in all for what turns out to be nothing; and once more the origin is asked for the rest of a segment.
      const late = 1_050 + (ownBytes * 8_000) / line.rate + line.rttMs;
      expect(mine.wrong).toBe(0);
      expect.soft(mine.stallMs, 'stalls, ms').toBeLessThanOrEqual(theirs.stallMs + 50);
      expect.soft(mine.startupMs, 'first picture, ms').toBeLessThanOrEqual(theirs.startupMs + firstMs(line));
      // Ten seconds in hand so much later, or so much less in hand then: with segments of four seconds the moment itself jumps.
      expect.soft(handAt(mine, theirs.filledMs + late), 'in hand, ms').toBeGreaterThanOrEqual(10_000 - late);
    }
  });
});

/** The failures in which peers are asked for something all the same, and those in which they send it. */
const asks = /^nothing|after 5 s|dies|seed is silent|1 kB|10 s/;
const sends = /^nothing|after 5 s|dies|1 kB|10 s/;

describe('the simulation', () => {
  it.each(failures)('has what it says: $name', async (failure) => {
    const { asked, bytes } = await watch(films[0]!, signer, lines[2]!, failure, 0);
    expect([asked > 0, bytes.seed + bytes.peer > 0]).toEqual([asks.test(failure.name), sends.test(failure.name)]);
  });

  it('has peers that serve where nothing fails', async () => {
    const mine = await watch(films[0]!, signer, lines[2]!, failures[0], 0);
    expect(mine.bytes.seed).toBeGreaterThan(10 * mine.bytes.origin);
  });

  it('has them serve before the picture is on screen', async () => {
    const [at, painting] = [0, 250].map((paintMs) => ({ ...lines[2]!, paintMs }));
    const mine = await watch(films[0]!, signer, painting!, failures[0], 0);
    expect(mine.startupMs).toBeGreaterThan((await watch(films[0]!, signer, at!, failures[0], 0)).startupMs + 240);
    expect(mine.bytes.seed).toBeGreaterThan(10 * mine.bytes.origin);
  });

  it('has the line fall, so that what is not in hand by then is missed', async () => {
    const [steady, falls] = await Promise.all(
      [lines[2]!, lines[3]!].map((line) => watch(films[0]!, signer, line, undefined, 0)),
    );
    const late = 4_000 + falls!.startupMs + 10_000;
    expect(handAt(falls!, late)).toBeLessThan(handAt(steady!, late));
  });
});
