import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({ split: true });
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

const options = { level: 2, buffer: 16 };

/** Bytes a viewer has had from other viewers. */
async function fromPeers(viewer: Viewer): Promise<number> {
  return (await viewer.told()).segments.reduce((sum, s) => sum + s.bytes.peer, 0);
}

async function linkedTo(viewer: Viewer, role: string): Promise<number> {
  const stats = await viewer.stats();
  // biome-ignore lint/suspicious/noExplicitAny: the library's figures
  return (stats?.titles ?? []).flatMap((t: any) => t.engine?.peers ?? []).filter((p: any) => p.role === role).length;
}

/** Links with seeds that a viewer has had so far. */
async function seedLinks(viewer: Viewer): Promise<number> {
  return (await viewer.told()).links.filter((link) => link.role === 'seed').length;
}

test('tracker killed, then the seed: no stall, links go on, the swarm re-forms', async () => {
  const viewers = [await Viewer.open(browser, stack.page(options), { name: 'first' })];
  await pause(4000);
  viewers.push(await Viewer.open(browser, stack.page(options), { name: 'second' }));
  await viewers[1]!.until('6 s of film', (seen) => seen.currentTime > 6);

  await stack.killTracker();
  const before = await Promise.all(viewers.map(fromPeers));
  const linksBefore = await linkedTo(viewers[1]!, 'viewer');
  await pause(10_000);
  const during = await Promise.all(viewers.map(fromPeers));
  const linksDuring = await linkedTo(viewers[1]!, 'viewer');
  await stack.startTracker();
  const back = Date.now();
  let ready = 0;
  for (const viewer of viewers) {
    await viewer.page.waitForFunction(() => (window as unknown as PageWindow).leeway.stats().state === 'ready', {
      timeout: 35_000,
    });
    ready = Date.now() - back;
  }
  const third = await Viewer.open(browser, stack.page(options), { name: 'third' });
  await third.until('6 s of film', (seen) => seen.currentTime > 6);
  const joined = await fromPeers(third);
  viewers.push(third);

  await stack.killSeed();
  await pause(12_000);
  await stack.startSeed();
  const reseeded = Date.now();
  // A link that began after the restart, with any peer: the links of the dead seed may not be known to be dead yet.
  const fresh = async () => (await Promise.all(viewers.map(seedLinks))).reduce((a, b) => a + b, 0);
  const stale = await fresh();
  while ((await fresh()) === stale && Date.now() - reseeded < 30_000) await pause(500);
  const seedBack = Date.now() - reseeded;

  const result = await Promise.all(
    viewers.map(async (v) => ({
      name: v.name,
      stalls: (await v.seen()).stalls,
      played: (await v.seen()).currentTime,
      errors: v.consoleErrors().filter((text) => !/WebSocket connection to/.test(text)),
      fatal: (await v.player()).errors.filter((e) => e.fatal).length,
    })),
  );
  const gained = during.map((bytes, i) => bytes - before[i]!);
  figures('outage', {
    viewers: result,
    links: [linksBefore, linksDuring],
    peerBytesWithoutTracker: gained,
    readyMs: ready,
    newcomerFromPeers: joined,
    seedBackMs: seedBack,
  });
  for (const v of result) expect(v, v.name).toMatchObject({ stalls: [], errors: [], fatal: 0 });
  expect(linksDuring).toBe(linksBefore);
  expect(Math.max(...gained), 'viewers serve each other without a tracker').toBeGreaterThan(0);
  expect(joined, 'a newcomer finds the others again').toBeGreaterThan(0);
  expect(seedBack).toBeLessThan(30_000);
});
