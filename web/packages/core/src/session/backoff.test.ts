import { describe, expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { backoffCapMs, createBackoff } from './backoff.ts';

/** A back-off whose jitter is always the longest. */
const setUp = (random = () => 1) => {
  const clock = new FakeClock();
  return { clock, backoff: createBackoff(clock, random) };
};

describe('the back-off', () => {
  it('grows to its bound, and the jitter is all of it', () => {
    const { backoff } = setUp();
    const waits = Array.from({ length: 9 }, () => backoff.nextMs(false, false));
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, backoffCapMs, backoffCapMs, backoffCapMs]);
    expect(backoff.attempt).toBe(9);
    expect(setUp(() => 0).backoff.nextMs(false, false)).toBe(0);
  });

  it.each([
    ['no session', { ready: false, lastedMs: 90_000, told: false }, 4000],
    ['a short session that ended without a word', { ready: true, lastedMs: 59_999, told: false }, 6000],
    ['a short session that was told to end', { ready: true, lastedMs: 59_999, told: true }, 4000],
    ['a session that lasted, told to end', { ready: true, lastedMs: 60_000, told: true }, 500],
    ['a session that lasted, without a word', { ready: true, lastedMs: 60_000, told: false }, 6000],
  ])('after %s', async (_, { ready, lastedMs, told }, wait) => {
    const { clock, backoff } = setUp();
    for (let n = 0; n < 3; n++) backoff.nextMs(false, false);
    backoff.ready();
    await clock.advance(lastedMs);
    expect(backoff.nextMs(ready, told)).toBe(wait);
  });

  it('is not over before the moment that the tracker named', async () => {
    const { clock, backoff } = setUp();
    backoff.hold(20_000);
    backoff.hold(5_000);
    expect(backoff.heldMs()).toBe(20_000);
    await clock.advance(15_000);
    expect(backoff.nextMs(false, false)).toBe(5_000);
  });

  it('begins anew when this side has moved, and is short when it has slept', async () => {
    const { clock, backoff } = setUp();
    for (let n = 0; n < 5; n++) backoff.nextMs(false, false);
    backoff.excuse();
    expect(backoff.nextMs(true, false)).toBe(6000);
    backoff.excuse(true);
    expect(backoff.nextMs(true, false)).toBe(500);
    await clock.advance(10_000);
    expect(backoff.nextMs(true, false)).toBe(6000);
  });
});
