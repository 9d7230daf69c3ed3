import { expect, test } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createTurn } from './turn.ts';

const settled = () => Promise.resolve().then(() => {});

test('what happens in one turn is one decision, and none comes after the end', async () => {
  const clock = new FakeClock();
  let decided = 0;
  const turn = createTurn(clock, () => decided++);
  turn.changed();
  turn.changed();
  expect(decided).toBe(0);
  await settled();
  expect(decided).toBe(1);
  turn.wake(100);
  turn.ahead(Number.POSITIVE_INFINITY);
  turn.ahead(200);
  await clock.advance(150);
  await settled();
  expect(decided).toBe(2);
  await clock.advance(100);
  await settled();
  expect(decided).toBe(3);
  turn.wake(100);
  turn.ahead(100);
  turn.stop();
  turn.changed();
  await clock.advance(1_000);
  await settled();
  expect(decided).toBe(3);
});
