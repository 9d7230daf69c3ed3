import { expect, it, vi } from 'vitest';
import type { SegmentRequest } from '../ports.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { streamUrl } from './lists.ts';
import { createPartLoads, type Followed, type PartLoadsHost } from './partload.ts';
import type { Shared } from './shared.ts';

const url = 'https://cdn/live/1.0.m4s';

/** A player that asks for a part so many ms ahead of the playhead, over a line that is to be measured again. */
const setUp = (aheadMs: number) => {
  const clock = new FakeClock();
  const fetch = vi.fn(() => new Promise<never>(() => {}));
  const line = Object.assign(createLine(clock), { estimate: () => 2_000_000, fetch });
  const stream = { listed() {}, buffer: vi.fn(), ask() {} };
  const host = {
    idOf: async () => 'an ID',
    follow: () => ({ stream }) as unknown as Followed,
    packaged: () => false,
    streamUrl,
    freshness: { dated: () => true, looked() {} },
    within: (f: Followed, what: (of: Followed['stream'], now: number) => void) => what(f.stream, 0),
  };
  const shared = { clock, line, off: null, stopped: false, settled() {} };
  const { load } = createPartLoads(shared as unknown as Shared, host as unknown as PartLoadsHost);
  const ref = { url, durationMs: 500, sequence: 1, index: 0 };
  const request = { url, playlist: url, durationMs: 500, bitrate: 1e6, adaptive: true, deadlineMs: () => aheadMs };
  const ask = async () => {
    load({ ...request, part: { ...ref, listed: () => [ref] } } as unknown as SegmentRequest).result.catch(() => {});
    await settle();
    return { buffer: stream.buffer.mock.lastCall!.slice(1), looks: line.fetch.mock.calls.length };
  };
  return { clock, line, ask };
};

it.each([
  ['that is to be measured', 2_000, 1],
  ['while the playhead has little in hand', 100, 0],
])('an origin that fails keeps no peer back on a line %s', async (_what, aheadMs, looks) => {
  const { clock, line, ask } = setUp(aheadMs);
  expect(await ask()).toEqual({ buffer: [0, false], looks });
  line.failedAt = clock.now();
  await clock.advance(29_999);
  line.fetch.mockClear();
  expect(await ask()).toEqual({ buffer: [Number.POSITIVE_INFINITY, true], looks: 0 });
  await clock.advance(1);
  expect(await ask()).toEqual({ buffer: [0, false], looks });
});
