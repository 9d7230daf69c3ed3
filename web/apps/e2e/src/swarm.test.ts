import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { buildDir } from './paths.ts';
import { asMpegTs, Demo, metrics, sum } from './service.ts';
import { pause, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let browser: Chromium;
let demo: Demo;

// For each try: the counters of a seed and an origin begin anew.
beforeEach(async () => {
  demo = await Demo.start();
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await demo?.stop();
});

/** One viewer's figures: what the browser's network stack saw, and what the page says. */
async function measure(viewer: Viewer) {
  const seen = await viewer.seen();
  const page = await viewer.page.evaluate(() => (window as unknown as PageWindow).__demo.stats());
  const stats = await viewer.stats();
  // Segments in the order of the film; the first two may come from anywhere.
  const segments = page.segments.map((s: { url: string; bytes: number }) => ({
    url: new URL(s.url, 'http://x').pathname,
    bytes: s.bytes,
  }));
  const late = new Set(segments.slice(2).map((s: { url: string }) => s.url));
  const total = segments.reduce((n: number, s: { bytes: number }) => n + s.bytes, 0);
  // A first segment waits at most 0.75 s for a link, which a busy machine does not open by then.
  const first = segments[0]!.bytes;
  const firstOrigin = seen.fetched.some((f) => new URL(f.url).pathname === segments[0]!.url) ? first : 0;
  const lateTotal = segments.slice(2).reduce((n: number, s: { bytes: number }) => n + s.bytes, 0);
  const origin = seen.fetched.reduce((n, f) => n + f.bytes, 0);
  const lateOrigin = seen.fetched.filter((f) => late.has(new URL(f.url).pathname)).reduce((n, f) => n + f.bytes, 0);
  return {
    name: viewer.name,
    played: round(seen.currentTime, 1),
    startup: Math.round(seen.startup),
    stalls: seen.stalls,
    segments: segments.length,
    fromOrigin: seen.fetched.length,
    total,
    origin,
    first,
    firstOrigin,
    othersAfterTwo: round(1 - lateOrigin / lateTotal),
    // biome-ignore lint/suspicious/noExplicitAny: the library's figures
    claims: (stats?.titles ?? []).map((t: any) => ({
      bytes: t.totals.bytes,
      reasons: t.totals.reasons,
      wasted: t.totals.wasted_bytes,
      duplicate: t.totals.duplicate_bytes,
    })),
    errors: [...viewer.consoleErrors(), ...seen.errors],
    engineErrors: await viewer.engineErrors(),
  };
}

test('four viewers, 5 s apart, a minute of play each', async () => {
  const url = `${demo.url}/?level=2&maxbuffer=20&${asMpegTs}`;
  const viewers: Viewer[] = [];
  for (let i = 1; i <= 4; i++) {
    viewers.push(await Viewer.open(browser, `${url}&viewer=${i}`, { name: `viewer ${i}` }));
    if (i < 4) await pause(5000);
  }
  await Promise.all(viewers.map((v) => v.until('60 s of film', (seen) => seen.currentTime >= 60, 100_000)));
  const result = await Promise.all(viewers.map(measure));
  const ledger = await demo.ledger();
  const seedSent = sum(await metrics(demo.admin), 'leeway_seed_sent_bytes_total');
  const all = result.reduce((n, v) => n + v.total, 0);
  const origin = result.reduce((n, v) => n + v.origin, 0);
  const after = result.reduce((n, v) => n + v.total - v.first, 0);
  const afterOrigin = result.reduce((n, v) => n + v.origin - v.firstOrigin, 0);
  const watched = new Set(Object.keys(ledger.segments));
  const requests = Object.values(ledger.segments).reduce(
    (n, by) => n + Object.values(by).reduce((m, k) => m + k, 0),
    0,
  );
  // Everything that came neither from the origin (the browser's own count) nor from the seed (its own count) came from viewers.
  const fromViewers = (all - origin - seedSent) / all;
  const afterFirst = (after - afterOrigin - seedSent) / after;
  const perSegment = requests / watched.size;
  await viewers[0]!.page.screenshot({ path: join(buildDir, 'demo-first.png') });
  await viewers[3]!.page.screenshot({ path: join(buildDir, 'demo-fourth.png') });
  figures('swarm', {
    viewers: result,
    all,
    origin,
    seedSent,
    fromViewers: round(fromViewers),
    afterFirst: round(afterFirst),
    requestsPerSegment: round(perSegment),
  });
  await Promise.all(viewers.map((v) => v.close()));

  for (const v of result) {
    expect(v, v.name).toMatchObject({ stalls: [], errors: [], engineErrors: 0 });
    expect(v.othersAfterTwo, v.name).toBeGreaterThanOrEqual(0.9);
  }
  expect(afterFirst).toBeGreaterThanOrEqual(0.66);
  expect(perSegment).toBeLessThanOrEqual(1.4);
});
