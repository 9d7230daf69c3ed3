/** Two pages watch a title of two hours at twice its speed: what they keep of it is bounded. */
import { expect, test, vi } from 'vitest';
import { inUse, LongFilm } from './longfilm.ts';
import { figures, fine, setUp } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const [segments, segmentMs, segmentBytes] = [1_800, 4_000, 100_000];
const cacheBytes = 24 * 2 ** 20;

test('a title of two hours at twice its speed leaves no more than the cache and 50 MB', async () => {
  const film = new LongFilm(segments, segmentMs, segmentBytes);
  const { seed, viewer, viewers, run } = setUp(film);
  const ahead = () => ({ allowed: true, waste_bytes: 0, role: 'full' as const, battery: false });
  const before = await inUse();
  for (let n = 0; n < 2; n++) {
    viewer(undefined, { cacheBytes, ahead }).speed = 2;
    await run(20_000);
  }
  const total = { origin: 0, seed: 0, peer: 0 };
  const used: number[] = [];
  let behind = 0;
  // Half the time that the title takes, and a minute for the second one.
  for (let minute = 0; minute < 61; minute++) {
    await run(60_000);
    for (const v of viewers) {
      const bytes = v.bytes();
      for (const k of ['origin', 'seed', 'peer'] as const) total[k] += bytes[k];
      // The player has played them.
      v.results.length = 0;
    }
    // A seed is another machine.
    for (; behind < Math.min(segments, minute * 30); behind++) seed.forget(film.segments[behind]!.name);
    if (minute % 4 === 3) used.push(((await inUse()) - before) / viewers.length);
  }
  expect(figures(viewers, film)).toMatchObject(fine);
  // They have watched all of it, and shared it.
  expect(total.origin + total.seed + total.peer).toBe(viewers.length * segments * segmentBytes);
  expect(total.peer / (viewers.length * segments * segmentBytes)).toBeGreaterThan(0.3);
  const megabytes = used.map((bytes) => Math.round(bytes / 1e6));
  expect(Math.max(...used), `MB after each four minutes: ${megabytes}`).toBeLessThan(cacheBytes + 50_000_000);
  // It does not grow as the cache is full. The least of each half is what is kept: at a look some loads are under way, and a digest holds
  // its bytes a little longer.
  const kept = [used.slice(3, 9), used.slice(9)].map((half) => Math.min(...half));
  expect(kept[1]! - kept[0]!, `MB after each four minutes: ${megabytes}`).toBeLessThan(5_000_000);
});
