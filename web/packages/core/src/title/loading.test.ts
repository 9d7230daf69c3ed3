import { expect, test } from 'vitest';
import type { Clock, Engine, OriginResult, SegmentRequest } from '../ports.ts';
import { FakeClock } from '../testing/clock.ts';
import { createCredit } from '../transfer/credit.ts';
import { createLine } from '../transfer/line.ts';
import { createLoading } from './loading.ts';

const clock = { now: () => 0, setTimer: () => 1, clearTimer() {} };

/** A title whose engine is under the test's hand, or that has none. */
function setUp(engine?: Pick<Engine, 'load' | 'adopt'>, time: Clock = clock, line = createLine(time)) {
  return createLoading({
    clock: time,
    line,
    credit: createCredit(time),
    engine: () => engine,
    mayStart: () => true,
    awaitsSeed: () => false,
    pictured() {},
    awaited() {},
    bypass: () => 'no-holder',
    caught(_where, error) {
      throw error;
    },
  });
}

test('what a player is told of a segment never falls back, whichever of its senders reports', () => {
  let report: (loaded: number, total: number) => void = () => {};
  const loads = setUp({
    adopt() {},
    load: (_request, onProgress) => {
      report = onProgress;
      return { result: new Promise(() => {}), abort() {} };
    },
  });
  const told: number[] = [];
  loads.load({ upcoming: [] } as unknown as SegmentRequest, (loaded) => told.push(loaded));
  // The origin is far ahead as a first piece comes from a peer.
  for (const loaded of [700_000, 16_384, 720_000, 800_000]) report(loaded, 800_000);
  expect(told).toEqual([700_000, 700_000, 720_000, 800_000]);
});

test('a segment that is sent as fast as it is made says nothing of the line, also before there is an engine', async () => {
  const time = new FakeClock();
  const line = createLine(time);
  const loads = setUp(undefined, time, line);
  const load = async (bytes: number, ms: number, growing?: object) => {
    const origin = async (): Promise<OriginResult> => {
      await time.advance(ms);
      return { data: new ArrayBuffer(bytes), status: 200, url: '', transferMs: ms };
    };
    const request = { origin, growing, durationMs: 2_000, deadlineMs: () => 0, upcoming: [] };
    await loads.load(request as unknown as SegmentRequest, () => {}).result;
  };
  await load(400_000, 100);
  await load(200_000, 1_600, {});
  expect(line.estimate()).toBe(32e6);
});
