/** CMCD of hls.js in a browser: what the tracker counts of a player's reports, and what the page tells the origin of peers and seeds. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { metrics, sum } from './service.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let browser: Chromium;
let stack: Stack;

beforeEach(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** What of CMCD the origin was told, for files of this kind. */
const told = (file: RegExp) =>
  stack.origin.ledger
    .filter(({ path, asker }) => asker === 'viewer' && file.test(path))
    .map(({ query }) => new URLSearchParams(query).get('CMCD') ?? '');

test("a player's reports reach the tracker, and the page's keys the origin", async () => {
  const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer: 12, cmcd: true }), { name: 'cmcd' });
  const fromSeed = async () => (await viewer.told()).segments.some(({ bytes }) => bytes.seed > 0);
  await until('a segment of the seed', fromSeed);
  // A playlist comes from the origin at any rate.
  await viewer.page.evaluate(() => {
    (window as unknown as PageWindow).__hls.nextLevel = 1;
  });
  const seedKB = () => Math.max(0, ...told(/.*/).map((text) => Number(/com\.leeway-s=(\d+)/.exec(text)?.[1] ?? 0)));
  await until('the keys of the page', async () => seedKB() > 0);
  const counted = async () => {
    const samples = await metrics(stack.admin);
    return {
      playing: sum(samples, 'leeway_cmcd_states_total', 'state="playing"'),
      responses: sum(samples, 'leeway_cmcd_responses_total', 'class="2xx"'),
      refused: sum(samples, 'leeway_cmcd_refused_total'),
    };
  };
  await until('reports', async () => {
    const { playing, responses } = await counted();
    return playing > 0 && responses > 0;
  });
  const sentKB = seedKB();
  const { segments } = await viewer.told();
  const errors = viewer.consoleErrors();
  await viewer.close();
  const seen = { ...(await counted()), seedKB: sentKB, segments: segments.length };
  figures('CMCD of hls.js', seen);
  expect(seen.refused).toBe(0);
  expect(errors).toEqual([]);
  const media = told(/\.ts$/);
  expect(media.length).toBeGreaterThan(0);
  expect(media.filter((text) => !/sid=".+".*v=2/.test(text))).toEqual([]);
  expect(seen.seedKB).toBeLessThanOrEqual(segments.reduce((all, { bytes }) => all + bytes.seed, 0) / 1000 + 1);
});
