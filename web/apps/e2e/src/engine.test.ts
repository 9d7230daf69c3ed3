import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Stack } from './stack.ts';
import { Viewer } from './viewer.ts';
import type { PageOptions } from './watched.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
  // A site that serves the first script itself, and not the second.
  const script = Buffer.from(await (await fetch(`${stack.tracker}/leeway.js`)).arrayBuffer());
  stack.origin.pages.set('/static/leeway.js', () => script);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** What a page did about the second script: the requests for it, and whether the title was joined. */
async function visit(name: string, options: PageOptions) {
  const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer: 12, ...options }), { name });
  const seen = await viewer.until('6 s of film', (s) => s.currentTime > 6);
  const asked = await viewer.page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter(({ name }) => name.includes('-engine.js'))
      .map(({ name, startTime }) => ({
        host: new URL(name).host,
        startTime,
        segment: (performance.getEntriesByType('resource') as PerformanceResourceTiming[]).find(({ name }) =>
          /\.(ts|m4s)$/.test(name),
        )!.responseEnd,
      })),
  );
  const [title] = (await viewer.stats()).titles;
  const result = {
    name,
    hosts: asked.map(({ host }) => host),
    // Both are times of the page's own clock.
    late: asked.map(({ startTime, segment }) => round(startTime - segment)),
    afterFrame: asked.map(({ startTime }) => round(startTime - seen.startup)),
    joined: title.swarm !== undefined,
    codes: (await viewer.told()).notices.map(({ code }) => code),
    stalls: seen.stalls,
    errors: viewer.consoleErrors(),
    fatal: (await viewer.player()).errors.filter(({ fatal }) => fatal),
  };
  await viewer.close();
  return result;
}

test('the second script comes after the first segment, and playback does without it', async () => {
  const tracker = new URL(stack.tracker).host;
  const site = new URL(stack.page()).host;
  const scripts = `${stack.tracker}/leeway.js http://${site}/hls.js`;
  const results = await Promise.all([
    visit('plain', {}),
    visit('nonce', { policy: "script-src 'nonce-e2e'; worker-src blob:", script: '/static/leeway.js' }),
    visit('listed by path', { policy: `script-src 'unsafe-inline' ${scripts}; worker-src blob:` }),
  ]);
  figures('engine', { visits: results });
  const [plain, nonce, listed] = results;
  expect(plain).toMatchObject({ hosts: [tracker], joined: true, codes: [], errors: [] });
  expect(nonce).toMatchObject({ hosts: [site, tracker], joined: true, codes: [] });
  expect(listed).toMatchObject({ hosts: [tracker], joined: false, codes: ['engine-missing'] });
  for (const { name, stalls, fatal, late } of results) {
    expect({ name, stalls, fatal }).toEqual({ name, stalls: [], fatal: [] });
    for (const ms of late) expect(ms, name).toBeGreaterThan(0);
  }
});
