import { expect, it } from 'vitest';
import { Beats, beatsMs, busyMs, calmMs } from './beats.ts';

it('beats seldom while the thread hears beats in time, and often for a while after a late one', () => {
  const asked: number[] = [];
  let queued = 0;
  const beats = new Beats(
    (ms) => asked.push(ms),
    () => queued++,
  );
  const zero = 7_000_000;
  let now = 0;
  /** Data come all the time, and beats as they were asked for; so late. */
  const pass = (us: number, late: number) => {
    for (const end = now + us; now < end; ) {
      now += asked.at(-1)! * 1_000;
      beats.want(now);
      beats.heard(now + late, now - zero);
    }
  };
  beats.want(now);
  pass(1_000_000, 300);
  expect(new Set(asked)).toEqual(new Set([calmMs]));
  pass(calmMs * 1_000, 9_000);
  pass(450_000, 4_000);
  expect(asked.at(-1)).toBe(busyMs);
  pass(1_000_000, 4_000);
  expect(asked.at(-1)).toBe(calmMs);
  // Overdue is what comes later than its beat was to.
  expect([beats.overdue(now + calmMs * 1_000), queued]).toEqual([false, 0]);
  expect([beats.overdue(now + calmMs * 1_000 + 6_000), queued]).toEqual([true, 1]);
  // After a time without data none is waited for.
  now += beatsMs * 1_000 + 1_000_000;
  beats.want(now);
  expect(beats.overdue(now)).toBe(false);
});
