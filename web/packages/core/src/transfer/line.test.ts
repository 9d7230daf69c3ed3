import { describe, expect, it } from 'vitest';
import type { OriginFetcher, OriginResult } from '../ports.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';

/** A line, and one fetch of a segment on it that answers when a test says so. */
function fetching() {
  const clock = new FakeClock();
  const line = createLine(clock);
  const stop = new AbortController();
  let progress: Parameters<OriginFetcher>[1] = () => {};
  let answer: (result: OriginResult) => void = () => {};
  const result = line.fetch(
    {
      origin: (signal, onProgress) => {
        progress = onProgress;
        return new Promise((resolve, reject) => {
          answer = resolve;
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
  return { clock, line, stop, done, progress: (loaded: number) => progress(loaded, 1_000_000) };
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

  it('learns from a fetch that peers made needless, up to the last look that found something', async () => {
    const { clock, line, stop, progress } = fetching();
    progress(10_000);
    await clock.advance(1_000);
    progress(510_000);
    // Looks that find nothing new, because the page was busy or the line stood still, are none.
    for (let i = 0; i < 5; i++) {
      await clock.advance(100);
      progress(510_000);
    }
    await clock.advance(90);
    stop.abort();
    await settle();
    expect(line.estimate()).toBeCloseTo(4_000_000);
    // It was no whole segment: the next look at the line is not put off.
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
