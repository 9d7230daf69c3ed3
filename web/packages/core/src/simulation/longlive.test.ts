/** Two pages watch hours of a live stream: what they keep of it does not grow (`make live-hours` plays twelve of them). */
import { expect, test, vi } from 'vitest';
import { inUse, LongFilm } from './longfilm.ts';
import { figures, fine, setUp } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 3_600_000 });

const [segmentMs, segmentBytes, window] = [2_000, 40_000, 6];
const hours = Number(process.env.LEEWAY_LIVE_HOURS ?? 1);
const looks = 12;
/** A viewer begins so many segments behind the last one. */
const behind = 4;

test(`${hours} hours of a live stream leave what its first third left`, async () => {
  const lookMs = (hours * 3_600_000) / looks;
  const count = Math.ceil((hours * 3_600_000) / segmentMs) + 40;
  const film = new LongFilm(count, segmentMs, segmentBytes);
  const { world, seed, viewer, viewers, run } = setUp(film);
  const begunAt = world.now();
  /** How long until a segment is published, ms. */
  const dueMs = (n: number) => begunAt + (n + 1 - window) * segmentMs - world.now();
  const before = await inUse();
  for (let n = 0; n < 2; n++) {
    viewer(undefined, { cacheBytes: 2 ** 20 }, false, (v) => {
      v.live = true;
      v.tells = 0;
      // A playlist that is loaded at a moment of the viewer's own.
      v.dueMs = (k) => dueMs(k) + 300 + 900 * n;
      v.play(window + n - behind);
    });
    await run(segmentMs);
  }
  const total = { origin: 0, seed: 0, peer: 0 };
  const used: number[] = [];
  let gone = 0;
  for (let look = 0; look < looks; look++) {
    // Results are taken from the viewers often: the player has played them.
    for (let part = 0; part < 10; part++) {
      await run(lookMs / 10);
      for (const v of viewers) {
        const bytes = v.bytes();
        for (const k of ['origin', 'seed', 'peer'] as const) total[k] += bytes[k];
        v.results.length = 0;
      }
      // A seed is another machine.
      for (; dueMs(gone + 30) < 0; gone++) seed.forget(film.segments[gone]!.name);
    }
    used.push(((await inUse()) - before) / viewers.length);
  }
  expect(figures(viewers, film)).toMatchObject(fine);
  const played = (total.origin + total.seed + total.peer) / segmentBytes / viewers.length;
  expect(played).toBeGreaterThan((hours * 3_600_000) / segmentMs - 10);
  expect(total.peer / (total.origin + total.seed + total.peer)).toBeGreaterThan(0.3);
  // The least of each third is what is kept: at a look some loads are under way.
  const kept = [used.slice(looks / 3, (2 * looks) / 3), used.slice((2 * looks) / 3)].map((third) => Math.min(...third));
  const kilobytes = used.map((bytes) => Math.round(bytes / 1e3));
  expect(kept[1]! - kept[0]!, `kB after each twelfth: ${kilobytes}`).toBeLessThan(500_000);
});
