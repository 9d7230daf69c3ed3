import { expect, it } from 'vitest';
import type { OriginResult, SegmentRequest } from '../ports.ts';
import { FakeClock } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { paced } from './paced.ts';

const url = 'https://a/1.m4s';

it('takes what there is where there is nothing else', async () => {
  const clock = new FakeClock();
  const line = createLine(clock);
  const origin: SegmentRequest['origin'] = async () => {
    await clock.advance(1_600);
    return { data: new ArrayBuffer(200_000), status: 200, url, transferMs: 1_600 };
  };
  const request = paced({ origin, durationMs: 2_000 } as SegmentRequest, clock, line);
  await line.fetch(request, new AbortController().signal, () => {});
  expect(line.estimate()).toBe(1e6);
});

it.each([
  ['all there at once', 200, false],
  ['sent while it is made', 1_600, true],
  ['slower than it plays', 2_500, false],
  ['given up', 300, true],
])('a segment that may still be made, and was %s', async (what, ms, bound) => {
  const clock = new FakeClock();
  const line = createLine(clock);
  const stop = new AbortController();
  const fetch = async (durationMs: number, bytes: number, takes: number) => {
    const origin: SegmentRequest['origin'] = async (_signal, onProgress) => {
      onProgress(bytes / 2, bytes);
      await clock.advance(takes);
      onProgress(bytes, bytes);
      if (what === 'given up' && takes === ms) stop.abort();
      return { data: new ArrayBuffer(bytes), status: 200, url, transferMs: takes } satisfies OriginResult;
    };
    return line.fetch(paced({ origin, durationMs } as SegmentRequest, clock, line), stop.signal, () => {});
  };
  await fetch(2_000, 400_000, 100);
  expect(line.estimate()).toBe(32e6);
  const { crowded } = await fetch(2_000, 200_000, ms);
  if (what !== 'given up') expect(!!crowded).toBe(bound);
  if (bound) expect(line.estimate()).toBe(32e6);
  else expect(line.estimate()).toBeLessThan(24e6);
});
