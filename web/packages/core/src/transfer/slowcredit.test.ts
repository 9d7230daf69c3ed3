import { expect, test } from 'vitest';
import { createSlowCredit } from './slowcredit.ts';

test('a second: what waits uses it up, and it comes back while the player asks for nothing', () => {
  let now = 5_000;
  const slowCredit = createSlowCredit(
    { now: () => now, setTimer: () => 0, clearTimer() {} },
    { leftMs: () => undefined },
  );
  const step = (ms: number, leftMs: number, waiting: boolean, idle: boolean) => {
    now += ms;
    expect(slowCredit.leftMs()).toBe(leftMs);
    slowCredit.settle(waiting, idle);
  };
  step(0, 1_000, true, false);
  step(700, 300, false, false); // the origin sends
  step(1_000, 300, false, true);
  step(200, 500, true, false);
  step(60_000, 0, false, true);
  step(60_000, 1_000, false, false);
});

test('begins with what is left of the credit, unless a piece has been verified already', () => {
  const clock = { now: () => 5_000, setTimer: () => 0, clearTimer() {} };
  expect(createSlowCredit(clock, { leftMs: () => 600 }).leftMs()).toBe(600);
  expect(createSlowCredit(clock, { leftMs: () => undefined }).leftMs()).toBe(1_000);
});
