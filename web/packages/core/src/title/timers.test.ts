import { expect, test } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createTimers } from './timers.ts';

test('a timer that is set again goes off once, and what it throws is caught under its name', async () => {
  const clock = new FakeClock();
  const caught: string[] = [];
  const gone: string[] = [];
  const timers = createTimers<'a' | 'b'>(clock, (where) => caught.push(where));
  timers.set('a', () => gone.push('first'), 100);
  timers.set('a', () => gone.push('second'), 200);
  timers.set('b', () => JSON.parse('x'), 50);
  await clock.advance(150);
  expect([gone, caught, timers.isSet('a'), timers.isSet('b')]).toEqual([[], ['b'], true, false]);
  await clock.advance(100);
  expect([gone, timers.isSet('a')]).toEqual([['second'], false]);
  timers.set('a', () => gone.push('third'), 100);
  timers.clearAll();
  await clock.advance(1_000);
  expect(gone).toEqual(['second']);
});
