import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

/** A transport stream packet that says nothing (PID 0x1fff). */
const stuffing = Buffer.concat([Buffer.from([0x47, 0x1f, 0xff, 0x10]), Buffer.alloc(184, 0xff)]);
const digests = new Map<string, string>();
/** Above 8 MiB, so in three parts. */
const least = 9 << 20;

beforeAll(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
  for (let i = 0; i < 16; i++) {
    const path = `/media/film/480p/seg-${String(i).padStart(5, '0')}.ts`;
    const body = await stack.origin.body(path);
    const padding = Math.ceil((least - body.length) / stuffing.length);
    const long = Buffer.concat([body, Buffer.concat(Array.from({ length: padding }, () => stuffing))]);
    stack.origin.replaced.set(path, long);
    digests.set(path, createHash('sha256').update(long).digest('hex'));
  }
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

test('segments of 9 MiB come from another viewer in parts', async () => {
  const options = { manifest: '/media/film/480p/index.m3u8', buffer: 12 };
  const first = await Viewer.open(browser, stack.page(options), { name: 'first' });
  await first.until('10 s of film', (seen) => seen.currentTime > 10, 40_000);
  const second = await Viewer.open(browser, stack.page(options), { name: 'second' });
  await second.until('24 s of film', (seen) => seen.currentTime > 24, 60_000);
  await pause(500);
  const told = (await second.told()).segments;
  const bytes = told.map((s) => s.bytes);
  const sum = (of: 'origin' | 'seed' | 'peer') => bytes.reduce((n, b) => n + b[of], 0);
  const all = sum('origin') + sum('seed') + sum('peer');
  const result = await Promise.all(
    [first, second].map(async (v) => ({
      name: v.name,
      stalls: (await v.seen()).stalls,
      errors: v.consoleErrors(),
      wrong: (await v.player()).loaded.filter((l) => {
        const path = new URL(l.url).pathname;
        return digests.has(path) && l.digest !== digests.get(path);
      }).length,
      cache: (await v.stats()).titles[0].engine.cacheBytes,
      totals: (await v.stats()).titles[0].totals,
    })),
  );
  figures('parts', { viewers: result, bytes, segments: told.length, fromViewers: round(sum('peer') / all) });
  for (const v of result) {
    expect(v, v.name).toMatchObject({ stalls: [], errors: [], wrong: 0 });
    expect(v.cache, v.name).toBeLessThanOrEqual((64 + 12) << 20);
  }
  expect(sum('peer') / all).toBeGreaterThan(0.5);
});
