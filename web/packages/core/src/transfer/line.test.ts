import { describe, expect, it } from 'vitest';
import type { OriginFetcher, OriginResult } from '../ports.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';

/** One fetch of a segment that answers when a test says so, on a line of its own or on one that is given. */
function fetching(clock = new FakeClock(), line = createLine(clock)) {
  const stop = new AbortController();
  let progress: Parameters<OriginFetcher>[1] = () => {};
  let answer: (result: OriginResult) => void = () => {};
  let refuse: (error: Error) => void = () => {};
  const result = line.fetch(
    {
      origin: (signal, onProgress) => {
        progress = onProgress;
        return new Promise((resolve, reject) => {
          answer = resolve;
          refuse = reject;
          signal.addEventListener('abort', reject);
        });
      },
    },
    stop.signal,
    () => {},
  );
  result.catch(() => {});
  const done = (bytes: number, transferMs?: number) => {
    answer({ data: new ArrayBuffer(bytes), status: 200, url: '', transferMs });
    return result;
  };
  const fail = () => {
    refuse(new Error('503'));
    return result;
  };
  return { clock, line, stop, done, fail, progress: (loaded: number) => progress(loaded, 1_000_000) };
}

describe('a line', () => {
  it('learns from what the loader measured, else from progress', async () => {
    const measured = fetching();
    await measured.clock.advance(5_000);
    expect(await measured.done(1_000_000, 2_000)).toMatchObject({ crowded: false });
    expect(measured.line.estimate()).toBeCloseTo(4_000_000);

    const watched = fetching();
    await watched.clock.advance(1_000);
    watched.progress(100_000);
    await watched.clock.advance(2_000);
    await watched.done(1_100_000);
    expect(watched.line.estimate()).toBeCloseTo(4_000_000);
    expect(watched.line.sampledAt()).toBe(watched.clock.now());
  });

  it('has no sample of a short segment, but the time that as much again takes', async () => {
    const { line, done, clock } = fetching();
    expect(line.timeUs(20_000)).toBe(-1);
    await clock.advance(260);
    await done(20_000, 160);
    expect(line.estimate()).toBeUndefined();
    expect(line.timeUs(20_000)).toBe(260_000);
    line.bypassed(500_000, 1_000);
    expect(line.timeUs(20_000)).toBe(140_000);
  });

  it('takes what came at once for all that the answer takes', async () => {
    const { line, done, clock, progress } = fetching();
    await clock.advance(100);
    progress(20_000);
    await done(20_000);
    expect(line.timeUs(20_000)).toBe(100_000);
  });

  it('goes by what peers bring while the origin fails, and only then', async () => {
    const clock = new FakeClock();
    const line = createLine(clock);
    line.byPeers(1_000_000, 1_000);
    expect(line.estimate()).toBeUndefined();
    const failed = fetching(clock, line);
    await expect(failed.fail()).rejects.toThrow('503');
    line.byPeers(1_000_000, 2_000);
    expect(line.estimate()).toBeCloseTo(4_000_000);
    const up = fetching(clock, line);
    await up.done(1_000_000, 1_000);
    const known = line.estimate();
    line.byPeers(1_000_000, 10);
    expect(line.estimate()).toBe(known);
  });

  it('is only bounded by a fetch that is given up, at its last look that found something', async () => {
    const clock = new FakeClock();
    const line = createLine(clock);
    const giveUp = async (bytes: number, ms: number, idleMs = 0) => {
      const { progress, stop } = fetching(clock, line);
      progress(10_000);
      await clock.advance(ms);
      progress(10_000 + bytes);
      await clock.advance(idleMs);
      progress(10_000 + bytes);
      stop.abort();
      await settle();
    };
    await giveUp(500_000, 1_000);
    expect(line.estimate()).toBeUndefined();
    line.bypassed(500_000, 1_000);
    // What came behind a lost packet was there and not seen; looks that find nothing new are none.
    await giveUp(375_000, 1_000, 1_000);
    expect(line.estimate()).toBe(4_000_000);
    // So much was there for certain; and so little cannot be late alone.
    await giveUp(1_000_000, 1_000);
    expect(line.estimate()).toBeGreaterThan(5_000_000);
    await giveUp(250_000, 4_000);
    expect(line.estimate()).toBeLessThan(2_500_000);
    // None was a whole segment: the next look at the line is not put off.
    expect(line.sampledAt()).toBeUndefined();
  });

  it('learns once from a fetch, though players abort what has ended too', async () => {
    const { clock, line, stop, progress, done } = fetching();
    progress(10_000);
    await clock.advance(1_000);
    // The last look was long ago, or found little of what had come.
    progress(110_000);
    await clock.advance(1_000);
    await done(1_000_000, 2_000);
    stop.abort();
    await settle();
    expect(line.estimate()).toBeCloseTo(4_000_000);
  });

  it('takes nothing for the capacity that had to share the line with peers', async () => {
    const { line, done } = fetching();
    line.bypassed(500_000, 1_000);
    line.others(500_000);
    expect(await done(500_000, 2_000)).toMatchObject({ crowded: true });
    expect(line.estimate()).toBeCloseTo(4_000_000);
  });
});
