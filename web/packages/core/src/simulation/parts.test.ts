/** Objects of more than 8 MiB, shared in parts. */
import { describe, expect, it, vi } from 'vitest';
import { Film } from './film.ts';
import { figures, fine, setUp } from './scene.ts';
import type { Line } from './world.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const mebi = 1 << 20;
/** Three parts: 4 MiB, 4 MiB and what is left. */
const bytes = 9 * mebi + 12_345;
const line: Line = { up: 25_000_000, down: 25_000_000 };

describe('segments of 9 MiB', () => {
  it('come from other viewers in parts', async () => {
    const film = new Film(8, 10_000, bytes);
    const { viewers, viewer, run } = setUp(film, line);
    viewer();
    await run(6_000);
    const second = viewer();
    const loaded: number[] = [];
    const heard: string[] = [];
    second.events.on('segment', ({ url }) => heard.push(url));
    second.onProgress = (n) => loaded.push(n);
    await run(90_000);
    expect(viewers.map((v) => v.results.length)).toEqual([8, 8]);
    expect(figures(viewers, film)).toMatchObject(fine);
    // The first is urgent; what comes after it is known to be long before it is asked for.
    expect(second.bytes(1).peer / (7 * bytes)).toBeGreaterThan(0.9);
    for (const r of second.results) expect(r.bytes.origin + r.bytes.seed + r.bytes.peer).toBe(bytes);
    // Each is handed over once, its parts are counted one by one.
    expect(heard).toHaveLength(8);
    expect(second.engine.snapshot().totals.segments.peer).toBeGreaterThan(7 * 2);
    let last = 0;
    for (const n of loaded) {
      if (n < last) expect(last).toBe(bytes);
      last = n;
    }
  });

  it('take what no peer holds from the origin by its range, and verify it', async () => {
    const film = new Film(5, 10_000, bytes);
    const { seed, viewers, viewer, run } = setUp(film, line);
    const v = viewer();
    await run(3_000);
    // Certificates are there, the seed is not: parts can only come from the origin.
    seed.silent = true;
    await run(60_000);
    expect(v.results.length).toBe(5);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(film.ranges.size).toBeGreaterThan(0);
    expect(v.engine.snapshot().totals.contradictions).toBe(0);
  });

  it('are compared once, where a part came from a viewer and from the origin', async () => {
    const film = new Film(8, 10_000, bytes);
    const { seed, viewers, viewer, run } = setUp(film, line);
    const first = viewer();
    await run(25_000);
    const second = viewer();
    let pieces = 0;
    second.events.on('piece', () => {
      if (++pieces !== 300) return;
      seed.silent = true;
      queueMicrotask(() => first.engine.stop());
    });
    await run(90_000);
    expect(second.results.length).toBe(8);
    expect(figures(viewers, film)).toMatchObject({ stalls: 0, wrong: 0 });
    expect(second.results.filter(({ bytes }) => bytes.peer > mebi && bytes.origin > mebi)).toHaveLength(1);
    const { totals } = second.engine.snapshot();
    expect(totals.duplicate_bytes).toBe(0);
  });

  it('come whole from an origin that does not know ranges', async () => {
    const film = new Film(5, 10_000, bytes);
    const { seed, viewers, viewer, run } = setUp(film, line);
    film.rangeless = (node) => node !== seed.id;
    const v = viewer();
    await run(3_000);
    seed.silent = true;
    await run(60_000);
    expect(v.results.length).toBe(5);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(v.bytes(1).origin).toBeGreaterThan(0);
  });

  it('are never put together from two versions', async () => {
    const film = new Film(6, 10_000, bytes);
    const { seed, viewers, viewer, run } = setUp(film, line);
    let n = 0;
    // Every certificate of another version.
    Object.defineProperty(seed, 'version', { get: () => `"${n++}"` });
    viewer();
    await run(4_000);
    viewer();
    await run(80_000);
    expect(viewers.map((v) => v.results.length)).toEqual([6, 6]);
    expect(figures(viewers, film)).toMatchObject(fine);
    for (const v of viewers) expect(v.bytes().peer + v.bytes().seed).toBe(0);
  });

  it('come whole where the cache is too small for them', async () => {
    const film = new Film(4, 10_000, bytes);
    const { viewers, viewer, run } = setUp(film, line);
    for (let i = 0; i < 2; i++) {
      viewer(undefined, { cacheBytes: 8 * mebi });
      await run(5_000);
    }
    await run(50_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    for (const v of viewers) {
      expect(v.bytes().origin).toBe(4 * bytes);
      expect(v.engine.snapshot().cacheBytes).toBeLessThanOrEqual(8 * mebi);
    }
  });

  it('let go of everything when the player gives one up', async () => {
    const film = new Film(3, 10_000, bytes);
    const { seed, viewer, run } = setUp(film, line);
    const v = viewer([seed]);
    await run(1_500);
    v.abort();
    await run(100);
    expect(v.engine.snapshot().peers.map((p) => p.downloads)).toEqual([0]);
    v.engine.stop();
    await run(5_000);
    expect(v.errors.map((e) => (e as Error).message)).toEqual(['aborted']);
  });
});
