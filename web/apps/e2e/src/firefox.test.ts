import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Firefox } from './firefox.ts';
import { Demo } from './service.ts';
import { pause, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let demo: Demo;
let firefox: Firefox;
let chromium: Chromium;
const viewers: Viewer[] = [];

beforeAll(async () => {
  demo = await Demo.start();
  firefox = await Firefox.start();
  chromium = await Chromium.start();
});
// Also of a try that failed: they would go on beside the next one.
afterEach(async () => {
  await Promise.all(viewers.splice(0).map((v) => v.close().catch(() => {})));
});
afterAll(async () => {
  await chromium?.stop();
  await firefox?.stop();
  await demo?.stop();
});

/** Bytes by source of the page's one title, what others sent of the segments after the first two, and links that are open. */
async function taken(viewer: Viewer) {
  const [title] = (await viewer.stats()).titles;
  const { segments } = await viewer.page.evaluate(() => (window as unknown as PageWindow).__demo.stats());
  const later = segments.slice(2) as { bytes: number; source: string }[];
  const bytes = (of: typeof later) => of.reduce((sum, s) => sum + s.bytes, 0);
  const { origin, seed, peer } = title.totals.bytes;
  return {
    name: viewer.name,
    ...{ origin, seed, peer },
    fromOthers: round(bytes(later.filter((s) => s.source !== 'origin')) / bytes(later)),
    given: title.totals.uploaded.direct as number,
    background: title.totals.lanes.background as number,
    links: title.links.open as number,
  };
}

test('a Firefox with a seed, a second one, and a Chromium serve each other the demo', async () => {
  const url = `${demo.url}/?level=2&maxbuffer=20`;
  for (const [name, browser] of [
    ['firefox 1', firefox],
    ['firefox 2', firefox],
    ['chromium', chromium],
    ['firefox 3', firefox],
  ] as const) {
    viewers.push(await Viewer.open(browser, `${url}&viewer=${viewers.length + 1}`, { name }));
    await pause(5000);
  }
  const seen = await Promise.all(viewers.map((v) => v.until('30 s of film', (s) => s.currentTime >= 30, 90_000)));
  const result = await Promise.all(viewers.map(taken));
  figures('firefox', { version: await firefox.version(), viewers: result });

  for (const [i, viewer] of viewers.entries()) {
    expect({ stalls: seen[i]!.stalls, errors: viewer.consoleErrors() }, viewer.name).toEqual({
      stalls: [],
      errors: [],
    });
    expect(result[i]!.fromOthers, viewer.name).toBeGreaterThanOrEqual(0.6);
    expect(result[i]!.links, viewer.name).toBe(viewers.length); // the seed and the other viewers
  }
  // The first one serves both kinds: what comes later comes from viewers.
  expect(result[0]!.given).toBeGreaterThan(0);
  for (const later of result.slice(1)) expect(later.peer, later.name).toBeGreaterThan(later.seed);
});

test('a Firefox that resists fingerprinting takes from a Chromium, and gives nothing', async () => {
  const careful = await Firefox.start({ 'privacy.resistFingerprinting': true });
  try {
    const url = `${demo.url}/?level=2&maxbuffer=20`;
    for (const [name, browser] of [
      ['chromium', chromium],
      ['careful', careful],
      ['chromium 2', chromium],
    ] as const) {
      if (viewers.length) await pause(5000);
      viewers.push(await Viewer.open(browser, `${url}&viewer=${viewers.length + 1}`, { name }));
    }
    const seen = await Promise.all(viewers.map((v) => v.until('20 s of film', (s) => s.currentTime >= 20, 90_000)));
    const result = await Promise.all(viewers.map(taken));
    figures('firefox-careful', { viewers: result });
    expect(seen.map((s) => s.stalls)).toEqual([[], [], []]);
    expect(result[1]).toMatchObject({ given: 0, links: 3 });
    for (const later of result.slice(1)) expect(later.fromOthers, later.name).toBeGreaterThanOrEqual(0.6);
  } finally {
    await careful.stop();
  }
});
