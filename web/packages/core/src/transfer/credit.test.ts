import { expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createCredit, creditMs } from './credit.ts';

it('what waits at the same time is one wait, over all titles', async () => {
  const clock = new FakeClock();
  const credit = createCredit(clock);
  const [a, b] = [{}, {}];
  await clock.advance(500);
  expect(credit.leftMs()).toBe(creditMs);
  credit.waits(a, true);
  await clock.advance(100);
  credit.waits(b, true);
  await clock.advance(100);
  credit.waits(a, false);
  await clock.advance(100);
  credit.waits(b, false);
  await clock.advance(5_000);
  expect(credit.leftMs()).toBeCloseTo(creditMs - 300);
});

it('is used up once, and not less than that', async () => {
  const clock = new FakeClock();
  const credit = createCredit(clock);
  credit.waits(clock, true);
  await clock.advance(creditMs + 1_000);
  expect(credit.leftMs()).toBe(0);
});

it('ends with the first piece that is verified', async () => {
  const clock = new FakeClock();
  const credit = createCredit(clock);
  credit.waits(clock, true);
  await clock.advance(creditMs + 1);
  credit.prove();
  expect(credit.leftMs()).toBeUndefined();
});
