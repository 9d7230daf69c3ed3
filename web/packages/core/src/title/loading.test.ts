import { expect, test } from 'vitest';
import type { Engine, SegmentRequest } from '../ports.ts';
import { createCredit } from '../transfer/credit.ts';
import { createLine } from '../transfer/line.ts';
import { createLoading } from './loading.ts';

const clock = { now: () => 0, setTimer: () => 1, clearTimer() {} };

/** A title whose engine is under the test's hand. */
function setUp(engine: Pick<Engine, 'load' | 'adopt'>) {
  return createLoading({
    clock,
    line: createLine(clock),
    credit: createCredit(clock),
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
